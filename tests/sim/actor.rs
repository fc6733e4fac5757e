//! What the tasks of a process do: acquire, work, release, give up.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bowline::{Client, Error, ErrorKind, Executor, Holder, Upgrade};
use futures::future::{Either, select};

use crate::executor::Process;
use crate::guard::{Guard, How, Waits, What};
use crate::judge::view::permits;
use crate::random::Random;
use crate::world::{Faults, Got, MS, Workload, World};

/// When a future is dropped before it is done.
pub enum GiveUp {
    After(Duration),
    Polls(u32),
}

/// One task of a process.
pub struct Actor {
    pub world: Arc<World>,
    pub process: Process,
    pub name: String,
    pub client: Client,
    pub executor: Arc<dyn Executor>,
    pub names: Vec<String>,
    /// The client's.
    pub lease: Duration,
    pub random: Random,
}

impl Actor {
    pub async fn live(mut self, operations: u64) {
        let holder = Holder::new();
        for _ in 0..operations {
            let pause = self.random.between(Duration::ZERO, if self.world.crowd { 3 * MS } else { 30 * MS });
            self.executor.sleep(pause).await;
            match self.world.workload {
                Workload::Latches => self.use_latch().await,
                Workload::Leases => self.use_lease().await,
                Workload::Locks | Workload::Permits | Workload::Retained => self.operate(&holder).await,
            }
        }
        let mut state = self.world.state.lock().unwrap();
        if let Some(running) = state.running.get_mut(&self.process) {
            *running -= 1;
            if *running == 0 {
                state.running.remove(&self.process);
            }
        }
    }

    async fn operate(&mut self, holder: &Holder) {
        let name = self.random.pick(&self.names).clone();
        let what = match self.world.workload {
            Workload::Permits => self.what(&name),
            Workload::Retained if self.random.one_in(2) => *self.random.pick(&[What::Write, What::Write, What::Read]),
            Workload::Locks | Workload::Leases | Workload::Latches | Workload::Retained => What::Lock,
        };
        if let What::Permits(_) = what
            && !self.world.calm
            && self.random.one_in(12)
        {
            return self.set_limit(&name).await;
        }
        let started = self.world.machine.now();
        let awake = self.world.machine.awake(self.process);
        let mut deadline = None;
        let with_holder = self.random.one_in(4);
        let calm = self.world.calm;
        let lease = self.random.one_in(3).then(|| self.random.between(100 * MS, 2000 * MS)).filter(|_| !calm);
        let gives_up = self.maybe_gives_up(4, 60 * MS);
        let waits = if self.random.one_in(4) {
            deadline = Some(self.world.longest_try());
            None
        } else {
            let fair = self.random.one_in(if self.world.crowd { 6 } else { 2 });
            let timeout = (!calm && self.random.one_in(3)).then(|| self.random.between(MS, 3000 * MS));
            deadline = timeout.or(deadline);
            let max_waiters = (!calm && self.random.one_in(8)).then(|| 1 + self.random.below(3) as u32);
            Some(Waits { fair, timeout, max_waiters })
        };
        let holder = Some(holder).filter(|_| with_holder && what.is_reentrant());
        let mut how = How { lease, holder, waits, ..How::default() };
        if self.world.workload == Workload::Retained {
            if what != What::Read && self.random.one_in(2) {
                how.lease = None;
                how.retained = Some(self.random.between(MS, self.lease / 3));
            }
            // A try that waits and gives up takes what others wait for.
            let longest = if calm { Duration::ZERO } else { 100 * MS };
            how.for_retained = Some(self.random.between(Duration::ZERO, longest));
            deadline = deadline.map(|deadline| deadline + longest);
        }
        let acquired = self.or_give_up(how.acquire(&self.client, what, &name), gives_up).await;
        self.in_time(&name, awake, deadline);
        if let What::Permits(count) = what {
            let over = acquired.as_ref().and_then(|acquired| acquired.as_ref().err()).map(Error::kind);
            self.over_limit(&what.key(&name), count.into(), started, over == Some(ErrorKind::OverLimit));
        }
        match acquired {
            Some(Ok(Some(guard))) => self.hold(&name, started, guard, holder).await,
            Some(Ok(None)) => self.world.log(format!("{} {name} {what:?} busy", self.name)),
            Some(Err(error)) => self.failed(&name, &error),
            None => self.world.log(format!("{} {name} {what:?} dropped", self.name)),
        }
    }

