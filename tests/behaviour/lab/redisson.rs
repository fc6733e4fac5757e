//! Locks that Java programs share.

use std::time::Duration;

use bowline::{RedissonLockState, RedissonPermitsState, Result, blocking};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::Either;
use super::acquire::Acquire;
use super::client::handle;
use super::guard::{RedissonFencedGuard, RedissonGuard, RedissonPermitGuard};
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
        RedissonLock(handle!(self, lock, name))
    }

    pub(crate) fn fenced_lock(&self, name: &str) -> RedissonFencedLock {
        RedissonFencedLock(handle!(self, fenced_lock, name))
    }

    pub(crate) fn count_down_latch(&self, name: &str) -> RedissonCountDownLatch {
        RedissonCountDownLatch(handle!(self, count_down_latch, name))
    }

    pub(crate) fn semaphore(&self, name: &str) -> RedissonSemaphore {
        RedissonSemaphore(handle!(self, semaphore, name))
    }

    pub(crate) fn permit_semaphore(&self, name: &str) -> RedissonPermitSemaphore {
        RedissonPermitSemaphore(handle!(self, permit_semaphore, name))
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
        Wait(handle!(self, wait))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct RedissonPermitSemaphore(Either<bowline::RedissonPermitSemaphore, blocking::RedissonPermitSemaphore>);

impl RedissonPermitSemaphore {
    pub(crate) fn try_set_permits(&self, permits: u32) -> BoxFuture<'static, Result<bool>> {
        call!(self.0, try_set_permits, permits)
    }

    pub(crate) fn set_permits(&self, permits: u32) -> BoxFuture<'static, Result<()>> {
        call!(self.0, set_permits, permits)
    }

    pub(crate) fn add_permits(&self, change: i32) -> BoxFuture<'static, Result<()>> {
        call!(self.0, add_permits, change)
    }

    pub(crate) fn acquire(&self) -> Acquire<RedissonPermitGuard> {
        acquire!(self.0, acquire(), RedissonPermitGuard, of, of)
    }

    pub(crate) fn try_acquire(&self) -> Acquire<Option<RedissonPermitGuard>> {
        try_acquire!(self.0, try_acquire(), RedissonPermitGuard, of_try, of_try)
    }

    pub(crate) fn available(&self) -> BoxFuture<'static, Result<u64>> {
        call!(self.0, available)
    }

    pub(crate) fn acquired(&self) -> BoxFuture<'static, Result<u64>> {
        call!(self.0, acquired)
    }

    pub(crate) fn inspect(&self) -> BoxFuture<'static, Result<RedissonPermitsState>> {
        call!(self.0, inspect)
    }

    pub(crate) fn release_id(&self, id: &str) -> BoxFuture<'static, Result<bool>> {
        let id = id.to_owned();
        match self.0.clone() {
            Either::Async(semaphore) => async move { semaphore.release_id(&id).await }.boxed(),
            Either::Blocking(semaphore) => on_a_thread(move || semaphore.release_id(&id)),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct RedissonSemaphore(Either<bowline::RedissonSemaphore, blocking::RedissonSemaphore>);

/// The same call of either API, whose permits are of either API.
macro_rules! takes {
    ($of:expr, $method:ident($($argument:expr),*)) => {
        match $of.clone() {
            Either::Async(semaphore) => {
                async move { Ok(semaphore.$method($($argument),*).await?.map(|it| RedissonPermits(Either::Async(it)))) }
                    .boxed()
            }
            Either::Blocking(semaphore) => on_a_thread(move || {
                Ok(semaphore.$method($($argument),*)?.map(|it| RedissonPermits(Either::Blocking(it))))
            }),
        }
    };
}

impl RedissonSemaphore {
    pub(crate) fn try_set_permits(&self, permits: u32) -> BoxFuture<'static, Result<bool>> {
        call!(self.0, try_set_permits, permits)
    }

    pub(crate) fn acquire_many(
        &self,
        permits: u32,
        timeout: Option<Duration>,
    ) -> BoxFuture<'static, Result<RedissonPermits>> {
        let limited = move |acquire: bowline::RedissonAcquire| match timeout {
            Some(timeout) => acquire.timeout(timeout),
            None => acquire,
        };
        match self.0.clone() {
            Either::Async(semaphore) => {
                let acquire = limited(if permits == 1 { semaphore.acquire() } else { semaphore.acquire_many(permits) });
                async move { Ok(RedissonPermits(Either::Async(acquire.await?))) }.boxed()
            }
            Either::Blocking(semaphore) => on_a_thread(move || {
                let acquire = limited(if permits == 1 { semaphore.acquire() } else { semaphore.acquire_many(permits) });
                Ok(RedissonPermits(Either::Blocking(acquire.block()?)))
            }),
        }
    }

    pub(crate) fn try_acquire(&self) -> BoxFuture<'static, Result<Option<RedissonPermits>>> {
        takes!(self.0, try_acquire())
    }

    pub(crate) fn try_acquire_many(&self, permits: u32) -> BoxFuture<'static, Result<Option<RedissonPermits>>> {
        takes!(self.0, try_acquire_many(permits))
    }

    pub(crate) fn drain(&self) -> BoxFuture<'static, Result<Option<RedissonPermits>>> {
        takes!(self.0, drain())
    }

    pub(crate) fn release(&self, permits: u32) -> BoxFuture<'static, Result<()>> {
        call!(self.0, release, permits)
    }

    pub(crate) fn add_permits(&self, change: i32) -> BoxFuture<'static, Result<()>> {
        call!(self.0, add_permits, change)
    }

    pub(crate) fn available(&self) -> BoxFuture<'static, Result<u64>> {
        call!(self.0, available)
    }
}

#[derive(Debug)]
pub(crate) struct RedissonPermits(Either<bowline::RedissonPermits, blocking::RedissonPermits>);

impl RedissonPermits {
    pub(crate) fn permits(&self) -> u32 {
        match &self.0 {
            Either::Async(permits) => permits.permits(),
            Either::Blocking(permits) => permits.permits(),
        }
    }

    pub(crate) fn forget(self) -> u32 {
        match self.0 {
            Either::Async(permits) => permits.forget(),
            Either::Blocking(permits) => permits.forget(),
        }
    }

    pub(crate) fn release(self) -> BoxFuture<'static, Result<()>> {
        match self.0 {
            Either::Async(permits) => permits.release().boxed(),
            Either::Blocking(permits) => on_a_thread(move || permits.release()),
        }
    }
}
