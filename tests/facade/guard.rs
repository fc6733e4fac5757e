//! The guards.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use futures::future::BoxFuture;
use real::blocking::{self, AnyThread};
use real::{Held, Loss, Result, Token};

use crate::thread::on_a_thread;

/// Shared with the threads that wait for its loss. Dropped where an async guard is, it releases in the background.
#[derive(Debug)]
pub struct Guard<G: Held>(Arc<blocking::Guard<G, AnyThread>>);

pub type LockGuard = Guard<real::LockGuard>;
pub type ReadGuard = Guard<real::ReadGuard>;
pub type WriteGuard = Guard<real::WriteGuard>;
pub type Permit = Guard<real::Permit>;

pub type Upgrade = real::Upgrade<WriteGuard, ReadGuard>;

impl<G: Held> Guard<G> {
    pub fn new(guard: blocking::Guard<G, AnyThread>) -> Self {
        Self(Arc::new(guard))
    }

    /// Out of the hands of those who do not wait for its loss any more.
    fn into_inner(self) -> blocking::Guard<G, AnyThread> {
        let mut guard = self.0;
        loop {
            match Arc::try_unwrap(guard) {
                Ok(guard) => return guard,
                Err(shared) => guard = shared,
            }
            thread::yield_now();
        }
    }

    pub fn name(&self) -> &str {
        self.0.name()
    }

    pub fn remaining(&self) -> Duration {
        self.0.remaining()
    }

    pub fn is_valid(&self) -> bool {
        self.0.is_valid()
    }

    pub fn lost(&self) -> BoxFuture<'_, Loss> {
        // Not for ever: a future that is dropped must let go of the guard.
        const TURN: Duration = Duration::from_millis(10);
        Box::pin(async {
            loop {
                let guard = self.0.clone();
                if let Some(loss) = on_a_thread(move || guard.lost_within(TURN)).await.unwrap() {
                    return loss;
                }
            }
        })
    }

    pub fn extend(&self, lease: Duration) -> BoxFuture<'_, Result<()>> {
        let guard = self.0.clone();
        on_a_thread(move || guard.extend(lease))
    }

    pub fn release(self) -> BoxFuture<'static, Result<()>> {
        on_a_thread(move || self.into_inner().release())
    }
}

impl LockGuard {
    pub fn token(&self) -> Token {
        self.0.token()
    }
}

impl ReadGuard {
    pub fn token(&self) -> Token {
        self.0.token()
    }

    pub fn try_upgrade(self) -> BoxFuture<'static, Result<Upgrade>> {
        on_a_thread(move || {
            Ok(match self.into_inner().try_upgrade()? {
                blocking::Upgrade::Writing(guard) => Upgrade::Writing(Guard::new(guard)),
                blocking::Upgrade::Shared(guard) => Upgrade::Shared(Guard::new(guard)),
            })
        })
    }
}

impl WriteGuard {
    pub fn token(&self) -> Token {
        self.0.token()
    }

    pub fn downgrade(self) -> BoxFuture<'static, Result<ReadGuard>> {
        on_a_thread(move || self.into_inner().downgrade().map(Guard::new))
    }
}

impl Permit {
    pub fn count(&self) -> u32 {
        self.0.count()
    }
}
