//! The primitives.

use std::time::Duration;

use bowline::{
    HoldChanges, LatchState, LatchWait, LockState, Result, Revoked, RwLockState, SemaphoreState, Token, Whose, blocking,
};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::Either;
use super::acquire::Acquire;
use super::changes::Changes;
use super::client::handle;
use super::guard::{LockGuard, MultiGuard, Permit, ReadGuard, UpgradableGuard, WriteGuard};
use super::thread::{call, on_a_thread};

/// An acquisition by `$method` of either API, whose options are set by `$set` or by `$set_blocking`.
macro_rules! acquire {
    ($of:expr, $method:ident($($argument:expr)?), $guard:ident, $set:ident, $set_blocking:ident) => {
        match $of.clone() {
            Either::Async(it) => {
                let builder = it.$method($($argument)?);
                Acquire::new(move |settings| {
                    settings.$set(builder).into_future().map(|got| got.map($guard::of)).boxed()
                })
            }
            Either::Blocking(it) => Acquire::new(move |settings| {
                on_a_thread(move || settings.$set_blocking(it.$method($($argument)?)).block().map($guard::of_blocking))
            }),
        }
    };
}

pub(super) use acquire;

/// As `acquire!`, of an acquisition that does not wait.
macro_rules! try_acquire {
    ($of:expr, $method:ident($($argument:expr)?), $guard:ident, $set:ident, $set_blocking:ident) => {
        match $of.clone() {
            Either::Async(it) => {
                let builder = it.$method($($argument)?);
                Acquire::new(move |settings| {
                    settings.$set(builder).into_future().map(|got| Ok(got?.map($guard::of))).boxed()
                })
            }
            Either::Blocking(it) => Acquire::new(move |settings| {
                on_a_thread(move || {
                    Ok(settings.$set_blocking(it.$method($($argument)?)).block()?.map($guard::of_blocking))
                })
            }),
        }
    };
}

pub(super) use try_acquire;

#[derive(Clone, Debug)]
pub(crate) struct Lock(pub(super) Either<bowline::Lock, blocking::Lock>);

impl Lock {
    pub(crate) fn lock(&self) -> Acquire<LockGuard> {
        acquire!(self.0, lock(), LockGuard, of_reentrant, of_blocking_reentrant)
    }

    pub(crate) fn try_lock(&self) -> Acquire<Option<LockGuard>> {
        try_acquire!(self.0, try_lock(), LockGuard, of_reentrant_try, of_blocking_reentrant_try)
    }

    pub(crate) fn changes(&self) -> Changes<HoldChanges> {
        Changes::of(handle!(self, changes))
    }

    pub(crate) fn inspect(&self) -> BoxFuture<'static, Result<LockState>> {
        call!(self.0, inspect)
    }

    pub(crate) fn force_release(&self) -> BoxFuture<'static, Result<Option<Token>>> {
        call!(self.0, force_release)
    }

    pub(crate) fn drop_waiters(&self, whose: Whose) -> BoxFuture<'static, Result<u64>> {
        call!(self.0, drop_waiters, whose)
    }
}

impl From<bowline::Lock> for Lock {
    fn from(lock: bowline::Lock) -> Self {
        Self(Either::Async(lock))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct RwLock(pub(super) Either<bowline::RwLock, blocking::RwLock>);

impl RwLock {
    pub(crate) fn retained(self, time: Duration) -> Self {
        Self(match self.0 {
            Either::Async(lock) => Either::Async(lock.retained(time)),
            Either::Blocking(lock) => Either::Blocking(lock.retained(time)),
        })
    }

    pub(crate) fn read(&self) -> Acquire<ReadGuard> {
        acquire!(self.0, read(), ReadGuard, of_reentrant, of_blocking_reentrant)
    }

    pub(crate) fn upgradable_read(&self) -> Acquire<UpgradableGuard> {
        acquire!(self.0, upgradable_read(), UpgradableGuard, of_reentrant, of_blocking_reentrant)
    }

    pub(crate) fn try_upgradable_read(&self) -> Acquire<Option<UpgradableGuard>> {
        try_acquire!(self.0, try_upgradable_read(), UpgradableGuard, of_reentrant_try, of_blocking_reentrant_try)
    }

    pub(crate) fn write(&self) -> Acquire<WriteGuard> {
        acquire!(self.0, write(), WriteGuard, of_reentrant, of_blocking_reentrant)
    }

    pub(crate) fn try_read(&self) -> Acquire<Option<ReadGuard>> {
        try_acquire!(self.0, try_read(), ReadGuard, of_reentrant_try, of_blocking_reentrant_try)
    }

    pub(crate) fn try_write(&self) -> Acquire<Option<WriteGuard>> {
        try_acquire!(self.0, try_write(), WriteGuard, of_reentrant_try, of_blocking_reentrant_try)
    }

    pub(crate) fn changes(&self) -> Changes<HoldChanges> {
        Changes::of(handle!(self, changes))
    }

    pub(crate) fn inspect(&self) -> BoxFuture<'static, Result<RwLockState>> {
        call!(self.0, inspect)
    }

    pub(crate) fn force_release(&self, whose: Whose) -> BoxFuture<'static, Result<Revoked>> {
        call!(self.0, force_release, whose)
    }

    pub(crate) fn drop_waiters(&self, whose: Whose) -> BoxFuture<'static, Result<u64>> {
        call!(self.0, drop_waiters, whose)
    }
}

