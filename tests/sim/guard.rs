//! What the runs acquire, how, and what they get.

use std::future::Future;
use std::time::Duration;

use bowline::wire::{PREFIX, Resource};
use bowline::{
    Acquire, Client, Held, Holder, LockGuard, Loss, Permit, ReadGuard, Reentrant, Result, TryAcquire, UpgradableGuard,
    WriteGuard,
};

use crate::judge::view::{UPGRADABLE, WRITE, permits};

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum What {
    Lock,
    Read,
    Upgradable,
    Write,
    Permits(u32),
}

impl What {
    pub fn is_reentrant(self) -> bool {
        !matches!(self, Self::Permits(_))
    }

    pub fn units(self) -> u64 {
        match self {
            Self::Lock | Self::Read => 1,
            Self::Upgradable => UPGRADABLE,
            Self::Write => WRITE,
            Self::Permits(count) => count.into(),
        }
    }

    /// What excludes everybody else.
    pub fn all(self, name: &str) -> Self {
        match self {
            Self::Lock => Self::Lock,
            Self::Read | Self::Upgradable | Self::Write => Self::Write,
            Self::Permits(_) => Self::Permits(permits(name)),
        }
    }

    /// Acquires it without a holder and without a time limit.
    pub async fn acquire(self, client: Client, name: &'static str) -> Result<Guard> {
        self.acquire_as(true, client, name).await
    }

    /// The same, in the client's cohort.
    pub async fn acquire_in_cohort(self, client: Client, name: &'static str) -> Result<Guard> {
        self.acquire_as(false, client, name).await
    }

    pub async fn acquire_as(self, fair: bool, client: Client, name: &'static str) -> Result<Guard> {
        let waits = Waits { fair, ..Waits::default() };
        let how = How { waits: Some(waits), ..How::default() };
        Ok(how.acquire(&client, self, name).await?.expect("it waits"))
    }

    /// The key of who holds it.
    pub fn key(self, name: &str) -> String {
        self.resource(name).main().to_owned()
    }

    /// As its clients address it.
    pub fn resource(self, name: &str) -> Resource {
        let resource = match self {
            Self::Lock => Resource::lock(PREFIX, name),
            Self::Read | Self::Upgradable | Self::Write => Resource::read_write(PREFIX, name),
            Self::Permits(_) => Resource::semaphore(PREFIX, name, permits(name)),
        };
        resource.unwrap()
    }
}

/// How it is asked for.
#[derive(Default)]
pub struct How<'a> {
    /// Fixed, by `expires_after`.
    pub lease: Option<Duration>,
    /// Renewed, by `lease`, and for how long at most.
    pub renewed: Option<Duration>,
    pub at_most: Option<Duration>,
    pub holder: Option<&'a Holder>,
    /// How long the lock is kept idle, and how long a try waits for one that another process keeps.
    pub retained: Option<Duration>,
    pub for_retained: Option<Duration>,
    /// `None`: if it is free at once.
    pub waits: Option<Waits>,
}

#[derive(Default)]
pub struct Waits {
    pub fair: bool,
    pub timeout: Option<Duration>,
    pub max_waiters: Option<u32>,
}

