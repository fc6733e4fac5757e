//! The client.

use std::sync::Arc;

use futures::future::BoxFuture;
use real::{Config, Connection, Executor, Result, Stats, blocking};
use uuid::Uuid;

use crate::primitives::{CountDownLatch, Lock, RwLock, Semaphore};
use crate::thread::on_a_thread;

#[derive(Clone, Debug)]
pub struct Client(blocking::Client);

impl Client {
    pub async fn connect(executor: Arc<dyn Executor>, connection: Arc<dyn Connection>, config: Config) -> Result<Self> {
        let client = real::Client::connect(executor, connection, config).await?;
        Ok(Self(blocking::Client::new(client)))
    }

    pub fn lock(&self, name: &str) -> Lock {
        Lock(self.0.lock(name))
    }

    pub fn rw_lock(&self, name: &str) -> RwLock {
        RwLock(self.0.rw_lock(name))
    }

    pub fn semaphore(&self, name: &str, limit: u32) -> Semaphore {
        Semaphore(self.0.semaphore(name, limit))
    }

    pub fn latch(&self, name: &str) -> CountDownLatch {
        CountDownLatch(self.0.latch(name))
    }

    pub fn id(&self) -> Uuid {
        self.0.id()
    }

    pub fn stats(&self) -> Stats {
        self.0.stats()
    }

    pub fn close(&self) -> BoxFuture<'static, ()> {
        let client = self.0.clone();
        on_a_thread(move || client.close().unwrap())
    }
}