    pub fn what(&mut self, name: &str) -> What {
        if self.world.crowd && !self.random.one_in(4) {
            return if name.ends_with('0') { What::Permits(1) } else { What::Write };
        }
        if self.random.one_in(2) {
            let most = if self.random.one_in(4) { permits(name) } else { 2 };
            return What::Permits(1 + self.random.below(most.into()) as u32);
        }
        match self.random.below(6) {
            0 | 1 => What::Write,
            2 => What::Upgradable,
            _ => What::Read,
        }
    }

    /// Drops the future, wherever it stands by then.
    pub async fn or_give_up<T>(&self, future: impl Future<Output = T>, when: Option<GiveUp>) -> Option<T> {
        let mut future = pin!(future);
        match when {
            None => Some(future.await),
            Some(GiveUp::After(duration)) => match select(future, self.executor.sleep(duration)).await {
                Either::Left((output, _)) => Some(output),
                Either::Right(_) => None,
            },
            Some(GiveUp::Polls(mut polls)) => {
                poll_fn(|context| {
                    if polls == 0 {
                        return Poll::Ready(None);
                    }
                    polls -= 1;
                    let polled = future.as_mut().poll(context).map(Some);
                    if polls == 0 && polled.is_pending() { Poll::Ready(None) } else { polled }
                })
                .await
            }
        }
    }

    pub fn maybe_gives_up(&mut self, one_in: u64, longest: Duration) -> Option<GiveUp> {
        if self.world.calm || !self.random.one_in(one_in) {
            return None;
        }
        Some(if self.random.one_in(2) {
            GiveUp::Polls(self.random.below(8) as u32)
        } else {
            GiveUp::After(self.random.between(Duration::ZERO, longest))
        })
    }

    async fn hold(&mut self, name: &str, started: Duration, guard: Guard, holder: Option<&Holder>) {
        let guard = Arc::new(guard);
        self.log(name, &guard, "held");
        self.world.acquired(self, name, started, &guard, Got::Granted);
        if let Some(holder) = holder.filter(|_| self.random.one_in(2)) {
            self.enter(name, started, &guard, Some(holder)).await;
        }
        let Some(guard) = self.change(name, started, guard).await else { return };
        let work = if !self.world.calm && self.random.one_in(10) { 1500 * MS } else { 10 * MS };
        let work = self.random.between(Duration::ZERO, work);
        self.work(name, &guard, work).await;
        self.let_go(name, guard).await;
    }

    /// Works for as long as that under the guard's protection; returns whether it still held in the end.
    pub async fn work(&self, name: &str, guard: &Arc<Guard>, work: Duration) -> bool {
        let done = guard.protect(self.executor.sleep(work)).await;
        if let Err(error) = &done {
            self.log(name, guard, &error.to_string());
            self.world.lost(name, guard, guard.lost().await);
        }
        done.is_ok()
    }

    /// Releases the guard, or drops it.
    pub async fn let_go(&mut self, name: &str, guard: Arc<Guard>) {
        self.world.gone(name, &guard);
        let Some(guard) = Arc::into_inner(guard) else { return };
        // If the hold is over when the release arrives, the release hands nothing over.
        if guard.remaining() > self.world.longest_delay + MS {
            self.world.handing_over(&guard.what().key(name));
        }
        if self.random.one_in(3) {
            self.log(name, &guard, "dropped");
            drop(guard);
        } else {
            self.log(name, &guard, "released");
            let gives_up = self.maybe_gives_up(6, 5 * MS);
            let awake = self.world.machine.awake(self.process);
            let released = self.or_give_up(guard.release(), gives_up).await;
            self.in_time(name, awake, Some(self.world.longest_try()));
            if let Some(Err(error)) = released {
                self.failed(name, &error);
            }
        }
    }

    /// Acquires what is held already for the same holder; `None` is that of the scope.
    pub async fn enter(&mut self, name: &str, started: Duration, guard: &Guard, holder: Option<&Holder>) {
        let what = match guard.what() {
            What::Read | What::Upgradable | What::Write => match self.random.below(4) {
                0 | 1 => What::Write,
                2 => What::Upgradable,
                _ => What::Read,
            },
            what => what,
        };
        let how = How { holder, waits: Some(Waits::default()), ..How::default() };
        match how.acquire(&self.client, what, name).await {
            Ok(inner) => {
                let inner = Arc::new(inner.expect("it waits"));
                let entered = (inner.token(), inner.remaining()) == (guard.token(), guard.remaining());
                self.world.must(entered || !guard.is_valid(), || format!("{name}: re-entry got another hold"));
                let got = if entered { Got::Entered { units: guard.units() } } else { Got::Granted };
                self.world.acquired(self, name, started, &inner, got);
                self.world.gone(name, &inner);
            }
            Err(error) if error.kind() == ErrorKind::WouldDeadlock => {
                let expected = what.units() > guard.units();
                self.world.must(expected, || format!("{}: {error}", self.name));
            }
            Err(error) => self.failed(name, &error),
        }
    }

