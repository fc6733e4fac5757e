//! One client that waits for many names at once.

use std::sync::Arc;
use std::time::Duration;

use bowline::{Config, Connection, Executor};
use bowline_benches::raw::RawLock;
use bowline_benches::report::line;
use bowline_benches::runtime::Runtime;
use bowline_benches::{Result, alloc, child, clients};
use futures::future::try_join_all;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};

use crate::process::{Look, resident};

/// Requests under way at a time.
const AT_ONCE: usize = 500;

/// Takes all the names, or gives them back, in the name of somebody else.
pub(crate) async fn others(executor: Arc<dyn Executor>, url: String, names: usize, take: bool) -> Result<()> {
    let config = Config::builder().command_timeout(Duration::from_secs(60)).build()?;
    let connection: Arc<dyn Connection> = Arc::new(Runtime::TokioMulti.open(executor, &url, &config).await?);
    let locks: Vec<_> = (0..names).map(|n| RawLock::new(&name(names, n))).collect();
    for chunk in locks.chunks(AT_ONCE) {
        let each = chunk.iter().map(|lock| async {
            if take { lock.acquire(&*connection, 1).await.map(drop) } else { lock.release(&*connection, 1).await }
        });
        try_join_all(each).await?;
    }
    Ok(())
}

fn name(names: usize, n: usize) -> String {
    format!("bench:waiting:{names}:{n}")
}

/// With the lease that is asked for: tickets are touched every third of it.
pub(crate) fn measure(url: &str, names: usize, lease: u64) -> Result<()> {
    let (url, lease) = (url.to_owned(), Duration::from_secs(lease));
    let runtime = Runtime::TokioMulti;
    runtime.run(|executor| async move {
        let config = Config::builder().lease(lease).build()?;
        let (client, seen) = clients::watched(runtime, &executor, &url, config).await?;
        child::ready()?;
        let (bytes, rss, asked) = (alloc::live_bytes(), resident(), seen.answers_to("lock_acquire"));
        let mut waiters = FuturesUnordered::new();
        while waiters.len() < names {
            for n in waiters.len()..names.min(waiters.len() + AT_ONCE) {
                let lock = client.lock(&name(names, n));
                waiters.push(async move { lock.lock().await }.boxed());
            }
            while seen.answers_to("lock_acquire") - asked < waiters.len() as u64 {
                if let Some(Some(served)) = waiters.next().now_or_never() {
                    return Err(format!("somebody was served: {:?}", served.map(drop)).into());
                }
                executor.sleep(Duration::from_millis(1)).await;
            }
        }
        let each = |sum: f64| sum / names as f64;
        let bytes = each(alloc::live_bytes().saturating_sub(bytes) as f64);
        let rss = rss.zip(resident()).map(|(before, after)| each(after - before));

        let heartbeats = || seen.commands_of("lock_heartbeat");
        let (heartbeat_reply, look) = (heartbeats(), Look::now()?);
        executor.sleep(lease / 3).await;
        let (heartbeat_reply, share) = (heartbeats() - heartbeat_reply, Look::now()?.share_since(&look));

        let case = format!("waiting-{names}");
        println!("{}", line(&case, "subscriptions", seen.subscriptions() as f64));
        println!("{}", line(&case, "tasks", seen.tasks() as f64));
        println!("{}", line(&case, "live_bytes_per_waiter", bytes));
        if let Some(rss) = rss {
            println!("{}", line(&case, "rss_bytes_per_waiter", rss));
        }
        println!("{}", line(&case, "heartbeats_per_waiter", each(heartbeat_reply as f64)));
        println!("{}", line(&case, "cpu_share", share));
        drop(waiters);
        client.close().await;
        Ok(())
    })
}
