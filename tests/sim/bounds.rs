//! The bounds that a user can set hold to the millisecond, for every operation and whatever is wrong with the server.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::{Client, Config, ErrorKind, Result, dialled};
use bowline_testkit::operations::{LEASE, Operations, Prepared, Row, asynchronous, both, ready};
use futures::FutureExt;
use futures::future::BoxFuture;

use self::place::{Place, TROUBLES, Trouble, Wires};
use self::rows::{COHORT, COHORT_QUEUED, tries, waits};
use crate::executor::on_new_machine;

mod place;
mod red_lock;
mod rows;

/// The process under test.
const PROCESS: usize = 1;

/// What limits an operation.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    retry_timeout: Duration,
    command_timeout: Duration,
    /// Of those operations that have one.
    timeout: Option<Duration>,
    lease: Duration,
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
        lease: LEASE,
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

const ALL: Operations<Client> = asynchronous::OPERATIONS;

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
    (rows, apart): (&[Row<Client>], Duration),
    (trouble, when): (Trouble, When),
    bounds: Bounds,
) -> Vec<Outcome> {
    on_new_machine(seed, |machine| {
        let places = [(); 1].map(|()| Place::new(machine, seed));
        let outcomes: Arc<Mutex<Vec<Outcome>>> = Arc::default();
        let (executor, clock, told, place) =
            (machine.process(PROCESS), machine.clone(), outcomes.clone(), places[0].clone());
        let (begin, rows) = (executor.clone(), rows.to_vec());
        let count = rows.len();
        begin.spawn(Box::pin(async move {
            let Bounds { retry_timeout, command_timeout, timeout, lease } = bounds;
            let config = Config::builder().lease(lease).retry_timeout(retry_timeout).command_timeout(command_timeout);
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
                all.push((name, prepare(client.clone(), timeout.filter(|_| has_timeout)).await));
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
        let all = machine.run_until(Duration::from_secs(600), || outcomes.lock().unwrap().len() == count);
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
        // Those that wait in the queue have asked for nothing since.
        Trouble::Refuses(_) if name.contains("queued") => true,
        Trouble::Refuses(line) => error.contains(line),
        Trouble::Silent | Trouble::Demoted | Trouble::Slow(_) => true,
    }
}

/// The first operation begins that long before the trouble, which is noticed after `noticed` at the latest, and each of
/// the others that much after the one before.
fn judge(rows: &[Row<Client>], (began_before, apart): (Duration, Duration), noticed: fn(Trouble) -> Duration) {
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
                // What may have been executed is not sent again.
                let is_once = ["check", "until_ready"].contains(&name) && error.kind() == ErrorKind::Unavailable;
                let may_be_early = !error.is_retryable() || bounds.retry_timeout.is_zero() || is_once;
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
    judge(&[ALL.plain, ALL.held].concat(), (Duration::ZERO, Duration::ZERO), |_| Duration::ZERO);
}

/// The time counts from the first heartbeat without an answer. One is due when a socket is lost.
#[test]
fn every_bound_of_a_wait_in_the_queue_holds_whatever_is_wrong() {
    judge(ALL.queued, (Duration::from_millis(50), Duration::ZERO), heartbeat);
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

/// A ticket is refreshed after a third of its lease. The answer to that is the cause if the caller's time ends later. A
/// follower has asked for nothing, and says what its leader was answered.
#[test]
fn a_waiter_whose_time_is_over_says_what_those_were_answered_that_ask_for_it() {
    let bounds = Bounds { lease: Duration::from_secs(3), ..bounds(10_000, 3000, Some(4500)) };
    let mut wrong = Vec::new();
    // What denies access ends a wait before its time.
    for trouble in TROUBLES.into_iter().filter(|trouble| *trouble != Trouble::Denies) {
        let queue_up = When::After(Duration::from_millis(50));
        let outcomes = [(ALL.queued, queue_up), (ALL.followers, When::After(Duration::ZERO))]
            .map(|(rows, when)| outcomes(1, (rows, Duration::ZERO), (trouble, when), bounds));
        for (name, took, outcome) in outcomes.into_iter().flatten() {
            let error = outcome.unwrap_err();
            let shown = format!("{error:#}");
            let told = match trouble {
                Trouble::Refuses(line) => line,
                Trouble::Demoted => "READONLY",
                Trouble::Silent | Trouble::Slow(_) => "no answer",
                Trouble::Absent | Trouble::Unreachable | Trouble::Denies => "h:1/0: ",
            };
            if (Some(took), error.kind()) != (bounds.timeout, ErrorKind::TimedOut) || !shown.contains(told) {
                wrong.push(format!("{trouble:?}, {name}: {took:?}, {shown}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} cells:\n{}", wrong.len(), wrong.join("\n"));
}

/// With a `retry_timeout` of zero no request is sent again, but the first one is sent once there is a connection.
#[test]
fn an_operation_that_waits_for_the_first_connect_goes_on_when_it_succeeds() {
    for (retry_timeout, over) in [(0, 500), (700, 400), (10_000, 7000)] {
        for trouble in [Trouble::Absent, Trouble::Unreachable, Trouble::Silent] {
            let when = When::First(Some(Duration::from_millis(over)));
            for (name, took, outcome) in
                outcomes(1, (ALL.plain, Duration::ZERO), (trouble, when), bounds(retry_timeout, 3000, None))
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
        for (name, took, outcome) in outcomes(1, (ALL.plain, Duration::ZERO), (trouble, When::First(None)), bounds) {
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
