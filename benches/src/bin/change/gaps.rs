//! Many holds of one client, and a subscription that is cut again and again.

use std::sync::Arc;
use std::time::Duration;

use bowline::{Config, Executor, LockGuard};
use bowline_benches::runtime::Runtime;
use bowline_benches::server::Probe;
use bowline_benches::{Result, clients};
use futures::{StreamExt, TryStreamExt, stream};

use crate::Line;

const AT_ONCE: usize = 200;

/// Milliseconds between two cuts: less than a full batch of renewals keeps the next one waiting.
const PAUSES: [u64; 4] = [500, 1_000, 1_500, 700];

pub(crate) async fn measure(
    executor: Arc<dyn Executor>,
    url: String,
    mut probe: Probe,
    case: String,
    holds: usize,
    seconds: u64,
) -> Result<Vec<Line>> {
    let (client, seen) = clients::watched(Runtime::TokioMulti, &executor, &url, Config::default()).await?;
    let acquire = |n: usize| {
        let lock = client.lock(&format!("bench:gaps:{n}"));
        async move { lock.lock().await }
    };
    let guards: Vec<LockGuard> = stream::iter(0..holds).map(acquire).buffer_unordered(AT_ONCE).try_collect().await?;
    let (ends, mut cuts) = (executor.now() + Duration::from_secs(seconds), 0_u32);
    for pause in PAUSES.into_iter().cycle() {
        if executor.now() >= ends {
            break;
        }
        executor.sleep(Duration::from_millis(pause)).await;
        probe.ask::<redis::Value>(&["CLIENT", "KILL", "TYPE", "pubsub"])?;
        cuts += 1;
    }
    let lost = guards.iter().filter(|guard| !guard.is_valid()).count();
    let lines = vec![
        (case.clone(), "cuts", f64::from(cuts)),
        (case.clone(), "lost", lost as f64),
        (case, "renewal_calls", seen.commands_of("lock_renew") as f64),
    ];
    drop(guards);
    client.close().await;
    Ok(lines)
}
