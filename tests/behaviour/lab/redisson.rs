//! Locks that Java programs share.

use bowline::{RedissonLockState, Result, blocking};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::Either;
use super::acquire::Acquire;
use super::guard::{RedissonFencedGuard, RedissonGuard};
use super::primitives::{acquire, try_acquire};
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
