//! What the tasks of a process do: acquire, work, release, give up.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bowline::{Client, Error, ErrorKind, Executor, Holder, LockGuard};
use futures::future::{Either, select};

use crate::executor::Process;
use crate::random::Random;
use crate::world::{MS, World};

/// When a future is dropped before it is done.
enum GiveUp {
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
    pub random: Random,
}

impl Actor {
    pub async fn live(mut self, operations: u64) {
        let holder = Holder::new();
        for _ in 0..operations {
            let pause = self.random.between(Duration::ZERO, 30 * MS);
            self.executor.sleep(pause).await;
            self.operate(&holder).await;
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
        let lock = self.client.lock(&name);
        let started = self.world.machine.now();
        let awake = self.world.machine.awake(self.process);
        let mut deadline = None;
        let with_holder = self.random.one_in(4);
        let calm = self.world.calm;
        let fixed = self.random.one_in(3).then(|| self.random.between(100 * MS, 2000 * MS)).filter(|_| !calm);
        let gives_up = self.maybe_gives_up(4, 60 * MS);
        let acquired = if self.random.one_in(4) {
            let mut attempt = lock.try_lock();
            if let Some(lease) = fixed {
                attempt = attempt.lease(lease);
            }
            if with_holder {
                attempt = attempt.holder(holder);
            }
            deadline = Some(self.world.longest_try());
            self.or_give_up(attempt.into_future(), gives_up).await
        } else {
            let mut attempt = if self.random.one_in(2) { lock.lock().fair() } else { lock.lock().non_fair() };
            if let Some(lease) = fixed {
                attempt = attempt.lease(lease);
            }
            if with_holder {
                attempt = attempt.holder(holder);
            }
            if !calm && self.random.one_in(3) {
                let timeout = self.random.between(MS, 3000 * MS);
                deadline = Some(timeout);
                attempt = attempt.timeout(timeout);
            }
            if !calm && self.random.one_in(8) {
                attempt = attempt.max_waiters(1 + self.random.below(3) as u32);
            }
            let waits = async { attempt.await.map(Some) };
            self.or_give_up(waits, gives_up).await
        };
        self.in_time(&name, awake, deadline);
        match acquired {
            Some(Ok(Some(guard))) => self.hold(&name, started, guard, with_holder.then_some(holder)).await,
            Some(Ok(None)) => self.world.log(format!("{} {name} busy", self.name)),
            Some(Err(error)) => self.failed(&name, &error),
            None => self.world.log(format!("{} {name} dropped", self.name)),
        }
    }

    /// Drops the future, wherever it stands by then.
    async fn or_give_up<T>(&self, future: impl Future<Output = T>, when: Option<GiveUp>) -> Option<T> {
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

    fn maybe_gives_up(&mut self, one_in: u64, longest: Duration) -> Option<GiveUp> {
        if self.world.calm || !self.random.one_in(one_in) {
            return None;
        }
        Some(if self.random.one_in(2) {
            GiveUp::Polls(self.random.below(8) as u32)
        } else {
            GiveUp::After(self.random.between(Duration::ZERO, longest))
        })
    }

    async fn hold(&mut self, name: &str, started: Duration, guard: LockGuard, holder: Option<&Holder>) {
        let guard = Arc::new(guard);
        self.world.log(format!("{} {name} token {} for {:?}", self.name, guard.token(), guard.remaining()));
        self.world.acquired(self, name, started, &guard, false);
        if let Some(holder) = holder.filter(|_| self.random.one_in(2)) {
            match self.client.lock(name).lock().holder(holder).await {
                Ok(inner) => {
                    let entered = inner.token() == guard.token();
                    self.world.must(entered || !guard.is_valid(), || format!("{name}: re-entry got another token"));
                    let inner = Arc::new(inner);
                    self.world.acquired(self, name, started, &inner, entered);
                    self.world.gone(name, &inner);
                }
                Err(error) => self.failed(name, &error),
            }
        }
        let work = if !self.world.calm && self.random.one_in(10) { 1500 * MS } else { 10 * MS };
        let work = self.random.between(Duration::ZERO, work);
        let done = guard.protect(self.executor.sleep(work)).await;
        if let Err(error) = &done {
            self.world.log(format!("{} {name} token {}: {error}", self.name, guard.token()));
        }
        self.world.gone(name, &guard);
        let Some(guard) = Arc::into_inner(guard) else { return };
        let token = guard.token();
        self.world.handing_over(name);
        if self.random.one_in(3) {
            self.world.log(format!("{} {name} token {token} dropped", self.name));
            drop(guard);
        } else {
            self.world.log(format!("{} {name} token {token} released", self.name));
            let gives_up = self.maybe_gives_up(6, 5 * MS);
            let awake = self.world.machine.awake(self.process);
            let released = self.or_give_up(guard.release(), gives_up).await;
            self.in_time(name, awake, Some(self.world.longest_try()));
            if let Some(Err(error)) = released {
                self.failed(name, &error);
            }
        }
    }

    /// I11: an operation that has a deadline ended by then, not counting the time that the process stood still.
    fn in_time(&self, name: &str, awake: Duration, deadline: Option<Duration>) {
        let took = self.world.machine.awake(self.process) - awake;
        if let Some(deadline) = deadline {
            let late = took > deadline + deadline / 1000 + MS;
            self.world.must(!late, || format!("I11 {} {name} took {took:?}, not {deadline:?}", self.name));
        }
    }

    fn failed(&self, name: &str, error: &Error) {
        self.world.log(format!("{} {name} {error}", self.name));
        let expected = match error.kind() {
            ErrorKind::TimedOut | ErrorKind::QueueFull | ErrorKind::Lost => true,
            ErrorKind::Unavailable => self.world.faults.any(),
            _ => false,
        };
        self.world.must(expected, || format!("{}: {error}", self.name));
    }
}
