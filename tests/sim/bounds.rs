//! The bounds that a user can set hold to the millisecond, for every operation and whatever is wrong with the server.
#![expect(clippy::async_yields_async, reason = "an operation is prepared first, and begins later")]

use std::future::IntoFuture;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::{Acquire, Client, Config, ErrorKind, Result, TryAcquire, dialled};
use futures::FutureExt;
use futures::future::{BoxFuture, join};

use self::place::{Place, TROUBLES, Trouble, Wires};
use crate::executor::on_new_machine;

mod place;
mod red_lock;

/// The process under test.
const PROCESS: usize = 1;

/// What limits an operation.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    retry_timeout: Duration,
    command_timeout: Duration,
    /// Of those operations that have one.
    timeout: Option<Duration>,
}

const fn bounds(retry_timeout: u32, command_timeout: u32, timeout: Option<u32>) -> Bounds {
    let timeout = match timeout {
        Some(timeout) => Some(Duration::from_millis(timeout as u64)),
        None => None,
    };
    Bounds {
        retry_timeout: Duration::from_millis(retry_timeout as u64),
        command_timeout: Duration::from_millis(command_timeout as u64),
        timeout,
    }
}

const BOUNDS: [Bounds; 7] = [
    bounds(700, 3000, None),
    bounds(100, 60_000, None),
    bounds(10_000, 3000, None),
    bounds(2000, 400, None),
    bounds(700, 3000, Some(300)),
    bounds(10_000, 3000, Some(4500)),
    bounds(0, 1000, None),
];

/// An operation that was prepared while the server was well.
type Prepared = BoxFuture<'static, Result<()>>;

/// An operation: its name, whether it has a timeout of its own, and how it is prepared.
type Row = (&'static str, bool, fn(Client, Option<Duration>) -> BoxFuture<'static, Prepared>);

fn waits<G: bowline::Held + 'static>(acquire: Acquire<G>, timeout: Option<Duration>) -> Prepared {
    let acquire = match timeout {
        Some(timeout) => acquire.timeout(timeout),
        None => acquire,
    };
    async move { acquire.await.map(drop) }.boxed()
}

fn tries<G: bowline::Held + 'static>(tries: TryAcquire<G>, timeout: Option<Duration>) -> Prepared {
    let tries = match timeout {
        Some(timeout) => tries.timeout(timeout),
        None => tries,
    };
    async move { tries.await.map(drop) }.boxed()
}

const LEASE: Duration = Duration::from_secs(60);

const ROWS: &[Row] = &[
    ("lock", true, |client, timeout| ready(waits(client.lock("lock").lock(), timeout))),
    ("try_lock", true, |client, timeout| ready(tries(client.lock("try_lock").try_lock(), timeout))),
    ("non_fair", true, |client, timeout| {
        let lock = client.lock("non_fair");
        let [one, other] = [(); 2].map(|()| waits(lock.lock().non_fair(), timeout));
        ready(both(one, other))
    }),
    ("fixed", true, |client, timeout| ready(waits(client.lock("fixed").lock().expires_after(LEASE), timeout))),
    ("read", true, |client, timeout| ready(waits(client.rw_lock("read").read(), timeout))),
    ("write", true, |client, timeout| ready(waits(client.rw_lock("write").write(), timeout))),
    ("try_read", true, |client, timeout| ready(tries(client.rw_lock("try_read").try_read(), timeout))),
    ("try_write", true, |client, timeout| ready(tries(client.rw_lock("try_write").try_write(), timeout))),
    ("acquire", true, |client, timeout| ready(waits(client.semaphore("acquire", 2).acquire(), timeout))),
    ("acquire_many", true, |client, timeout| ready(waits(client.semaphore("many", 3).acquire_many(2), timeout))),
    ("try_acquire", true, |client, timeout| ready(tries(client.semaphore("try_acquire", 2).try_acquire(), timeout))),
    ("lock_all", true, |client, timeout| ready(waits(client.lock_all(["all 1", "all 2"]).acquire(), timeout))),
    ("try_lock_all", true, |client, timeout| ready(tries(client.lock_all(["try 1", "try 2"]).try_acquire(), timeout))),
    ("wait", true, |client, timeout| {
        let wait = client.latch("wait").wait();
        let wait = match timeout {
            Some(timeout) => wait.timeout(timeout),
            None => wait,
        };
        ready(wait.into_future())
    }),
    ("try_set", false, |client, _| {
        ready(async move { client.latch("try_set").try_set(1, LEASE).await.map(drop) }.boxed())
    }),
    ("count_down", false, |client, _| {
        ready(async move { client.latch("count_down").count_down().await.map(drop) }.boxed())
    }),
    ("count", false, |client, _| ready(async move { client.latch("count").count().await.map(drop) }.boxed())),
    ("delete", false, |client, _| ready(async move { client.latch("delete").delete().await.map(drop) }.boxed())),
    ("inspect", false, |client, _| ready(async move { client.lock("inspect").inspect().await.map(drop) }.boxed())),
    ("inspect_rw", false, |client, _| ready(async move { client.rw_lock("rw").inspect().await.map(drop) }.boxed())),
    ("available", false, |client, _| {
        ready(async move { client.semaphore("available", 2).available().await.map(drop) }.boxed())
    }),
    ("set_limit", false, |client, _| ready(async move { client.semaphore("limit", 2).set_limit(3).await }.boxed())),
    ("force_release", false, |client, _| {
        ready(async move { client.lock("force").force_release().await.map(drop) }.boxed())
    }),
    ("release", false, |client, _| {
        Box::pin(async move {
            let guard = client.lock("release").lock().await.unwrap();
            guard.release().boxed()
        })
    }),
    ("release_read", false, |client, _| {
        Box::pin(async move {
            let guard = client.rw_lock("release_read").read().await.unwrap();
            guard.release().boxed()
        })
    }),
    ("release_permit", false, |client, _| {
        Box::pin(async move {
            let guard = client.semaphore("release_permit", 2).acquire().await.unwrap();
            guard.release().boxed()
        })
    }),
    ("release_all", false, |client, _| {
        Box::pin(async move {
            let guard = client.lock_all(["release 1", "release 2"]).acquire().await.unwrap();
            guard.release().boxed()
        })
    }),
    ("extend", false, |client, _| {
        Box::pin(async move {
            let guard = client.lock("extend").lock().expires_after(LEASE).await.unwrap();
            async move { guard.extend(LEASE).await }.boxed()
        })
    }),
    ("downgrade", false, |client, _| {
        Box::pin(async move {
            let guard = client.rw_lock("downgrade").write().await.unwrap();
            async move { guard.downgrade().await.map(drop) }.boxed()
        })
    }),
    ("try_upgrade", false, |client, _| {
        Box::pin(async move {
            let guard = client.rw_lock("try_upgrade").read().await.unwrap();
            async move { guard.try_upgrade().await.map(drop) }.boxed()
        })
    }),
];

