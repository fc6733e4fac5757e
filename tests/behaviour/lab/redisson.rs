//! Locks that Java programs share.

use bowline::{RedissonLockState, Result, blocking};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::Either;
use super::acquire::Acquire;
use super::guard::{RedissonFencedGuard, RedissonGuard};
use super::primitives::{Wait, acquire, try_acquire};
use super::thread::{call, on_a_thread};

#[derive(Clone, Debug)]
pub(crate) struct Redisson(pub(super) Either<bowline::Redisson, blocking::Redisson>);

impl Redisson {
    pub(crate) fn map_names(self, mapper: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Self(match self.0 {
            Either::Async(redisson) => Either::Async(redisson.map_names(mapper)),
            Either::Blocking(redisson) => Either::Blocking(redisson.map_names(mapper)),
        })
    }

    pub(crate) fn lock(&self, name: &str) -> RedissonLock {
        RedissonLock(match &self.0 {
            Either::Async(redisson) => Either::Async(redisson.lock(name)),
            Either::Blocking(redisson) => Either::Blocking(redisson.lock(name)),
        })
    }

    pub(crate) fn fenced_lock(&self, name: &str) -> RedissonFencedLock {
        RedissonFencedLock(match &self.0 {
            Either::Async(redisson) => Either::Async(redisson.fenced_lock(name)),
            Either::Blocking(redisson) => Either::Blocking(redisson.fenced_lock(name)),
        })
    }

    pub(crate) fn count_down_latch(&self, name: &str) -> RedissonCountDownLatch {
        RedissonCountDownLatch(match &self.0 {
            Either::Async(redisson) => Either::Async(redisson.count_down_latch(name)),
            Either::Blocking(redisson) => Either::Blocking(redisson.count_down_latch(name)),
        })
    }
}

macro_rules! locks {
    ($($lock:ident: $guard:ident),+) => {$(
        #[derive(Clone, Debug)]
        pub(crate) struct $lock(Either<bowline::$lock, blocking::$lock>);

        impl $lock {
            pub(crate) fn lock(&self) -> Acquire<$guard> {
                acquire!(self.0, lock(), $guard, of_reentrant, of_blocking_reentrant)
            }

            pub(crate) fn try_lock(&self) -> Acquire<Option<$guard>> {
                try_acquire!(self.0, try_lock(), $guard, of_reentrant_try, of_blocking_reentrant_try)
            }

            pub(crate) fn inspect(&self) -> BoxFuture<'static, Result<RedissonLockState>> {
                call!(self.0, inspect)
            }

            pub(crate) fn force_release(&self) -> BoxFuture<'static, Result<bool>> {
                call!(self.0, force_release)
            }
        }
    )+};
}

locks!(RedissonLock: RedissonGuard, RedissonFencedLock: RedissonFencedGuard);

#[derive(Clone, Debug)]
pub(crate) struct RedissonCountDownLatch(Either<bowline::RedissonCountDownLatch, blocking::RedissonCountDownLatch>);

impl RedissonCountDownLatch {
    pub(crate) fn try_set_count(&self, count: u32) -> BoxFuture<'static, Result<bool>> {
        call!(self.0, try_set_count, count)
    }

    pub(crate) fn count_down(&self) -> BoxFuture<'static, Result<u64>> {
        call!(self.0, count_down)
    }

    pub(crate) fn count(&self) -> BoxFuture<'static, Result<u64>> {
        call!(self.0, count)
    }

    pub(crate) fn wait(&self) -> Wait {
        Wait(match &self.0 {
            Either::Async(latch) => Either::Async(latch.wait()),
            Either::Blocking(latch) => Either::Blocking(latch.wait()),
        })
    }
}
