//! One client with many waiters of one name is closed.

use std::sync::Arc;
use std::time::Duration;

use bowline::wire::{PREFIX, Resource};
use bowline::{Config, Executor};
use bowline_benches::runtime::Runtime;
use bowline_benches::server::Probe;
use bowline_benches::{Result, clients};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};

use crate::Line;

const AT_ONCE: usize = 200;
const NAME: &str = "bench:close";

pub(crate) async fn measure(
    executor: Arc<dyn Executor>,
    url: String,
    mut probe: Probe,
    case: String,
    count: usize,
) -> Result<Vec<Line>> {
    let others = clients::plain(Runtime::TokioMulti, &executor, &url).await?;
    let held = others.lock(NAME).lock().await?;
    // Long enough for the slowest server.
    let config = Config::builder().retry_timeout(Duration::from_secs(60)).build()?;
    let (client, seen) = clients::watched(Runtime::TokioMulti, &executor, &url, config).await?;
    let asked = seen.answers_to("lock_acquire");
    let mut waiters = FuturesUnordered::new();
    while waiters.len() < count {
        for _ in waiters.len()..count.min(waiters.len() + AT_ONCE) {
            let lock = client.lock(NAME);
            waiters.push(async move { lock.lock().await.map(drop) }.boxed());
        }
        while seen.answers_to("lock_acquire") - asked < waiters.len() as u64 {
            if let Some(Some(ended)) = waiters.next().now_or_never() {
                return Err(format!("a waiter ended too soon: {ended:?}").into());
            }
            executor.sleep(Duration::from_millis(1)).await;
        }
    }
    let (before, began) = (probe.executed()?, executor.now());
    client.close().await;
    let took = executor.now().saturating_duration_since(began);
    let spent = probe.executed()? - before;
    let [_, queue, ..] = &Resource::lock(PREFIX, NAME)?.keys()[..] else { return Err("a lock has a queue".into()) };
    let left: u64 = probe.ask(&["LLEN", queue])?;
    drop((waiters, held));
    others.close().await;
    Ok(vec![
        (case.clone(), "server_seconds", spent.micros as f64 / 1e6),
        (case.clone(), "seconds", took.as_secs_f64()),
        (case, "tickets_left", left as f64),
    ])
}
