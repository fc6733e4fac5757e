//! What stays in the process: re-entry, and tasks that take turns.

use std::sync::Arc;
use std::time::Instant;

use bowline::{Config, Executor, Holder, Lock};
use bowline_benches::alloc::allocations;
use bowline_benches::runtime::Runtime;
use bowline_benches::{Result, clients};
use futures::future::try_join;

use crate::Metrics;

/// Acquires again what the holder has.
pub(crate) async fn reentry(runtime: Runtime, executor: Arc<dyn Executor>, url: String, times: u32) -> Result<Metrics> {
    let (client, seen) = clients::watched(runtime, &executor, &url, Config::default()).await?;
    let (holder, lock) = (Holder::new(), client.lock("bench:reentry"));
    let outer = lock.lock().holder(&holder).await?;
    let (commands, allocated, start) = (seen.commands(), allocations(), Instant::now());
    for _ in 0..times {
        lock.lock().holder(&holder).await?.release().await?;
    }
    let (nanos, allocated) = (start.elapsed().as_nanos() as f64, allocations() - allocated);
    let commands = seen.commands() - commands;
    outer.release().await?;
    client.close().await;
    let each = |sum: f64| sum / f64::from(times);
    Ok(vec![("commands", each(commands as f64)), ("ns", each(nanos)), ("allocations", each(allocated as f64))])
}

/// Two that want the lock all the time.
pub(crate) async fn turns(
    runtime: Runtime,
    executor: Arc<dyn Executor>,
    url: String,
    fair: bool,
    times: u32,
) -> Result<Metrics> {
    let (client, seen) = clients::watched(runtime, &executor, &url, Config::default()).await?;
    let lock = client.lock("bench:turns");
    try_join(take(&lock, fair, 2), take(&lock, fair, 2)).await?;
    let (commands, start) = (seen.commands(), Instant::now());
    try_join(take(&lock, fair, times), take(&lock, fair, times)).await?;
    let micros = start.elapsed().as_secs_f64() * 1e6;
    let commands = seen.commands() - commands;
    client.close().await;
    let each = |sum: f64| sum / f64::from(2 * times);
    Ok(vec![("commands_per_acquisition", each(commands as f64)), ("us_per_acquisition", each(micros))])
}

async fn take(lock: &Lock, fair: bool, times: u32) -> Result<()> {
    for _ in 0..times {
        let acquire = lock.lock();
        let acquire = if fair { acquire.fair() } else { acquire.non_fair() };
        acquire.await?.release().await?;
    }
    Ok(())
}