impl From<bowline::RwLock> for RwLock {
    fn from(lock: bowline::RwLock) -> Self {
        Self(Either::Async(lock))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Semaphore(pub(super) Either<bowline::Semaphore, blocking::Semaphore>);

impl Semaphore {
    pub(crate) fn acquire(&self) -> Acquire<Permit> {
        acquire!(self.0, acquire(), Permit, of, of)
    }

    pub(crate) fn acquire_many(&self, count: u32) -> Acquire<Permit> {
        acquire!(self.0, acquire_many(count), Permit, of, of)
    }

    pub(crate) fn try_acquire(&self) -> Acquire<Option<Permit>> {
        try_acquire!(self.0, try_acquire(), Permit, of_try, of_try)
    }

    pub(crate) fn try_acquire_many(&self, count: u32) -> Acquire<Option<Permit>> {
        try_acquire!(self.0, try_acquire_many(count), Permit, of_try, of_try)
    }

    pub(crate) fn try_acquire_all(&self) -> Acquire<Option<Permit>> {
        try_acquire!(self.0, try_acquire_all(), Permit, of_try, of_try)
    }

    pub(crate) fn available(&self) -> BoxFuture<'static, Result<u32>> {
        call!(self.0, available)
    }

    pub(crate) fn changes(&self) -> Changes<HoldChanges> {
        Changes::of(handle!(self, changes))
    }

    pub(crate) fn inspect(&self) -> BoxFuture<'static, Result<SemaphoreState>> {
        call!(self.0, inspect)
    }

    pub(crate) fn force_release(&self, whose: Whose) -> BoxFuture<'static, Result<Revoked>> {
        call!(self.0, force_release, whose)
    }

    pub(crate) fn drop_waiters(&self, whose: Whose) -> BoxFuture<'static, Result<u64>> {
        call!(self.0, drop_waiters, whose)
    }

    pub(crate) fn set_limit(&self, limit: u32) -> BoxFuture<'static, Result<()>> {
        call!(self.0, set_limit, limit)
    }
}

impl From<bowline::Semaphore> for Semaphore {
    fn from(semaphore: bowline::Semaphore) -> Self {
        Self(Either::Async(semaphore))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct MultiLock(pub(super) Either<bowline::MultiLock, blocking::MultiLock>);

/// One more primitive of the same API.
macro_rules! with {
    ($multi:expr, $method:ident, $other:expr $(, $argument:expr)?) => {
        match ($multi.0, &$other.0) {
            (Either::Async(multi), Either::Async(other)) => Self(Either::Async(multi.$method(other $(, $argument)?))),
            (Either::Blocking(multi), Either::Blocking(other)) => {
                Self(Either::Blocking(multi.$method(other $(, $argument)?)))
            }
            _ => panic!("one test uses one API"),
        }
    };
}

impl MultiLock {
    pub(crate) fn lock(self, lock: &Lock) -> Self {
        with!(self, lock, lock)
    }

    pub(crate) fn read(self, lock: &RwLock) -> Self {
        with!(self, read, lock)
    }

    pub(crate) fn write(self, lock: &RwLock) -> Self {
        with!(self, write, lock)
    }

    pub(crate) fn permits(self, semaphore: &Semaphore, count: u32) -> Self {
        with!(self, permits, semaphore, count)
    }

    pub(crate) fn acquire(&self) -> Acquire<MultiGuard> {
        acquire!(self.0, acquire(), MultiGuard, of_reentrant, of_blocking_reentrant)
    }

    pub(crate) fn try_acquire(&self) -> Acquire<Option<MultiGuard>> {
        try_acquire!(self.0, try_acquire(), MultiGuard, of_reentrant_try, of_blocking_reentrant_try)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct CountDownLatch(pub(super) Either<bowline::CountDownLatch, blocking::CountDownLatch>);

impl CountDownLatch {
    pub(crate) fn try_set(&self, count: u32, ttl: Duration) -> BoxFuture<'static, Result<bool>> {
        call!(self.0, try_set, count, ttl)
    }

    pub(crate) fn count_down(&self) -> BoxFuture<'static, Result<u64>> {
        call!(self.0, count_down)
    }

    pub(crate) fn count(&self) -> BoxFuture<'static, Result<u64>> {
        call!(self.0, count)
    }

    pub(crate) fn wait(&self) -> Wait {
        Wait(handle!(self, wait))
    }

    pub(crate) fn inspect(&self) -> BoxFuture<'static, Result<LatchState>> {
        call!(self.0, inspect)
    }

    pub(crate) fn delete(&self) -> BoxFuture<'static, Result<bool>> {
        call!(self.0, delete)
    }
}

impl From<bowline::CountDownLatch> for CountDownLatch {
    fn from(latch: bowline::CountDownLatch) -> Self {
        Self(Either::Async(latch))
    }
}

pub(crate) struct Wait(pub(super) Either<LatchWait, LatchWait>);

impl Wait {
    pub(crate) fn timeout(self, timeout: Duration) -> Self {
        Self(match self.0 {
            Either::Async(wait) => Either::Async(wait.timeout(timeout)),
            Either::Blocking(wait) => Either::Blocking(wait.timeout(timeout)),
        })
    }
}

impl IntoFuture for Wait {
    type Output = Result<()>;
    type IntoFuture = BoxFuture<'static, Result<()>>;

    fn into_future(self) -> Self::IntoFuture {
        match self.0 {
            Either::Async(wait) => wait.into_future(),
            Either::Blocking(wait) => on_a_thread(move || wait.block()),
        }
    }
}