    /// A writer may go on as a reader of either kind, and the other way round.
    async fn change(&mut self, name: &str, started: Duration, guard: Arc<Guard>) -> Option<Arc<Guard>> {
        if matches!(guard.what(), What::Lock | What::Permits(_)) || !self.random.one_in(2) {
            return Some(guard);
        }
        self.world.gone(name, &guard);
        let (was, token) = (guard.what(), guard.token());
        let guard = Arc::into_inner(guard).expect("no other task has it");
        let gives_up = self.maybe_gives_up(6, 5 * MS);
        let awake = self.world.machine.awake(self.process);
        let (to, wait) = (self.random.below(4), self.random.between(MS, 2000 * MS));
        let waits = (was == What::Upgradable && to < 2).then_some((to == 0).then_some(wait));
        let changed = self.or_give_up(changed(guard, to, wait), gives_up).await;
        let longest = self.world.longest_try();
        // It asks before the wait and after it.
        self.in_time(name, awake, waits.map_or(Some(longest), |limit| limit.map(|limit| limit + 2 * longest)));
        match changed {
            Some(Ok(guard)) => {
                let same = was == What::Write || guard.what() != What::Write;
                self.log(name, &guard, if guard.what() == was { "not changed" } else { "changed" });
                let right = if same { guard.token() == token } else { guard.token() > token };
                self.world.must(right, || format!("I2 {name}: token {token} became {}", guard.token()));
                let guard = Arc::new(guard);
                let got = match was {
                    _ if same => Got::Kept,
                    What::Upgradable => Got::Upgraded { from: token },
                    _ => Got::Granted,
                };
                self.world.acquired(self, name, started, &guard, got);
                Some(guard)
            }
            Some(Err(error)) => {
                self.failed(name, &error);
                None
            }
            None => {
                self.world.log(format!("{} {name} change dropped", self.name));
                None
            }
        }
    }

    pub fn log(&self, name: &str, guard: &Guard, what: &str) {
        let (held, token, left) = (guard.what(), guard.token(), guard.remaining());
        self.world.log(format!("{} {name} {held:?} token {token} {what}, {left:?} left", self.name));
    }

    /// I11: an operation that has a deadline ended by then, not counting the time that the process stood still.
    pub fn in_time(&self, name: &str, awake: Duration, deadline: Option<Duration>) {
        let took = self.world.machine.awake(self.process) - awake;
        if let Some(deadline) = deadline {
            let late = took > deadline + deadline / 1000 + MS;
            self.world.must(!late, || format!("I11 {} {name} took {took:?}, not {deadline:?}", self.name));
        }
    }

    pub fn failed(&self, name: &str, error: &Error) {
        self.world.log(format!("{} {name} {error}", self.name));
        let expected = match error.kind() {
            ErrorKind::TimedOut | ErrorKind::QueueFull | ErrorKind::Lost | ErrorKind::OverLimit => true,
            ErrorKind::Unavailable => self.world.faults.any(),
            ErrorKind::Refused => {
                let Faults { freezes, failovers, forks, cluster, .. } = self.world.faults;
                freezes || failovers || forks || cluster
            }
            ErrorKind::Unacknowledged => self.world.faults.acknowledged,
            _ => false,
        };
        self.world.must(expected, || format!("{}: {error}", self.name));
    }
}

/// Changes what is held of a read-write lock: to what is drawn, of the changes that the guard has.
async fn changed(guard: Guard, to: u64, wait: Duration) -> bowline::Result<Guard> {
    let upgraded = |upgrade| match upgrade {
        Upgrade::Writing(guard) => Guard::Write(guard),
        Upgrade::Shared(guard) => Guard::Upgradable(guard),
    };
    match (guard, to) {
        (Guard::Write(guard), 0) => guard.downgrade_to_upgradable().await.map(Guard::Upgradable),
        (Guard::Write(guard), _) => guard.downgrade().await.map(Guard::Read),
        (Guard::Read(guard), _) => guard.try_upgrade().await.map(|upgrade| match upgrade {
            Upgrade::Writing(guard) => Guard::Write(guard),
            Upgrade::Shared(guard) => Guard::Read(guard),
        }),
        (Guard::Upgradable(guard), 0) => guard.upgrade_within(wait).await.map(upgraded),
        (Guard::Upgradable(guard), 1) => guard.upgrade().await.map(Guard::Write),
        (Guard::Upgradable(guard), 2) => guard.try_upgrade().await.map(upgraded),
        (Guard::Upgradable(guard), _) => guard.downgrade().await.map(Guard::Read),
        (guard, _) => Ok(guard),
    }
}
