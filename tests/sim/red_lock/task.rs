//! What a task does with a `RedLock`.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bowline::{Executor, LockGuard, RedLock, Result};
use futures::future::{Either, select};

use super::{GiveUp, Ring, is_expected};
use crate::executor::Process;
use crate::random::Random;
use crate::world::MS;

pub struct Task {
    pub ring: Arc<Ring>,
    pub process: Process,
    pub name: String,
    pub lock: RedLock,
    pub executor: Arc<dyn Executor>,
    pub names: Vec<String>,
    pub random: Random,
}

impl Task {
    pub async fn live(mut self, operations: u64) {
        for _ in 0..operations {
            self.executor.sleep(self.random.between(Duration::ZERO, 100 * MS)).await;
            self.operate().await;
        }
        self.ring.state.lock().unwrap().running -= 1;
    }

    async fn operate(&mut self) {
        let name = self.random.pick(&self.names).clone();
        let started = self.ring.machine.now();
        let gives_up = self.gives_up();
        let acquired = if self.random.one_in(4) {
            self.or_give_up(async { self.lock.try_lock(&name).await }, gives_up).await
        } else {
            let timeout = self.random.one_in(3).then(|| self.random.between(MS, 3000 * MS));
            let mut acquire = self.lock.lock(&name);
            if let Some(timeout) = timeout {
                acquire = acquire.timeout(timeout);
            }
            self.or_give_up(async { acquire.await.map(Some) }, gives_up).await
        };
        match acquired {
            Some(Ok(Some(guard))) => self.hold(&name, started, guard).await,
            Some(Ok(None)) => self.log(&name, "busy"),
            Some(Err(error)) => self.failed(&name, &error),
            None => self.log(&name, "dropped"),
        }
    }

    async fn hold(&mut self, name: &str, started: Duration, guard: LockGuard) {
        let guard = Arc::new(guard);
        self.log(name, &format!("token {} held, {:?} left", guard.token(), guard.remaining()));
        self.ring.acquired(self.process, name, started, &guard);
        let work = if self.random.one_in(6) { 3000 * MS } else { 20 * MS };
        let work = self.random.between(Duration::ZERO, work);
        if let Err(error) = guard.protect(self.executor.sleep(work)).await {
            self.failed(name, &error);
        }
        self.ring.gone(name, &guard);
        let Some(guard) = Arc::into_inner(guard) else { return };
        if self.random.one_in(3) {
            self.log(name, "guard dropped");
            return drop(guard);
        }
        self.log(name, "released");
        let gives_up = self.gives_up();
        if let Some(Err(error)) = self.or_give_up(guard.release(), gives_up).await {
            self.failed(name, &error);
        }
    }

    fn gives_up(&mut self) -> Option<GiveUp> {
        self.random.one_in(5).then(|| match self.random.one_in(2) {
            true => GiveUp::Polls(self.random.below(30) as u32),
            false => GiveUp::After(self.random.between(Duration::ZERO, 100 * MS)),
        })
    }

    async fn or_give_up<T>(&self, future: impl Future<Output = Result<T>>, when: Option<GiveUp>) -> Option<Result<T>> {
        let mut future = pin!(future);
        match when {
            None => Some(future.await),
            Some(GiveUp::After(duration)) => match select(future, self.executor.sleep(duration)).await {
                Either::Left((output, _)) => Some(output),
                Either::Right(_) => None,
            },
            Some(GiveUp::Polls(mut polls)) => {
                poll_fn(|context| match polls.checked_sub(1) {
                    None => Poll::Ready(None),
                    Some(left) => {
                        polls = left;
                        future.as_mut().poll(context).map(Some)
                    }
                })
                .await
            }
        }
    }

    fn log(&self, name: &str, what: &str) {
        self.ring.machine.log(format!("{} {name} {what}", self.name));
    }

    fn failed(&self, name: &str, error: &bowline::Error) {
        self.log(name, &error.to_string());
        self.ring.must(is_expected(error.kind()), || format!("{} {name}: {error}", self.name));
    }
}
