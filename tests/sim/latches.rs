//! What the tasks of a process do with latches.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::time::Duration;

use bowline::wire::{PREFIX, Resource};
use bowline::{CountDownLatch, ErrorKind, Result};

use crate::actor::Actor;
use crate::world::MS;

#[derive(Debug)]
enum Use {
    Set(u32, Duration),
    CountDown,
    Wait(Option<Duration>),
    Count,
    Inspect,
    Delete,
}

impl Use {
    async fn of(&self, latch: &CountDownLatch) -> Result<u64> {
        match self {
            Self::Set(count, ttl) => latch.try_set(*count, *ttl).await.map(u64::from),
            Self::CountDown => latch.count_down().await,
            Self::Wait(None) => latch.wait().await.map(|()| 0),
            Self::Wait(Some(timeout)) => latch.wait().timeout(*timeout).await.map(|()| 0),
            Self::Count => latch.count().await,
            Self::Inspect => latch.inspect().await.map(|state| state.count),
            Self::Delete => latch.delete().await.map(u64::from),
        }
    }
}

impl Actor {
    pub async fn use_latch(&mut self) {
        let name = self.random.pick(&self.names).clone();
        let used = self.use_of_latch();
        let deadline = match used {
            Use::Wait(timeout) => timeout,
            _ => Some(self.world.longest_try()),
        };
        let gives_up = self.maybe_gives_up(4, 60 * MS);
        let awake = self.world.machine.awake(self.process);
        let (latch, judge) = (self.client.latch(&name), &self.world.server.judge);
        let n = judge.latch_used(Resource::latch(PREFIX, &name).unwrap().main());
        let done = self.or_give_up(self.as_use(n, used.of(&latch)), gives_up).await;
        let told = done.as_ref().map(|done| done.as_ref().map(drop).map_err(|error| error.kind()));
        let waited = told.filter(|_| matches!(used, Use::Wait(_)));
        judge.latch_left(n, matches!(done, Some(Ok(_))), waited, &self.world.server.clock());
        self.in_time(&name, awake, deadline);
        match done {
            Some(Ok(outcome)) => {
                self.world.state.lock().unwrap().acquired += 1;
                self.world.log(format!("{} {name} {used:?}: {outcome}", self.name));
            }
            Some(Err(error)) => {
                let right = error.kind() != ErrorKind::Lost || matches!(used, Use::Wait(_));
                self.world.must(right, || format!("{} {used:?}: {error}", self.name));
                self.failed(&name, &error);
            }
            None => self.world.log(format!("{} {name} {used:?} dropped", self.name)),
        }
    }

    fn use_of_latch(&mut self) -> Use {
        match self.random.below(20) {
            0..5 => {
                let longest = *self.random.pick(&[300 * MS, 3000 * MS, 20_000 * MS]);
                Use::Set(1 + self.random.below(3) as u32, self.random.between(100 * MS, longest))
            }
            5..11 => Use::CountDown,
            11..17 => {
                let calm = self.world.calm;
                Use::Wait((!calm && self.random.one_in(3)).then(|| self.random.between(MS, 3000 * MS)))
            }
            17 => Use::Count,
            18 => Use::Inspect,
            _ => Use::Delete,
        }
    }

    /// Lets the judge know whose calls they are.
    async fn as_use<T>(&self, n: u64, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        let judge = &self.world.server.judge;
        poll_fn(|context| {
            judge.latch_polled(Some(n));
            let polled = future.as_mut().poll(context);
            judge.latch_polled(None);
            polled
        })
        .await
    }
}
