//! A machine that was suspended: the clock of its programs has gone on, their timers have not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bowline::{Client, Config, ErrorKind, Executor};
use futures::future::BoxFuture;

use crate::scene::ms;
use crate::support::env::{Env, on_every_server};

on_every_server! {
    a_guard_is_no_longer_valid_when_the_machine_wakes_up_after_its_lease,
    a_guard_outlives_a_shorter_suspension,
    a_loss_that_the_holder_notices_first_is_counted,
}

#[derive(Debug)]
struct Machine {
    executor: Arc<dyn Executor>,
    /// For how many milliseconds it was suspended.
    suspended: AtomicU64,
}

impl Executor for Machine {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.executor.spawn(task);
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.executor.sleep(duration)
    }

    fn now(&self) -> Instant {
        self.executor.now() + ms(self.suspended.load(Ordering::SeqCst))
    }

    fn block_on(&self, future: BoxFuture<'_, ()>) -> bowline::Result<()> {
        self.executor.block_on(future)
    }
}

async fn client_of(env: &Env, lease: Duration) -> (Client, Arc<Machine>) {
    let config = Config::builder().lease(lease).build().unwrap();
    let machine = Arc::new(Machine { executor: env.executor(), suspended: AtomicU64::new(0) });
    let connection = env.connection(&config).await;
    (Client::connect(machine.clone(), connection, config).await.unwrap(), machine)
}

async fn a_guard_is_no_longer_valid_when_the_machine_wakes_up_after_its_lease(env: Env) {
    let (client, machine) = client_of(&env, ms(3000)).await;
    let guard = client.lock("a").lock().await.unwrap();
    assert!(guard.is_valid());
    machine.suspended.store(3000, Ordering::SeqCst);
    assert!(!guard.is_valid() && guard.remaining().is_zero());
    // When the timer ends that was set for the next renewal.
    env.soon("the loss", guard.lost()).await;
    assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
}

async fn a_guard_outlives_a_shorter_suspension(env: Env) {
    let (client, machine) = client_of(&env, ms(20_000)).await;
    let guard = client.lock("a").lock().await.unwrap();
    machine.suspended.store(2000, Ordering::SeqCst);
    assert!(guard.is_valid() && guard.remaining() <= ms(18_000));
    guard.release().await.unwrap();
}

async fn a_loss_that_the_holder_notices_first_is_counted(env: Env) {
    for is_dropped in [false, true] {
        let (client, machine) = client_of(&env, ms(20_000)).await;
        let guard = client.lock("a").lock().await.unwrap();
        machine.suspended.store(20_000, Ordering::SeqCst);
        if is_dropped {
            drop(guard);
        } else {
            assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
        }
        assert_eq!(client.stats().lost, 1);
        // Its hold is released nevertheless.
        env.client().await.lock("a").lock().timeout(ms(10_000)).await.unwrap().release().await.unwrap();
    }
}
