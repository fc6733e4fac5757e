//! The client.

use std::future::IntoFuture;
use std::time::Duration;

use bowline::{Deadlock, HoldChanges, NameInUse, NameState, PrimitiveKind, Quota, Result, Schedule, Stats, blocking};
use futures::future::BoxFuture;
use uuid::Uuid;

use super::Either;
use super::barrier::Barrier;
use super::changes::Changes;
use super::double_barrier::DoubleBarrier;
use super::election::Election;
use super::limiter::RateLimiter;
use super::once::Once;
use super::primitives::{CountDownLatch, Lock, MultiLock, RwLock, Semaphore};
use super::redisson::Redisson;
use super::thread::{either, on_a_thread};

#[derive(Clone, Debug)]
pub(crate) struct Client(pub(super) Either<bowline::Client, blocking::Client>);

/// A handle of the client's, of either API.
macro_rules! handle {
    ($client:expr, $method:ident $(, $argument:expr)*) => {
        match &$client.0 {
            Either::Async(client) => Either::Async(client.$method($($argument),*)),
            Either::Blocking(client) => Either::Blocking(client.$method($($argument),*)),
        }
    };
}

pub(super) use handle;

impl Client {
    pub(crate) fn lock(&self, name: &str) -> Lock {
        Lock(handle!(self, lock, name))
    }

    pub(crate) fn rw_lock(&self, name: &str) -> RwLock {
        RwLock(handle!(self, rw_lock, name))
    }

    pub(crate) fn semaphore(&self, name: &str, limit: u32) -> Semaphore {
        Semaphore(handle!(self, semaphore, name, limit))
    }

    pub(crate) fn latch(&self, name: &str) -> CountDownLatch {
        CountDownLatch(handle!(self, latch, name))
    }

    pub(crate) fn barrier(&self, name: &str, parties: u32) -> Barrier {
        Barrier(handle!(self, barrier, name, parties))
    }

    pub(crate) fn double_barrier(&self, name: &str, parties: u32) -> DoubleBarrier {
        DoubleBarrier(handle!(self, double_barrier, name, parties))
    }

    pub(crate) fn changes(&self, name: NameInUse) -> Changes<HoldChanges> {
        Changes::of(match &self.0 {
            Either::Async(client) => Either::Async(client.changes(name)),
            Either::Blocking(client) => Either::Blocking(client.changes(name)),
        })
    }

    pub(crate) fn once(&self, name: &str, schedule: impl Into<Schedule>) -> Once {
        let schedule = schedule.into();
        Once(handle!(self, once, name, schedule))
    }

    pub(crate) fn election(&self, name: &str) -> Election {
        Election(handle!(self, election, name))
    }

    pub(crate) fn rate_limiter(&self, name: &str, quota: Quota) -> RateLimiter {
        RateLimiter(handle!(self, rate_limiter, name, quota))
    }

    pub(crate) fn redisson(&self) -> Redisson {
        Redisson(handle!(self, redisson))
    }

    pub(crate) fn lock_all(&self, names: &[&str]) -> MultiLock {
        MultiLock(handle!(self, lock_all, names))
    }

    /// Names nothing yet, for acquisitions by the API of this client.
    pub(crate) fn multi_lock(&self) -> MultiLock {
        self.lock_all(&[])
    }

    /// The names of this kind, or of all kinds, that begin like this.
    pub(crate) fn names(
        &self,
        kind: Option<PrimitiveKind>,
        begins: &str,
    ) -> BoxFuture<'static, Result<Vec<NameInUse>>> {
        let names = handle!(self, names);
        let names = match names {
            Either::Async(names) => Either::Async(names.starting_with(begins)),
            Either::Blocking(names) => Either::Blocking(names.starting_with(begins)),
        };
        match names {
            Either::Async(names) => Box::pin(kind.into_iter().fold(names, bowline::Names::of_kind).all()),
            Either::Blocking(names) => {
                on_a_thread(move || kind.into_iter().fold(names, blocking::Names::of_kind).all())
            }
        }
    }

    pub(crate) fn look(&self, names: Vec<NameInUse>) -> BoxFuture<'static, Vec<Result<NameState>>> {
        match self.0.clone() {
            Either::Async(client) => Box::pin(async move { client.look(&names).await }),
            Either::Blocking(client) => on_a_thread(move || client.look(&names).unwrap()),
        }
    }

    /// Those among names that begin like this, which last for so long.
    pub(crate) fn deadlocks(&self, begins: &str, lasting: Duration) -> BoxFuture<'static, Result<Vec<Deadlock>>> {
        let search = either!(&self.0, client => client.deadlocks()).starting_with(begins).lasting(lasting);
        match self.0 {
            Either::Async(_) => search.into_future(),
            Either::Blocking(_) => on_a_thread(move || search.block()),
        }
    }

    pub(crate) fn id(&self) -> Uuid {
        either!(&self.0, client => client.id())
    }

    pub(crate) fn stats(&self) -> Stats {
        either!(&self.0, client => client.stats())
    }

    pub(crate) fn close(&self) -> BoxFuture<'static, ()> {
        match self.0.clone() {
            Either::Async(client) => Box::pin(async move { client.close().await }),
            Either::Blocking(client) => on_a_thread(move || client.close().unwrap()),
        }
    }
}

impl From<bowline::Client> for Client {
    fn from(client: bowline::Client) -> Self {
        Self(Either::Async(client))
    }
}