impl How<'_> {
    pub async fn acquire(&self, client: &Client, what: What, name: &str) -> Result<Option<Guard>> {
        match what {
            What::Lock => {
                let lock = client.lock(name);
                Ok(self.reenter(lock.lock(), lock.try_lock()).await?.map(Guard::Lock))
            }
            What::Read => {
                let lock = client.rw_lock(name);
                Ok(self.reenter(lock.read(), lock.try_read()).await?.map(Guard::Read))
            }
            What::Upgradable => {
                let lock = client.rw_lock(name);
                Ok(self.reenter(lock.upgradable_read(), lock.try_upgradable_read()).await?.map(Guard::Upgradable))
            }
            What::Write => {
                let lock = client.rw_lock(name);
                Ok(self.reenter(lock.write(), lock.try_write()).await?.map(Guard::Write))
            }
            What::Permits(count) => {
                let semaphore = client.semaphore(name, permits(name));
                let (acquire, attempt) = (semaphore.acquire_many(count), semaphore.try_acquire_many(count));
                Ok(self.enter(acquire, attempt).await?.map(Guard::Permits))
            }
        }
    }

    fn reenter<G: Reentrant>(
        &self,
        acquire: Acquire<G>,
        attempt: TryAcquire<G>,
    ) -> impl Future<Output = Result<Option<G>>> {
        match self.holder {
            Some(holder) => self.enter(acquire.holder(holder), attempt.holder(holder)),
            None => self.enter(acquire, attempt),
        }
    }

    async fn enter<G: Held>(&self, mut acquire: Acquire<G>, mut attempt: TryAcquire<G>) -> Result<Option<G>> {
        if let Some(lease) = self.lease {
            (acquire, attempt) = (acquire.expires_after(lease), attempt.expires_after(lease));
        }
        if let Some(lease) = self.renewed {
            (acquire, attempt) = (acquire.lease(lease), attempt.lease(lease));
        }
        if let Some(limit) = self.at_most {
            (acquire, attempt) = (acquire.hold_at_most(limit), attempt.hold_at_most(limit));
        }
        if let Some(time) = self.for_retained {
            attempt = attempt.for_retained(time);
        }
        if let Some(time) = self.retained {
            attempt = attempt.retained(time);
        }
        let Some(waits) = &self.waits else { return attempt.await };
        acquire = if waits.fair { acquire.fair() } else { acquire.non_fair() };
        if let Some(time) = self.retained {
            acquire = acquire.retained(time);
        }
        if let Some(timeout) = waits.timeout {
            acquire = acquire.timeout(timeout);
        }
        if let Some(limit) = waits.max_waiters {
            acquire = acquire.max_waiters(limit);
        }
        acquire.await.map(Some)
    }
}

/// What was got.
pub enum Guard {
    Lock(LockGuard),
    Read(ReadGuard),
    Upgradable(UpgradableGuard),
    Write(WriteGuard),
    Permits(Permit),
}

impl Guard {
    pub fn what(&self) -> What {
        match self {
            Self::Lock(_) => What::Lock,
            Self::Read(_) => What::Read,
            Self::Upgradable(_) => What::Upgradable,
            Self::Write(_) => What::Write,
            Self::Permits(permit) => What::Permits(permit.count()),
        }
    }

    pub fn units(&self) -> u64 {
        self.what().units()
    }

    /// 0 for permits.
    pub fn token(&self) -> u64 {
        match self {
            Self::Lock(guard) => guard.token().get(),
            Self::Read(guard) => guard.token().get(),
            Self::Upgradable(guard) => guard.token().get(),
            Self::Write(guard) => guard.token().get(),
            Self::Permits(_) => 0,
        }
    }

    pub fn remaining(&self) -> Duration {
        match self {
            Self::Lock(guard) => guard.remaining(),
            Self::Read(guard) => guard.remaining(),
            Self::Upgradable(guard) => guard.remaining(),
            Self::Write(guard) => guard.remaining(),
            Self::Permits(permit) => permit.remaining(),
        }
    }

    pub fn is_valid(&self) -> bool {
        !self.remaining().is_zero()
    }

    pub async fn lost(&self) -> Loss {
        match self {
            Self::Lock(guard) => guard.lost().await,
            Self::Read(guard) => guard.lost().await,
            Self::Upgradable(guard) => guard.lost().await,
            Self::Write(guard) => guard.lost().await,
            Self::Permits(permit) => permit.lost().await,
        }
    }

    pub async fn protect<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        match self {
            Self::Lock(guard) => guard.protect(work).await,
            Self::Read(guard) => guard.protect(work).await,
            Self::Upgradable(guard) => guard.protect(work).await,
            Self::Write(guard) => guard.protect(work).await,
            Self::Permits(permit) => permit.protect(work).await,
        }
    }

    pub async fn extend(&self, lease: Duration) -> Result<()> {
        match self {
            Self::Lock(guard) => guard.extend(lease).await,
            Self::Read(guard) => guard.extend(lease).await,
            Self::Upgradable(guard) => guard.extend(lease).await,
            Self::Write(guard) => guard.extend(lease).await,
            Self::Permits(permit) => permit.extend(lease).await,
        }
    }

    pub async fn release(self) -> Result<()> {
        match self {
            Self::Lock(guard) => guard.release().await,
            Self::Read(guard) => guard.release().await,
            Self::Upgradable(guard) => guard.release().await,
            Self::Write(guard) => guard.release().await,
            Self::Permits(permit) => permit.release().await,
        }
    }
}