/// Acquisitions that wait behind others when the trouble begins.
const QUEUED: &[Row] = &[
    ("queued", true, |client, timeout| {
        Box::pin(async move {
            let lock = client.lock("queued");
            behind(lock.lock().await.unwrap(), waits(lock.lock(), timeout))
        })
    }),
    ("queued_non_fair", true, |client, timeout| {
        Box::pin(async move {
            let lock = client.lock("queued_non_fair");
            let [one, other] = [(); 2].map(|()| waits(lock.lock().non_fair(), timeout));
            behind(lock.lock().await.unwrap(), both(one, other))
        })
    }),
    ("queued_permit", true, |client, timeout| {
        Box::pin(async move {
            let semaphore = client.semaphore("queued_permit", 2);
            behind(semaphore.acquire_many(2).await.unwrap(), waits(semaphore.acquire(), timeout))
        })
    }),
    ("queued_wait", true, |client, timeout| {
        Box::pin(async move {
            let latch = client.latch("queued_wait");
            assert!(latch.try_set(1, LEASE * 60).await.unwrap());
            let wait = latch.wait();
            let wait = match timeout {
                Some(timeout) => wait.timeout(timeout),
                None => wait,
            };
            wait.into_future()
        })
    }),
];

fn member(client: Client, timeout: Option<Duration>) -> BoxFuture<'static, Prepared> {
    ready(waits(client.lock("cohort").lock().non_fair(), timeout))
}

/// Members of one cohort. Those with a timeout of their own leave their requests to the next one.
const COHORT: &[Row] = &[
    ("member 1", true, member),
    ("member 2", false, member),
    ("member 3", true, member),
    ("member 4", true, member),
    ("member 5", false, member),
    ("member 6", false, member),
];

/// Members of one cohort that wait for its ticket.
const COHORT_QUEUED: &[Row] = &[
    ("queued member 1", true, |client, timeout| {
        Box::pin(async move {
            let lock = client.lock("cohort");
            behind(lock.lock().await.unwrap(), waits(lock.lock().non_fair(), timeout))
        })
    }),
    ("queued member 2", false, member),
    ("queued member 3", true, member),
    ("queued member 4", false, member),
    ("queued member 5", false, member),
];

/// Keeps what the work waits for.
fn behind(held: impl Send + 'static, work: Prepared) -> Prepared {
    async move {
        let outcome = work.await;
        drop(held);
        outcome
    }
    .boxed()
}

fn ready(prepared: Prepared) -> BoxFuture<'static, Prepared> {
    Box::pin(std::future::ready(prepared))
}

