//! One client with many waiters.

use std::future::IntoFuture;
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

use crate::process::{Look, resident, writes};

/// Requests under way at a time.
const AT_ONCE: usize = 500;

/// What the waiters wait for.
#[derive(Clone, Copy)]
pub(crate) enum Waiting {
    /// Each of them for a name of its own.
    Names,
    OneName,
}

impl Waiting {
    pub(crate) fn case(self) -> &'static str {
        match self {
            Self::Names => "waiting",
            Self::OneName => "waiting-for-one",
        }
    }

    pub(crate) fn names(self, waiters: usize) -> usize {
        match self {
            Self::Names => waiters,
            Self::OneName => 1,
        }
    }
}

/// Acquires all the names, or releases them, as another client.
pub(crate) async fn others(executor: Arc<dyn Executor>, url: String, names: usize, take: bool) -> Result<()> {
    let config = Config::builder().command_timeout(Duration::from_secs(60)).build()?;
    let connection: Arc<dyn Connection> = Arc::new(Runtime::TokioMulti.open(executor, &url, &config).await?);
    let locks: Vec<_> = (0..names).map(|n| RawLock::new(&name(names, n))).collect::<Result<_>>()?;
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

/// With the lease that is asked for: each ticket has a heartbeat every third of it.
pub(crate) fn measure(waiting: Waiting, url: &str, count: usize, lease: u64) -> Result<()> {
    let (url, lease, names) = (url.to_owned(), Duration::from_secs(lease), waiting.names(count));
    let runtime = Runtime::TokioMulti;
    runtime.run(|executor| async move {
        let config = Config::builder().lease(lease).build()?;
        let (client, seen) = clients::watched(runtime, &executor, &url, config).await?;
        let one = client.lock(&name(names, 0));
        child::ready()?;
        let (bytes, rss, wrote) = (alloc::live_bytes(), resident(), writes());
        let asked = seen.answers_to("lock_acquire");
        let (mut waiters, mut future) = (FuturesUnordered::new(), 0);
        while waiters.len() < count {
            for n in waiters.len()..count.min(waiters.len() + AT_ONCE) {
                let waiter = match waiting {
                    Waiting::Names => client.lock(&name(names, n)).lock().into_future(),
                    Waiting::OneName => one.lock().into_future(),
                };
                future = size_of_val(&*waiter);
                waiters.push(waiter);
            }
            while seen.answers_to("lock_acquire") - asked < waiters.len() as u64 {
                if let Some(Some(served)) = waiters.next().now_or_never() {
                    return Err(format!("a waiter was granted its lock: {:?}", served.map(drop)).into());
                }
                executor.sleep(Duration::from_millis(1)).await;
            }
        }
        let each = |sum: f64| sum / count as f64;
        let bytes = each(alloc::live_bytes().saturating_sub(bytes) as f64);
        let rss = rss.zip(resident()).map(|(before, after)| each(after - before));
        let wrote = wrote.zip(writes()).map(|(before, after)| each(after - before));

        let heartbeats = || seen.commands_of("lock_heartbeat");
        let (heartbeat_reply, look) = (heartbeats(), Look::now()?);
        executor.sleep(lease / 3).await;
        let (heartbeat_reply, share) = (heartbeats() - heartbeat_reply, Look::now()?.share_since(&look));

        let case = format!("{}-{count}", waiting.case());
        println!("{}", line(&case, "subscriptions", seen.subscriptions() as f64));
        println!("{}", line(&case, "tasks", seen.tasks() as f64));
        println!("{}", line(&case, "live_bytes_per_waiter", bytes));
        println!("{}", line(&case, "future_bytes", future as f64));
        println!("{}", line(&case, "besides_future_bytes", bytes - future as f64));
        if let Some(rss) = rss {
            println!("{}", line(&case, "rss_bytes_per_waiter", rss));
        }
        if let Some(wrote) = wrote {
            println!("{}", line(&case, "writes_per_waiter", wrote));
        }
        println!("{}", line(&case, "heartbeats_per_waiter", each(heartbeat_reply as f64)));
        println!("{}", line(&case, "cpu_share", share));
        drop(waiters);
        client.close().await;
        Ok(())
    })
}
