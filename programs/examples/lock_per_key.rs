//! A tower layer that holds a lock for the key of each request: requests for one key run one after the other in all
//! processes, and those for different keys side by side.
//!
//! `cargo run -p bowline-programs --example lock_per_key`, without a Redis, or on the one at `REDIS_URL`.
#![allow(clippy::disallowed_methods, reason = "an application uses its runtime directly")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bowline::Client;
use bowline_programs::redis;
use futures::future::{BoxFuture, try_join_all};
use tower::{BoxError, Layer, Service, ServiceBuilder, ServiceExt, service_fn};

/// `key` names the lock of a request.
#[derive(Clone)]
struct LockPerKey<K> {
    client: Client,
    key: K,
    timeout: Duration,
}

impl<S, K: Clone> Layer<S> for LockPerKey<K> {
    type Service = Locked<S, K>;

    fn layer(&self, inner: S) -> Self::Service {
        Locked(inner, self.clone())
    }
}

#[derive(Clone)]
struct Locked<S, K>(S, LockPerKey<K>);

impl<S, K, R> Service<R> for Locked<S, K>
where
    S: Service<R, Error = BoxError, Future: Send> + Clone + Send + 'static,
    S::Response: Send,
    K: Fn(&R) -> String,
    R: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<S::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let LockPerKey { client, key, timeout } = &self.1;
        let locking = client.lock(&key(&request)).lock().timeout(*timeout);
        // The service that is ready is this one. Its clone need not be.
        let clone = self.0.clone();
        let mut inner = std::mem::replace(&mut self.0, clone);
        Box::pin(async move { locking.run(|_| inner.call(request)).await? })
    }
}

static RUNNING: [AtomicU32; 2] = [const { AtomicU32::new(0) }; 2];

async fn transfer((account, amount): (usize, u32)) -> Result<u32, BoxError> {
    assert_eq!(RUNNING[account].fetch_add(1, Ordering::SeqCst), 0, "two transfers of one account at a time");
    tokio::time::sleep(Duration::from_millis(10)).await;
    println!("account {account}: {amount}");
    RUNNING[account].fetch_sub(1, Ordering::SeqCst);
    Ok(amount)
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let client = redis::connect().await?;
    let key = |(account, _): &(usize, u32)| format!("account:{account}");
    let layer = LockPerKey { client: client.clone(), key, timeout: Duration::from_secs(10) };
    let service = ServiceBuilder::new().layer(layer).service(service_fn(transfer));
    let transfers = (0..12).map(|amount| service.clone().oneshot((amount as usize % 2, amount)));
    assert_eq!(try_join_all(transfers).await?, (0..12).collect::<Vec<u32>>());
    client.close().await;
    Ok(())
}
