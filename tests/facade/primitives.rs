//! The primitives.

use std::future::IntoFuture;
use std::time::Duration;

use futures::future::BoxFuture;
use real::{LatchState, LockState, Result, RwLockState, SemaphoreState, Token, blocking};

use crate::acquire::Acquire;
use crate::guard::{Guard, LockGuard, Permit, ReadGuard, WriteGuard};
use crate::thread::on_a_thread;

#[derive(Clone, Debug)]
pub struct Lock(pub blocking::Lock);

impl Lock {
    pub fn lock(&self) -> Acquire<LockGuard> {
        let lock = self.0.clone();
        Acquire::new(move |settings| settings.of_reentrant(lock.lock()).block().map(Guard::new))
    }

    pub fn try_lock(&self) -> Acquire<Option<LockGuard>> {
        let lock = self.0.clone();
        Acquire::new(move |settings| Ok(settings.of_reentrant_try(lock.try_lock()).block()?.map(Guard::new)))
    }

    pub fn inspect(&self) -> BoxFuture<'static, Result<LockState>> {
        let lock = self.0.clone();
        on_a_thread(move || lock.inspect())
    }

    pub fn force_release(&self) -> BoxFuture<'static, Result<Option<Token>>> {
        let lock = self.0.clone();
        on_a_thread(move || lock.force_release())
    }
}

#[derive(Clone, Debug)]
pub struct RwLock(pub blocking::RwLock);

impl RwLock {
    pub fn read(&self) -> Acquire<ReadGuard> {
        let lock = self.0.clone();
        Acquire::new(move |settings| settings.of_reentrant(lock.read()).block().map(Guard::new))
    }

    pub fn write(&self) -> Acquire<WriteGuard> {
        let lock = self.0.clone();
        Acquire::new(move |settings| settings.of_reentrant(lock.write()).block().map(Guard::new))
    }

    pub fn try_read(&self) -> Acquire<Option<ReadGuard>> {
        let lock = self.0.clone();
        Acquire::new(move |settings| Ok(settings.of_reentrant_try(lock.try_read()).block()?.map(Guard::new)))
    }

    pub fn try_write(&self) -> Acquire<Option<WriteGuard>> {
        let lock = self.0.clone();
        Acquire::new(move |settings| Ok(settings.of_reentrant_try(lock.try_write()).block()?.map(Guard::new)))
    }

    pub fn inspect(&self) -> BoxFuture<'static, Result<RwLockState>> {
        let lock = self.0.clone();
        on_a_thread(move || lock.inspect())
    }
}

#[derive(Clone, Debug)]
pub struct Semaphore(pub blocking::Semaphore);

impl Semaphore {
    pub fn acquire(&self) -> Acquire<Permit> {
        let semaphore = self.0.clone();
        Acquire::new(move |settings| settings.of(semaphore.acquire()).block().map(Guard::new))
    }

    pub fn acquire_many(&self, count: u32) -> Acquire<Permit> {
        let semaphore = self.0.clone();
        Acquire::new(move |settings| settings.of(semaphore.acquire_many(count)).block().map(Guard::new))
    }

    pub fn try_acquire(&self) -> Acquire<Option<Permit>> {
        let semaphore = self.0.clone();
        Acquire::new(move |settings| Ok(settings.of_try(semaphore.try_acquire()).block()?.map(Guard::new)))
    }

    pub fn try_acquire_many(&self, count: u32) -> Acquire<Option<Permit>> {
        let semaphore = self.0.clone();
        Acquire::new(move |settings| Ok(settings.of_try(semaphore.try_acquire_many(count)).block()?.map(Guard::new)))
    }

    pub fn available(&self) -> BoxFuture<'static, Result<u32>> {
        let semaphore = self.0.clone();
        on_a_thread(move || semaphore.available())
    }

    pub fn inspect(&self) -> BoxFuture<'static, Result<SemaphoreState>> {
        let semaphore = self.0.clone();
        on_a_thread(move || semaphore.inspect())
    }

    pub fn set_limit(&self, limit: u32) -> BoxFuture<'static, Result<()>> {
        let semaphore = self.0.clone();
        on_a_thread(move || semaphore.set_limit(limit))
    }
}

#[derive(Clone, Debug)]
pub struct CountDownLatch(pub blocking::CountDownLatch);

impl CountDownLatch {
    pub fn try_set(&self, count: u32, ttl: Duration) -> BoxFuture<'static, Result<bool>> {
        let latch = self.0.clone();
        on_a_thread(move || latch.try_set(count, ttl))
    }

    pub fn count_down(&self) -> BoxFuture<'static, Result<u64>> {
        let latch = self.0.clone();
        on_a_thread(move || latch.count_down())
    }

    pub fn count(&self) -> BoxFuture<'static, Result<u64>> {
        let latch = self.0.clone();
        on_a_thread(move || latch.count())
    }

    pub fn wait(&self) -> Wait {
        Wait { latch: self.0.clone(), timeout: None }
    }

    pub fn inspect(&self) -> BoxFuture<'static, Result<LatchState>> {
        let latch = self.0.clone();
        on_a_thread(move || latch.inspect())
    }

    pub fn delete(&self) -> BoxFuture<'static, Result<bool>> {
        let latch = self.0.clone();
        on_a_thread(move || latch.delete())
    }
}

pub struct Wait {
    latch: blocking::CountDownLatch,
    timeout: Option<Duration>,
}

impl Wait {
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}

impl IntoFuture for Wait {
    type Output = Result<()>;
    type IntoFuture = BoxFuture<'static, Result<()>>;

    fn into_future(self) -> Self::IntoFuture {
        on_a_thread(move || {
            let wait = self.latch.wait();
            let wait = if let Some(timeout) = self.timeout { wait.timeout(timeout) } else { wait };
            wait.block()
        })
    }
}
