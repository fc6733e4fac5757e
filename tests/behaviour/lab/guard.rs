//! The guards.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bowline::blocking::{self, AnyThread};
use bowline::{Loss, Result, Token};
use futures::future::BoxFuture;

use super::Either;
use super::thread::{either, on_a_thread};

#[derive(Debug)]
pub(crate) enum Upgrade {
    Writing(WriteGuard),
    WouldDeadlock(ReadGuard),
}

macro_rules! guards {
    ($($guard:ident),+) => {$(
        /// The one that blocks is shared with the threads that wait for its loss. Dropped where an async guard is, it releases
        /// in the background.
        #[derive(Debug)]
        pub(crate) struct $guard(Either<bowline::$guard, Arc<blocking::Guard<bowline::$guard, AnyThread>>>);

        impl $guard {
            pub(super) fn of(guard: bowline::$guard) -> Self {
                Self(Either::Async(guard))
            }

            pub(super) fn of_blocking(guard: blocking::Guard<bowline::$guard, AnyThread>) -> Self {
                Self(Either::Blocking(Arc::new(guard)))
            }

            pub(crate) fn name(&self) -> &str {
                either!(&self.0, guard => guard.name())
            }

            pub(crate) fn remaining(&self) -> Duration {
                either!(&self.0, guard => guard.remaining())
            }

            pub(crate) fn is_valid(&self) -> bool {
                either!(&self.0, guard => guard.is_valid())
            }

            pub(crate) fn lost(&self) -> BoxFuture<'_, Loss> {
                // Not for ever: a future that is dropped must let go of the guard.
                const TURN: Duration = Duration::from_millis(10);
                match &self.0 {
                    Either::Async(guard) => Box::pin(guard.lost()),
                    Either::Blocking(guard) => Box::pin(async move {
                        loop {
                            let guard = guard.clone();
                            if let Some(loss) = on_a_thread(move || guard.lost_within(TURN)).await.unwrap() {
                                return loss;
                            }
                        }
                    }),
                }
            }

            pub(crate) fn extend(&self, lease: Duration) -> BoxFuture<'_, Result<()>> {
                match &self.0 {
                    Either::Async(guard) => Box::pin(guard.extend(lease)),
                    Either::Blocking(guard) => {
                        let guard = guard.clone();
                        on_a_thread(move || guard.extend(lease))
                    }
                }
            }

            pub(crate) fn release(self) -> BoxFuture<'static, Result<()>> {
                match self.0 {
                    Either::Async(guard) => Box::pin(guard.release()),
                    Either::Blocking(guard) => on_a_thread(move || alone(guard).release()),
                }
            }
        }
    )+};
}

guards!(LockGuard, ReadGuard, WriteGuard, Permit);

/// The guard, out of the hands of the threads that do not wait for its loss any more.
fn alone<G>(mut guard: Arc<G>) -> G {
    loop {
        match Arc::try_unwrap(guard) {
            Ok(guard) => return guard,
            Err(shared) => guard = shared,
        }
        thread::yield_now();
    }
}

impl LockGuard {
    pub(crate) fn token(&self) -> Token {
        either!(&self.0, guard => guard.token())
    }
}

impl ReadGuard {
    pub(crate) fn token(&self) -> Token {
        either!(&self.0, guard => guard.token())
    }

    pub(crate) fn try_upgrade(self) -> BoxFuture<'static, Result<Upgrade>> {
        match self.0 {
            Either::Async(guard) => Box::pin(async move {
                Ok(match guard.try_upgrade().await? {
                    bowline::Upgrade::Writing(guard) => Upgrade::Writing(WriteGuard::of(guard)),
                    bowline::Upgrade::WouldDeadlock(guard) => Upgrade::WouldDeadlock(ReadGuard::of(guard)),
                })
            }),
            Either::Blocking(guard) => on_a_thread(move || {
                Ok(match alone(guard).try_upgrade()? {
                    blocking::Upgrade::Writing(guard) => Upgrade::Writing(WriteGuard::of_blocking(guard)),
                    blocking::Upgrade::WouldDeadlock(guard) => Upgrade::WouldDeadlock(ReadGuard::of_blocking(guard)),
                })
            }),
        }
    }
}

impl WriteGuard {
    pub(crate) fn token(&self) -> Token {
        either!(&self.0, guard => guard.token())
    }

    pub(crate) fn downgrade(self) -> BoxFuture<'static, Result<ReadGuard>> {
        match self.0 {
            Either::Async(guard) => Box::pin(async move { guard.downgrade().await.map(ReadGuard::of) }),
            Either::Blocking(guard) => on_a_thread(move || alone(guard).downgrade().map(ReadGuard::of_blocking)),
        }
    }
}

impl Permit {
    pub(crate) fn count(&self) -> u32 {
        either!(&self.0, guard => guard.count())
    }
}
