//! The guards.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bowline::blocking::{self, AnyThread};
use bowline::{Held, HoldHandle, LossSignal, Result, Token};
use futures::future::BoxFuture;

use super::Either;
use super::primitives::{Lock, RwLock, Semaphore};
use super::thread::{either, on_a_thread};

pub(crate) type LockGuard = Guard<bowline::LockGuard>;
pub(crate) type ReadGuard = Guard<bowline::ReadGuard>;
pub(crate) type UpgradableGuard = Guard<bowline::UpgradableGuard>;
pub(crate) type WriteGuard = Guard<bowline::WriteGuard>;
pub(crate) type RedissonGuard = Guard<bowline::RedissonGuard>;
pub(crate) type RedissonFencedGuard = Guard<bowline::RedissonFencedGuard>;
pub(crate) type RedissonPermitGuard = Guard<bowline::RedissonPermitGuard>;
pub(crate) type Permit = Guard<bowline::Permit>;
pub(crate) type MultiGuard = Guard<bowline::MultiGuard>;

type Blocking<G> = blocking::Guard<G, AnyThread>;

/// The one that blocks is shared with the threads that wait for its loss. Dropped where an async guard is, it releases
/// in the background.
#[derive(Debug)]
pub(crate) struct Guard<G: Held>(Either<G, Arc<Blocking<G>>>);

pub(crate) type Upgrade<R = ReadGuard> = bowline::Upgrade<WriteGuard, R>;

impl<G: Held> Guard<G> {
    pub(super) fn of(guard: G) -> Self {
        Self(Either::Async(guard))
    }

    pub(super) fn of_blocking(guard: Blocking<G>) -> Self {
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

    pub(crate) fn lost(&self) -> BoxFuture<'_, G::Lost> {
        // The wait is limited, because a dropped future must let go of the guard.
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

    /// Sends nothing, so it does not block.
    pub(crate) fn keep(self) -> Result<()> {
        match self.0 {
            Either::Async(guard) => guard.keep(),
            Either::Blocking(guard) => alone(guard).keep(),
        }
    }

    pub(crate) fn release(self) -> BoxFuture<'static, Result<()>> {
        match self.0 {
            Either::Async(guard) => Box::pin(guard.release()),
            Either::Blocking(guard) => on_a_thread(move || alone(guard).release()),
        }
    }
}

/// The guard, out of the hands of the threads that do not wait for its loss any more.
pub(super) fn alone<G>(mut guard: Arc<G>) -> G {
    loop {
        match Arc::try_unwrap(guard) {
            Ok(guard) => return guard,
            Err(shared) => guard = shared,
        }
        thread::yield_now();
    }
}

impl LockGuard {
    pub(crate) fn guard_count(&self) -> usize {
        either!(&self.0, guard => guard.guard_count())
    }

    pub(crate) fn token(&self) -> Token {
        either!(&self.0, guard => guard.token())
    }
}

impl RedissonGuard {
    pub(crate) fn guard_count(&self) -> usize {
        either!(&self.0, guard => guard.guard_count())
    }
}

impl RedissonPermitGuard {
    pub(crate) fn id(&self) -> String {
        either!(&self.0, guard => guard.id())
    }
}

impl RedissonFencedGuard {
    pub(crate) fn token(&self) -> Token {
        either!(&self.0, guard => guard.token())
    }
}

/// A method that makes a guard another one.
macro_rules! becomes {
    ($guard:expr, $method:ident) => {
        match $guard.0 {
            Either::Async(guard) => Box::pin(async move { guard.$method().await.map(Guard::of) }),
            Either::Blocking(guard) => on_a_thread(move || alone(guard).$method().map(Guard::of_blocking)),
        }
    };
}

/// A method that makes a guard a writer's, or leaves it as it is.
macro_rules! upgrades {
    ($guard:expr, $method:ident($($arg:expr)?)) => {
        match $guard.0 {
            Either::Async(guard) => Box::pin(async move {
                Ok(match guard.$method($($arg)?).await? {
                    bowline::Upgrade::Writing(guard) => Upgrade::Writing(Guard::of(guard)),
                    bowline::Upgrade::Shared(guard) => Upgrade::Shared(Guard::of(guard)),
                })
            }),
            Either::Blocking(guard) => on_a_thread(move || {
                Ok(match alone(guard).$method($($arg)?)? {
                    blocking::Upgrade::Writing(guard) => Upgrade::Writing(Guard::of_blocking(guard)),
                    blocking::Upgrade::Shared(guard) => Upgrade::Shared(Guard::of_blocking(guard)),
                })
            }),
        }
    };
}

