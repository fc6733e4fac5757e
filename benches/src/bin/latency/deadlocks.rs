//! Three programs that wait for each other among many names that are held: how long it takes to find them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline::{Client, Executor, LockGuard};
use bowline_benches::runtime::Runtime;
use bowline_benches::{Result, clients};
use futures::future::{BoxFuture, FutureExt, join_all, select, try_join_all};

use crate::Metrics;

const HELD: usize = 10_000;
const SEARCHES: usize = 20;

pub(crate) async fn measure(runtime: Runtime, executor: Arc<dyn Executor>, url: String) -> Result<Metrics> {
    let holder = clients::plain(runtime, &executor, &url).await?;
    let names: Vec<String> = (0..HELD).map(|n| format!("bench:held:{n}")).collect();
    let mut guards = Vec::new();
    for names in names.chunks(500) {
        let locks = names.iter().map(|name| holder.lock(name).lock().into_future());
        guards.extend(try_join_all(locks).await?);
    }
    let mut programs = Vec::new();
    for name in ["bench:a", "bench:b", "bench:c"] {
        let client = clients::plain(runtime, &executor, &url).await?;
        guards.push(client.lock(name).lock().await?);
        programs.push(client);
    }
    let wanted = programs.iter().zip(["bench:b", "bench:c", "bench:a"]);
    let waits = wanted.map(|(client, name)| client.lock(name).lock().into_future());
    // They wait for each other until they are dropped.
    let waits: BoxFuture<'_, Vec<bowline::Result<LockGuard>>> = join_all(waits).boxed();
    let searches = searches(&holder).boxed();
    let metrics = match select(searches, waits).await {
        futures::future::Either::Left((metrics, waits)) => {
            drop(waits);
            metrics?
        }
        futures::future::Either::Right(_) => return Err("the programs do not wait".into()),
    };
    for released in join_all(guards.into_iter().map(LockGuard::release)).await {
        released?;
    }
    for client in programs.iter().chain([&holder]) {
        client.close().await;
    }
    Ok(metrics)
}

async fn searches(client: &Client) -> Result<Metrics> {
    while client.deadlocks().await?.is_empty() {
        client.executor().sleep(Duration::from_millis(10)).await;
    }
    let mut times = Vec::new();
    for _ in 0..SEARCHES {
        let start = Instant::now();
        let found = client.deadlocks().await?;
        times.push(start.elapsed());
        if found.len() != 1 || found[0].waits.len() != 3 {
            return Err(format!("found {found:?}").into());
        }
    }
    times.sort_unstable();
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    Ok(vec![("p50_ms", ms(times[SEARCHES / 2])), ("longest_ms", ms(times[SEARCHES - 1]))])
}
