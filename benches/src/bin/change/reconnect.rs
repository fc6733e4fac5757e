//! One client that waits for many names, and both of its connections are cut at once.

use std::sync::Arc;
use std::time::Duration;

use bowline::{Config, Executor};
use bowline_benches::runtime::Runtime;
use bowline_benches::server::Probe;
use bowline_benches::{Result, clients};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};

use crate::Line;

const AT_ONCE: usize = 200;

/// The others hold for longer than the case lasts.
const HELD: Duration = Duration::from_secs(600);

/// Until everything has settled.
const AFTERWARDS: Duration = Duration::from_secs(30);

pub(crate) async fn measure(
    executor: Arc<dyn Executor>,
    url: String,
    mut probe: Probe,
    case: String,
    names: usize,
) -> Result<Vec<Line>> {
    let name = |n: usize| format!("bench:reconnect:{n}");
    let others = clients::plain(Runtime::TokioMulti, &executor, &url).await?;
    let hold = |n: usize| {
        let lock = others.lock(&name(n));
        async move { lock.lock().expires_after(HELD).await }
    };
    let held: Vec<_> = stream::iter(0..names).map(hold).buffer_unordered(AT_ONCE).try_collect().await?;

    let (client, seen) = clients::watched(Runtime::TokioMulti, &executor, &url, Config::default()).await?;
    let asked = seen.answers_to("lock_acquire");
    let mut waiters = FuturesUnordered::new();
    while waiters.len() < names {
        for n in waiters.len()..names.min(waiters.len() + AT_ONCE) {
            let lock = client.lock(&name(n));
            waiters.push(async move { lock.lock().await.map(drop) }.boxed());
        }
        while seen.answers_to("lock_acquire") - asked < waiters.len() as u64 {
            if let Some(Some(ended)) = waiters.next().now_or_never() {
                return Err(format!("a waiter ended too soon: {ended:?}").into());
            }
            executor.sleep(Duration::from_millis(1)).await;
        }
    }
    let whole = |probe: &mut Probe| probe.info("cmdstat_eval", Some("calls"));
    let bytes = |probe: &mut Probe| probe.info("total_net_input_bytes", None);
    let (whole_before, bytes_before, reconnects) = (whole(&mut probe)?, bytes(&mut probe)?, client.stats().reconnects);
    probe.ask::<redis::Value>(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"])?;
    probe.ask::<redis::Value>(&["CLIENT", "KILL", "TYPE", "pubsub"])?;
    let (ends, mut failed) = (executor.now() + AFTERWARDS, 0_u32);
    while executor.now() < ends {
        while let Some(Some(ended)) = waiters.next().now_or_never() {
            failed += u32::from(ended.is_err());
        }
        executor.sleep(Duration::from_millis(20)).await;
    }
    let lines = vec![
        (case.clone(), "failed", f64::from(failed)),
        (case.clone(), "scripts_sent_whole", (whole(&mut probe)? - whole_before) as f64),
        (case.clone(), "megabytes_sent", (bytes(&mut probe)? - bytes_before) as f64 / 1e6),
        (case.clone(), "heartbeats", seen.commands_of("lock_heartbeat") as f64),
        (case, "reconnects", (client.stats().reconnects - reconnects) as f64),
    ];
    drop((waiters, held));
    futures::join!(client.close(), others.close());
    Ok(lines)
}