impl ReadGuard {
    pub(crate) fn guard_count(&self) -> usize {
        either!(&self.0, guard => guard.guard_count())
    }

    pub(crate) fn token(&self) -> Token {
        either!(&self.0, guard => guard.token())
    }

    pub(crate) fn try_upgrade(self) -> BoxFuture<'static, Result<Upgrade>> {
        upgrades!(self, try_upgrade())
    }
}

impl UpgradableGuard {
    pub(crate) fn token(&self) -> Token {
        either!(&self.0, guard => guard.token())
    }

    pub(crate) fn try_upgrade(self) -> BoxFuture<'static, Result<Upgrade<Self>>> {
        upgrades!(self, try_upgrade())
    }

    pub(crate) fn upgrade_within(self, timeout: Duration) -> BoxFuture<'static, Result<Upgrade<Self>>> {
        upgrades!(self, upgrade_within(timeout))
    }

    pub(crate) fn upgrade(self) -> BoxFuture<'static, Result<WriteGuard>> {
        becomes!(self, upgrade)
    }

    pub(crate) fn downgrade(self) -> BoxFuture<'static, Result<ReadGuard>> {
        becomes!(self, downgrade)
    }
}

impl WriteGuard {
    pub(crate) fn guard_count(&self) -> usize {
        either!(&self.0, guard => guard.guard_count())
    }

    pub(crate) fn token(&self) -> Token {
        either!(&self.0, guard => guard.token())
    }

    pub(crate) fn downgrade(self) -> BoxFuture<'static, Result<ReadGuard>> {
        becomes!(self, downgrade)
    }

    pub(crate) fn downgrade_to_upgradable(self) -> BoxFuture<'static, Result<UpgradableGuard>> {
        becomes!(self, downgrade_to_upgradable)
    }
}

impl Permit {
    pub(crate) fn split(&mut self, count: u32) -> Option<Self> {
        match &mut self.0 {
            Either::Async(permit) => permit.split(count).map(Guard::of),
            Either::Blocking(permit) => Arc::get_mut(permit).unwrap().split(count).map(Guard::of_blocking),
        }
    }

    /// The permits that were not merged, with the error.
    pub(crate) fn merge(&mut self, other: Self) -> std::result::Result<(), (Self, bowline::Error)> {
        match (&mut self.0, other.0) {
            (Either::Async(permit), Either::Async(other)) => permit.merge(other).map_err(|error| {
                let why = error.error().clone();
                (Guard::of(error.into_permit()), why)
            }),
            (Either::Blocking(permit), Either::Blocking(other)) => {
                Arc::get_mut(permit).unwrap().merge(alone(other)).map_err(|error| {
                    let why = error.error().clone();
                    (Guard::of_blocking(error.into_permit()), why)
                })
            }
            _ => panic!("one test uses one API"),
        }
    }

    pub(crate) fn count(&self) -> u32 {
        either!(&self.0, guard => guard.count())
    }
}

impl MultiGuard {
    pub(crate) fn names(&self) -> Vec<String> {
        either!(&self.0, guard => guard.names().map(str::to_owned).collect())
    }

    pub(crate) fn token(&self, name: &str) -> Option<Token> {
        either!(&self.0, guard => guard.token(name))
    }

    pub(crate) fn tokens(&self) -> Vec<(String, Token)> {
        either!(&self.0, guard => guard.tokens().map(|(name, token)| (name.to_owned(), token)).collect())
    }

    pub(crate) fn lost_signal(&self) -> LossSignal {
        either!(&self.0, guard => guard.lost_signal())
    }
}

/// `into_handle` of a guard, and its handle resumed by a primitive of the lab.
macro_rules! handles {
    ($($guard:ident: $primitive:ident.$resume:ident),+) => {$(
        impl $guard {
            pub(crate) fn into_handle(self) -> Result<HoldHandle> {
                match self.0 {
                    Either::Async(guard) => guard.into_handle(),
                    Either::Blocking(guard) => alone(guard).into_handle(),
                }
            }
        }

        impl $primitive {
            pub(crate) fn $resume(&self, handle: &HoldHandle) -> BoxFuture<'static, Result<$guard>> {
                let handle = handle.clone();
                match self.0.clone() {
                    Either::Async(it) => Box::pin(async move { it.$resume(&handle).await.map(Guard::of) }),
                    Either::Blocking(it) => on_a_thread(move || it.$resume(&handle).map(Guard::of_blocking)),
                }
            }
        }
    )+};
}

handles!(
    LockGuard: Lock.resume,
    ReadGuard: RwLock.resume_read,
    UpgradableGuard: RwLock.resume_upgradable,
    WriteGuard: RwLock.resume_write,
    Permit: Semaphore.resume
);
