//! Where a suite runs: each test on every runtime and server with futures, and once more through the blocking facade.
//! What only futures can do (be polled by hand, dropped half way, run inside one another) uses `support::env` instead.

mod acquire;
mod barrier;
mod changes;
mod client;
pub(crate) mod cost;
mod double_barrier;
mod election;
mod guard;
mod limiter;
mod once;
mod primitives;
mod redisson;
mod thread;

use std::ops::Deref;
use std::sync::Arc;

use bowline::{ConfigBuilder, blocking};

use crate::support::env::{Counts, Env as AsyncEnv, Runtime};
pub(crate) use acquire::Acquire;
pub(crate) use barrier::Barrier;
pub(crate) use changes::Changes;
pub(crate) use client::Client;
pub(crate) use double_barrier::{DoubleBarrier, Inside};
pub(crate) use guard::{
    LockGuard, Permit, ReadGuard, RedissonGuard, RedissonPermitGuard, UpgradableGuard, Upgrade, WriteGuard,
};
pub(crate) use limiter::RateLimiter;
pub(crate) use once::Once;
pub(crate) use primitives::{CountDownLatch, Lock, MultiLock, RwLock, Semaphore};
pub(crate) use redisson::RedissonPermits;

/// One thing, or what it is called in the other API.
#[derive(Clone, Debug)]
enum Either<A, B> {
    Async(A),
    Blocking(B),
}

/// What a test runs in, with clients whose calls are futures or block a thread.
#[derive(Clone)]
pub(crate) struct Env {
    inner: AsyncEnv,
    blocks: bool,
}

/// A client whose commands are counted, from after its creation on.
#[derive(Clone, Debug)]
pub(crate) struct TestClient {
    pub(crate) client: Client,
    pub(crate) counts: Arc<Counts>,
}

impl Env {
    pub(crate) async fn client(&self) -> TestClient {
        self.of(self.inner.client().await)
    }

    pub(crate) async fn client_with(&self, configure: impl FnOnce(ConfigBuilder) -> ConfigBuilder) -> TestClient {
        self.of(self.inner.client_with(configure).await)
    }

    pub(crate) async fn client_with_all_rights(
        &self,
        configure: impl FnOnce(ConfigBuilder) -> ConfigBuilder,
    ) -> TestClient {
        self.of(self.inner.client_with_all_rights(configure).await)
    }

    pub(crate) async fn client_at(
        &self,
        url: &str,
        configure: impl FnOnce(ConfigBuilder) -> ConfigBuilder,
    ) -> bowline::Result<TestClient> {
        Ok(self.of(self.inner.client_at(url, configure).await?))
    }

    fn of(&self, client: crate::support::env::TestClient) -> TestClient {
        let counts = client.counts;
        let client = if self.blocks {
            Either::Blocking(blocking::Client::new(client.client))
        } else {
            Either::Async(client.client)
        };
        TestClient { client: Client(client), counts }
    }
}

impl From<AsyncEnv> for Env {
    fn from(inner: AsyncEnv) -> Self {
        Self { inner, blocks: false }
    }
}

impl Deref for Env {
    type Target = AsyncEnv;

    fn deref(&self) -> &AsyncEnv {
        &self.inner
    }
}

impl Deref for TestClient {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

/// Runs `test` through the blocking facade, beside a runtime that one other thread drives.
pub(crate) fn run_blocking<Fut: Future<Output = ()> + 'static>(
    runtime: Runtime,
    test: impl FnOnce(Env) -> Fut + Copy + Send + 'static,
) {
    crate::support::env::run(runtime, move |inner: AsyncEnv| test(Env { inner, blocks: true }));
}

/// As [`run_blocking`], on the embedded server.
pub(crate) fn run_blocking_embedded<Fut: Future<Output = ()> + 'static>(
    runtime: Runtime,
    test: impl FnOnce(Env) -> Fut + Copy + Send + 'static,
) {
    crate::support::env::run_embedded(runtime, move |inner: AsyncEnv| test(Env { inner, blocks: true }));
}

/// As that of `support::env`, and through the blocking facade.
macro_rules! on_every_server {
    ($($test:ident),+ $(,)? $(; $($real:ident),+ $(,)?)?) => {
        $crate::lab::on_every_runtime! { $($test),+ $(, $($real),+)? }
        $crate::lab::on_the_embedded_server! { $($test),+ }
    };
}

/// As [`on_every_server`], without the embedded one.
macro_rules! on_every_runtime {
    ($($test:ident),+ $(,)?) => {
        $crate::support::env::on_every_runtime! { $($test),+ }
        #[cfg(feature = "tokio")]
        $crate::lab::blocking_on! { run_blocking, blocking_beside_tokio, TokioCurrent, $($test),+ }
    };
}

macro_rules! on_the_embedded_server {
    ($($test:ident),+ $(,)?) => {
        $crate::support::env::on_the_embedded_server! { $($test),+ }
        #[cfg(feature = "smol")]
        $crate::lab::blocking_on! { run_blocking_embedded, blocking_embedded, Smol, $($test),+ }
    };
}

macro_rules! blocking_on {
    ($run:ident, $module:ident, $runtime:ident, $($test:ident),+) => {
        mod $module {
            $(
                #[test]
                fn $test() {
                    $crate::lab::$run($crate::support::env::Runtime::$runtime, super::$test);
                }
            )+
        }
    };
}

pub(crate) use {blocking_on, on_every_runtime, on_every_server, on_the_embedded_server};
