//! The same bounds, for a `RedLock` of whose masters none, a minority or a majority is in trouble.

#![expect(clippy::async_yields_async, reason = "an operation is prepared first, and begins later")]

use bowline::{Executor, LockGuard, MultiLock, RedLock};

use super::*;

/// How many masters there are, and which of them are in trouble.
type Ring = (usize, &'static [usize]);

const RINGS: [Ring; 7] = [(3, &[]), (3, &[0]), (3, &[0, 1]), (3, &[1, 2]), (5, &[0, 1]), (5, &[0, 3]), (5, &[0, 3, 4])];

const SLOW: [Trouble; 2] = [Trouble::Slow(Duration::from_millis(20)), Trouble::Slow(Duration::from_secs(5))];

/// The default of a `RedLock`.
const NODE_TIMEOUT: Duration = Duration::from_millis(500);

/// What a program has.
#[derive(Clone)]
struct Program {
    locks: RedLock,
    /// Of other clients, which take their turns on the last master.
    other: RedLock,
    executor: Arc<dyn Executor>,
}

impl Program {
    /// What the work waits for goes after a while.
    fn behind(&self, held: LockGuard, work: Prepared) -> Prepared {
        self.executor.spawn({
            let executor = self.executor.clone();
            async move {
                executor.sleep(HELD).await;
                drop(held);
            }
            .boxed()
        });
        work
    }
}

/// How long others hold what is waited for.
const HELD: Duration = Duration::from_secs(5);

/// An operation: its name, what it is, and how it is prepared.
type Row = (&'static str, Kind, fn(Program, Option<Duration>) -> BoxFuture<'static, Prepared>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Needs a majority, and has a timeout of its own.
    Acquires,
    /// Needs a majority, and tells after at most one wait for it.
    Ends,
    /// Tells what it has heard within the time for one answer.
    Reads,
}

use Kind::{Acquires, Ends, Reads};

const ROWS: &[Row] = &[
    ("lock", Acquires, |it, timeout| ready(waits(it.locks.lock("lock"), timeout))),
    ("try_lock", Acquires, |it, timeout| ready(tries(it.locks.try_lock("try_lock"), timeout))),
    ("fixed", Acquires, |it, timeout| ready(waits(it.locks.lock("fixed").expires_after(LEASE), timeout))),
    ("non_fair", Acquires, |it, timeout| {
        let two = [(); 2].map(|()| waits(it.locks.lock("non_fair").non_fair(), timeout));
        ready(both(two))
    }),
    ("several", Acquires, |it, timeout| {
        let several = MultiLock::new().red_lock(&it.locks, "one").red_lock(&it.locks, "two");
        ready(waits(several.acquire(), timeout))
    }),
    ("release", Ends, |it, _| {
        Box::pin(async move {
            let guard = it.locks.lock("release").await.unwrap();
            guard.release().boxed()
        })
    }),
    ("extend", Ends, |it, _| {
        Box::pin(async move {
            let guard = it.locks.lock("extend").expires_after(LEASE).await.unwrap();
            async move { guard.extend(LEASE).await }.boxed()
        })
    }),
];

const LOOKS: &[Row] = &[
    ("inspect", Reads, |it, _| ready(async move { it.locks.inspect("inspect").await.map(drop) }.boxed())),
    ("inspect held", Reads, |it, _| {
        Box::pin(async move {
            let held = it.other.lock("inspect held").await.unwrap();
            let locks = it.locks.clone();
            it.behind(held, async move { locks.inspect("inspect held").await.map(drop) }.boxed())
        })
    }),
];

/// A look takes two answers of each master: the second one is the label of the holder.
const TWO_ARE_LATE: Trouble = Trouble::Slow(Duration::from_millis(300));

/// Acquisitions that wait behind others when the trouble begins.
const QUEUED: &[Row] = &[
    ("queued", Acquires, |it, timeout| {
        Box::pin(async move {
            let held = it.locks.lock("queued").await.unwrap();
            it.behind(held, waits(it.locks.lock("queued"), timeout))
        })
    }),
    ("queued member", Acquires, |it, timeout| {
        Box::pin(async move {
            let held = it.locks.lock("queued member").await.unwrap();
            let two = [(); 2].map(|()| waits(it.locks.lock("queued member").non_fair(), timeout));
            it.behind(held, both(two))
        })
    }),
    // It has its turn.
    ("contested", Acquires, |it, timeout| {
        Box::pin(async move {
            let held = it.other.lock("contested").await.unwrap();
            it.behind(held, waits(it.locks.lock("contested"), timeout))
        })
    }),
];

/// What became of the operations, and what is left on the servers.
type Results = (Vec<Outcome>, Vec<String>);

/// All of these operations at once, and then everybody is well again.
fn results(
    seed: u64,
    rows: &'static [Row],
    (ring, trouble): (Ring, Trouble),
    before: Duration,
    bounds: Bounds,
) -> Results {
    on_new_machine(seed, |machine| {
        let places: Vec<_> = (0..ring.0).map(|_| Place::new(machine, seed)).collect();
        let (executor, clock, told) =
            (machine.process(PROCESS), machine.clone(), Arc::<Mutex<Vec<Outcome>>>::default());
        let (wires, outcomes) = (Arc::new(Wires(places.clone())), told.clone());
        executor.clone().spawn(Box::pin(async move {
            let Bounds { retry_timeout, command_timeout, timeout, lease } = bounds;
            let config = Config::builder().lease(lease).retry_timeout(retry_timeout).command_timeout(command_timeout);
            let config = config.build().unwrap();
            let mut all = Vec::new();
            for n in 0..2 * ring.0 {
                let url = format!("redis://h:{}", n % ring.0 + 1);
                let connection = dialled::open(executor.clone(), wires.clone(), &url, &config).await.unwrap();
                all.push(Client::connect(executor.clone(), Arc::new(connection), config.clone()).await.unwrap());
            }
            let others = all.split_off(ring.0).into_iter().rev();
            let [locks, other] =
                [all, others.collect()].map(|all| RedLock::builder(all).new_masters(true).build().unwrap());
            let program = Program { locks, other, executor: executor.clone() };
            let mut all = Vec::new();
            for (name, kind, prepare) in rows {
                let timeout = timeout.filter(|_| *kind == Acquires);
                all.push((*name, prepare(program.clone(), timeout).await));
            }
            let begins = || ring.1.iter().for_each(|n| wires.0[*n].set(Some(trouble)));
            if before.is_zero() {
                begins();
            }
            for (name, work) in all {
                let (clock, told, start) = (clock.clone(), outcomes.clone(), clock.now());
                executor.spawn(Box::pin(async move {
                    let outcome = work.await;
                    told.lock().unwrap().push((name, clock.now() - start, outcome));
                }));
            }
            if !before.is_zero() {
                executor.sleep(before).await;
                begins();
            }
            while outcomes.lock().unwrap().len() < rows.len() {
                executor.sleep(Duration::from_millis(100)).await;
            }
            // What still waits at the silent servers is too late to be executed then.
            executor.sleep(bounds.patience() + Duration::from_millis(200)).await;
            wires.0.iter().for_each(|place| place.set(None));
            // Well within the lease.
            executor.sleep(LEASE / 4).await;
            outcomes.lock().unwrap().push(("", Duration::ZERO, Ok(())));
        }));
        let all = machine.run_until(Duration::from_secs(600), || told.lock().unwrap().len() > rows.len());
        assert!(all.is_ok(), "{ring:?}, {trouble:?}, {bounds:?}: {all:?}, {:?}", told.lock().unwrap());
        let left = places
            .iter()
            .zip(1..)
            .flat_map(|(place, n)| place.held().into_iter().map(move |key| format!("{n} {key}")))
            .collect();
        let mut outcomes = std::mem::take(&mut *told.lock().unwrap());
        outcomes.pop();
        (outcomes, left)
    })
}

/// The operations begin that long before the trouble, which is noticed after `noticed` at the latest.
fn judge(rows: &'static [Row], troubles: &[Trouble], before: Duration, noticed: Duration) {
    let mut wrong = Vec::new();
    for trouble in troubles {
        for ring in RINGS {
            for (seed, bounds) in (0..).zip(BOUNDS) {
                let (outcomes, left) = results(seed, rows, (ring, *trouble), before, bounds);
                let is_lost = 2 * ring.1.len() > ring.0;
                let mut cell = |what: String| wrong.push(format!("{trouble:?} {ring:?} {bounds:?}: {what}"));
                if !left.is_empty() {
                    cell(format!("left: {left:?}"));
                }
                for (name, took, outcome) in outcomes {
                    let kind = rows.iter().find(|row| row.0 == name).unwrap().1;
                    let (timeout, patience) = (bounds.timeout.filter(|_| kind == Acquires), bounds.patience());
                    let patience = if kind == Reads { patience.min(NODE_TIMEOUT) } else { patience };
                    let timeout = timeout.unwrap_or(Duration::MAX);
                    let waits = if is_lost || before.is_zero() { Duration::ZERO } else { HELD };
                    let longest = timeout.min(before + waits + patience + noticed);
                    let mut cell = |what: String| cell(format!("{name}: {took:?}, {what}"));
                    // One acquisition after the other, each with a time of its own, and random pauses between.
                    let is_answered = outcome.is_ok() || *trouble == SLOW[0];
                    let are_several = ["several", "non_fair"].contains(&name) && is_answered;
                    let longest = if are_several { longest * 3 } else { longest };
                    if took > longest {
                        cell(format!("too long, {outcome:?}"));
                        continue;
                    }
                    if kind == Reads || (*trouble == SLOW[0]) {
                        continue;
                    }
                    match outcome {
                        Ok(()) if is_lost => cell("it went through".to_owned()),
                        Ok(()) => {}
                        Err(error) if !is_lost && took < timeout => cell(format!("{error:#}")),
                        Err(error) => {
                            let is_timed_out = took == timeout && error.is_retryable();
                            let may_be_early = kind == Ends || !error.is_retryable() || bounds.retry_timeout.is_zero();
                            let is_refused = matches!(trouble, Trouble::Refuses(_)) && kind == Acquires;
                            if bounds.retry_timeout.is_zero() && is_refused && before.is_zero() && !took.is_zero() {
                                cell("a refusal was not the last word".to_owned());
                            }
                            let is_early = took < timeout.min(before + patience);
                            if (is_early && !may_be_early) || (error.kind() == ErrorKind::TimedOut) != is_timed_out {
                                cell(format!("{error:#}"));
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} cells:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_bound_of_a_red_lock_holds_whatever_is_wrong() {
    judge(ROWS, &TROUBLES, Duration::ZERO, Duration::ZERO);
}

#[test]
fn every_bound_of_a_red_lock_holds_with_slow_masters() {
    judge(ROWS, &SLOW, Duration::ZERO, Duration::ZERO);
}

#[test]
fn every_bound_of_a_look_at_a_red_lock_holds() {
    judge(LOOKS, &TROUBLES, Duration::ZERO, Duration::ZERO);
    judge(LOOKS, &[SLOW[0], SLOW[1], TWO_ARE_LATE], Duration::ZERO, Duration::ZERO);
}

/// The masters are looked at every second or so.
#[test]
fn every_bound_of_a_wait_for_a_red_lock_holds_whatever_is_wrong() {
    judge(QUEUED, &TROUBLES, Duration::from_millis(600), Duration::from_secs(2));
}
