//! Names, holds and waiters that are there, and what keeping them takes.

use std::sync::Arc;
use std::time::Duration;

use bowline::{Client, Config, Executor, LockGuard};
use bowline_benches::runtime::Runtime;
use bowline_benches::server::Probe;
use bowline_benches::{Result, clients};
use futures::{FutureExt, StreamExt, TryStreamExt, stream};

use crate::Line;
use crate::look::Look;

/// Requests under way at a time.
const AT_ONCE: usize = 200;

/// Its third is the time between two renewals or heartbeats.
const LEASE: Duration = Duration::from_secs(9);

pub(crate) async fn measure(
    executor: Arc<dyn Executor>,
    url: String,
    mut probe: Probe,
    names: usize,
) -> Result<Vec<Line>> {
    let config = Config::builder().lease(LEASE).build()?;
    let holder = clients::plain_with(Runtime::TokioMulti, &executor, &url, config.clone()).await?;
    let (waiter, waits) = clients::watched(Runtime::TokioMulti, &executor, &url, config).await?;
    // The leases last, so that only heartbeats are sent while heartbeats are counted.
    let config = Config::builder().lease(Duration::from_secs(3600)).build()?;
    let owner = clients::plain_with(Runtime::TokioMulti, &executor, &url, config).await?;
    let mut lines = Vec::new();
    let mut add = |metric, value: f64| lines.push(("stock".to_owned(), metric, value / names as f64));

    let empty = used(&mut probe)?;
    let guards = hold_all(&holder, "held", names).await?;
    add("bytes_per_hold", used(&mut probe)? - empty);
    executor.sleep(LEASE).await;
    let (renewed, before) = (holder.stats().renewals, Look::now(&mut probe)?);
    executor.sleep(LEASE).await;
    let renewed = holder.stats().renewals - renewed;
    let mut kept = Look::now(&mut probe)?.each_since(&before, "renewal", renewed);
    drop(guards);
    holder.close().await;
    add("bytes_per_name_left", used(&mut probe)? - empty);

    let guards = hold_all(&owner, "waited", names).await?;
    let before = used(&mut probe)?;
    let mut waiting = stream::FuturesUnordered::new();
    while waiting.len() < names {
        for n in waiting.len()..names.min(waiting.len() + AT_ONCE) {
            let lock = waiter.lock(&format!("waited:{n}"));
            waiting.push(async move { lock.lock().await.map(drop) }.boxed());
        }
        while waits.answers_to("lock_acquire") < waiting.len() as u64 {
            if let Some(Some(ended)) = waiting.next().now_or_never() {
                return Err(format!("a waiter ended too soon: {ended:?}").into());
            }
            executor.sleep(Duration::from_millis(1)).await;
        }
    }
    add("bytes_per_queue_of_one", used(&mut probe)? - before);
    executor.sleep(LEASE / 3).await;
    let (sent, before) = (waits.commands_of("lock_heartbeat"), Look::now(&mut probe)?);
    executor.sleep(LEASE).await;
    let sent = waits.commands_of("lock_heartbeat") - sent;
    kept.extend(Look::now(&mut probe)?.each_since(&before, "heartbeat", sent));
    drop((waiting, guards));
    waiter.close().await;
    owner.close().await;
    lines.extend(kept);
    Ok(lines)
}

async fn hold_all(client: &Client, kind: &str, names: usize) -> bowline::Result<Vec<LockGuard>> {
    let acquire = |n: usize| {
        let lock = client.lock(&format!("{kind}:{n}"));
        async move { lock.lock().await }
    };
    stream::iter(0..names).map(acquire).buffer_unordered(AT_ONCE).try_collect().await
}

/// The memory of what the server keeps, without what clients' buffers take.
fn used(probe: &mut Probe) -> Result<f64> {
    let total = probe.info("used_memory", None)?;
    let clients = probe.info("mem_clients_normal", None)?;
    Ok(total as f64 - clients as f64)
}