fn both(one: Prepared, other: Prepared) -> Prepared {
    async move {
        let (one, other) = join(one, other).await;
        one.and(other)
    }
    .boxed()
}

/// What an operation came to, and how long that took.
type Outcome = (&'static str, Duration, Result<()>);

/// When the trouble begins and ends.
#[derive(Clone, Copy)]
enum When {
    /// When the operations begin, or that much later.
    After(Duration),
    /// Before the client has connected, which it does in the background. It may be over at that time.
    First(Option<Duration>),
}

/// All of these operations, at once or each one that long after the one before.
fn outcomes(
    seed: u64,
    (rows, apart): (&'static [Row], Duration),
    (trouble, when): (Trouble, When),
    bounds: Bounds,
) -> Vec<Outcome> {
    on_new_machine(seed, |machine| {
        let places = [(); 1].map(|()| Place::new(machine, seed));
        let outcomes: Arc<Mutex<Vec<Outcome>>> = Arc::default();
        let (executor, clock, told, place) =
            (machine.process(PROCESS), machine.clone(), outcomes.clone(), places[0].clone());
        let begin = executor.clone();
        begin.spawn(Box::pin(async move {
            let Bounds { retry_timeout, command_timeout, timeout } = bounds;
            let config = Config::builder().lease(LEASE).retry_timeout(retry_timeout).command_timeout(command_timeout);
            let in_background = matches!(when, When::First(_));
            if in_background {
                place.set(Some(trouble));
            }
            let config = config.connect_in_background(in_background).build().unwrap();
            let wires = Arc::new(Wires(places.to_vec()));
            let connection = dialled::open(executor.clone(), wires, "redis://h:1", &config).await.unwrap();
            let client = Client::connect(executor.clone(), Arc::new(connection), config).await.unwrap();
            let mut all = Vec::new();
            for (name, has_timeout, prepare) in rows {
                all.push((*name, prepare(client.clone(), timeout.filter(|_| *has_timeout)).await));
            }
            if matches!(when, When::After(Duration::ZERO)) {
                place.set(Some(trouble));
            }
            for (later, (name, work)) in (0..).map(|n| n * apart).zip(all) {
                let (clock, told, own) = (clock.clone(), told.clone(), executor.clone());
                executor.spawn(Box::pin(async move {
                    if !later.is_zero() {
                        own.sleep(later).await;
                    }
                    let start = clock.now();
                    let outcome = work.await;
                    told.lock().unwrap().push((name, clock.now() - start, outcome));
                }));
            }
            match when {
                When::After(later) => {
                    executor.sleep(later).await;
                    place.set(Some(trouble));
                }
                When::First(Some(over)) => {
                    executor.sleep(over).await;
                    place.set(None);
                }
                When::First(None) => {}
            }
        }));
        let all = machine.run_until(Duration::from_secs(600), || outcomes.lock().unwrap().len() == rows.len());
        assert!(all.is_ok(), "{trouble:?}, {bounds:?}: {all:?}");
        std::mem::take(&mut *outcomes.lock().unwrap())
    })
}

impl Bounds {
    /// For how long an operation without a timeout of its own continues while there is no usable answer.
    fn patience(self) -> Duration {
        if self.retry_timeout.is_zero() { self.command_timeout } else { self.retry_timeout }
    }
}

/// Whether an error that says that the time is over says what was wrong, as far as the client can know it.
fn tells(error: &str, name: &str, trouble: Trouble) -> bool {
    match trouble {
        Trouble::Denies => error.contains("WRONGPASS"),
        Trouble::Absent => error.contains("h:1/0: connection refused"),
        Trouble::Unreachable => error.contains("h:1/0: "),
        // Those that wait in the queue have asked for nothing since, nor do those behind others of their cohort.
        Trouble::Refuses(_) if name.contains("queued") || name.contains("member") || name == "non_fair" => true,
        Trouble::Refuses(line) => error.contains(line),
        Trouble::Silent | Trouble::Demoted | Trouble::Slow(_) => true,
    }
}

/// The first operation begins that long before the trouble, which is noticed after `noticed` at the latest, and each of
/// the others that much after the one before.
fn judge(rows: &'static [Row], (began_before, apart): (Duration, Duration), noticed: fn(Trouble) -> Duration) {
    let mut wrong = Vec::new();
    for trouble in TROUBLES {
        for (seed, bounds) in (0..).zip(BOUNDS) {
            let when = When::After(began_before);
            for (name, took, outcome) in outcomes(seed, (rows, apart), (trouble, when), bounds) {
                let number = rows.iter().position(|row| row.0 == name).unwrap();
                let (_, has_timeout, _) = rows[number];
                let later = apart * u32::try_from(number).unwrap();
                let before = began_before.saturating_sub(later);
                let (timeout, patience) = (bounds.timeout.filter(|_| has_timeout), bounds.patience());
                let mut cell = |what: String| wrong.push(format!("{trouble:?}, {bounds:?}, {name}: {took:?}, {what}"));
                let error = match outcome {
                    Ok(()) => {
                        cell("it went through".to_owned());
                        continue;
                    }
                    Err(error) => error,
                };
                let longest = timeout.unwrap_or(Duration::MAX).min(before + patience + noticed(trouble));
                let is_timed_out = timeout.is_some_and(|timeout| took == timeout && error.is_retryable());
                // Not given up before its time either. A ticket without answers fails one member, whichever that is.
                let own = if name.starts_with("queued") { Duration::ZERO } else { before + patience };
                let least = (began_before + patience).saturating_sub(later).max(own);
                let is_early = took < timeout.unwrap_or(Duration::MAX).min(least);
                let may_be_early = !error.is_retryable() || bounds.retry_timeout.is_zero();
                if took > longest
                    || (is_early && !may_be_early)
                    || (error.kind() == ErrorKind::TimedOut) != is_timed_out
                    || (is_timed_out && !tells(&format!("{error:#}"), name, trouble))
                {
                    cell(format!("{error:#}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} cells:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_bound_of_a_request_holds_whatever_is_wrong() {
    judge(ROWS, (Duration::ZERO, Duration::ZERO), |_| Duration::ZERO);
}

/// The time counts from the first heartbeat without an answer. One is due when a socket is lost.
#[test]
fn every_bound_of_a_wait_in_the_queue_holds_whatever_is_wrong() {
    judge(QUEUED, (Duration::from_millis(50), Duration::ZERO), heartbeat);
}

/// When the first heartbeat is sent that gets no answer.
fn heartbeat(trouble: Trouble) -> Duration {
    match trouble {
        Trouble::Absent | Trouble::Unreachable | Trouble::Denies => Duration::ZERO,
        Trouble::Refuses(_) | Trouble::Silent | Trouble::Slow(_) | Trouble::Demoted => LEASE / 3,
    }
}

/// Each member's time counts from when it joined, if that is later than the first request without an answer.
#[test]
fn every_bound_of_a_member_of_a_cohort_holds_whatever_is_wrong() {
    for apart in [1, 30, 130, 500].map(Duration::from_millis) {
        judge(COHORT, (Duration::ZERO, apart), |_| Duration::ZERO);
        judge(COHORT_QUEUED, (Duration::from_millis(50), apart), heartbeat);
    }
}

/// The operations that need nothing to be prepared.
fn unprepared() -> &'static [Row] {
    let count = ROWS.iter().position(|row| row.0 == "release").unwrap();
    &ROWS[..count]
}

/// With a `retry_timeout` of zero no request is sent again, but the first one is sent once there is a connection.
#[test]
fn an_operation_that_waits_for_the_first_connect_goes_on_when_it_succeeds() {
    for (retry_timeout, over) in [(0, 500), (700, 400), (10_000, 7000)] {
        for trouble in [Trouble::Absent, Trouble::Unreachable, Trouble::Silent] {
            let when = When::First(Some(Duration::from_millis(over)));
            for (name, took, outcome) in
                outcomes(1, (unprepared(), Duration::ZERO), (trouble, when), bounds(retry_timeout, 3000, None))
            {
                // The latch and the semaphore of the other operations may be there or not.
                assert!(outcome.is_ok(), "{trouble:?}, {retry_timeout} ms, {name}: {took:?}, {outcome:?}");
            }
        }
    }
}

/// The message says where the client connects to, since when, and what happened last.
#[test]
fn a_wait_for_the_first_connect_in_vain_is_bounded_and_says_so() {
    for trouble in [Trouble::Absent, Trouble::Unreachable, Trouble::Silent, Trouble::Denies] {
        let bounds = bounds(700, 3000, None);
        for (name, took, outcome) in outcomes(1, (unprepared(), Duration::ZERO), (trouble, When::First(None)), bounds) {
            let error = format!("{:#}", outcome.unwrap_err());
            let told: &[&str] = match trouble {
                Trouble::Absent => &["h:1/0: connection refused", "(connecting for 700ms)"],
                Trouble::Denies => &["h:1/0: ", "WRONGPASS"],
                _ => &["h:1/0: the first attempt to connect has not ended (connecting for 700ms)"],
            };
            let is_in_time = took == bounds.retry_timeout || trouble == Trouble::Denies && took < bounds.retry_timeout;
            assert!(is_in_time, "{trouble:?}, {name}: {took:?}");
            assert!(told.iter().all(|told| error.contains(told)), "{trouble:?}, {name}: {error}");
        }
    }
}
