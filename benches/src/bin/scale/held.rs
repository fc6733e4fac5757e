//! Many locks held by one client: what the watchdog needs to keep them.

use std::time::Duration;

use bowline::{Config, LockGuard};
use bowline_benches::report::line;
use bowline_benches::runtime::Runtime;
use bowline_benches::{Result, alloc, child, clients};
use futures::{StreamExt, TryStreamExt, stream};

use crate::process::Look;

/// Holds in one renewal call.
const BATCH: usize = 256;

/// Acquisitions under way at a time.
const AT_ONCE: usize = 200;

pub(crate) fn measure(url: &str, names: usize, lease: u64, rounds: u32) -> Result<()> {
    let (url, lease) = (url.to_owned(), Duration::from_secs(lease));
    let runtime = Runtime::TokioMulti;
    runtime.run(|executor| async move {
        let config = Config::builder().lease(lease).retry_timeout(Duration::from_secs(2)).build()?;
        let (client, seen) = clients::watched(runtime, &executor, &url, config).await?;
        child::ready()?;
        let bytes = alloc::live_bytes();
        let acquire = |n: usize| {
            let lock = client.lock(&format!("bench:held:{names}:{n}"));
            async move { lock.lock().await }
        };
        let guards: Vec<LockGuard> =
            stream::iter(0..names).map(acquire).buffer_unordered(AT_ONCE).try_collect().await?;
        let bytes = alloc::live_bytes().saturating_sub(bytes);
        // Until each hold was renewed once and the batches are full.
        executor.sleep(lease).await;

        let renewals = || seen.commands_of("lock_renew");
        let (renewed, look) = (renewals(), Look::now()?);
        executor.sleep(lease / 3 * rounds).await;
        let (renewed, share) = ((renewals() - renewed) as f64 / f64::from(rounds), Look::now()?.share_since(&look));

        let case = format!("held-{names}");
        let full = names.div_ceil(BATCH) as f64;
        let lost = guards.iter().filter(|guard| !guard.is_valid()).count();
        println!("{}", line(&case, "renewals_per_round", renewed));
        println!("{}", line(&case, "full_batches", full));
        println!("{}", line(&case, "renewals_to_full_batches", renewed / full));
        println!("{}", line(&case, "cpu_share", share));
        println!("{}", line(&case, "tasks", seen.tasks() as f64));
        println!("{}", line(&case, "live_bytes_per_hold", bytes as f64 / names as f64));
        println!("{}", line(&case, "lost", lost as f64));
        drop(guards);
        client.close().await;
        Ok(())
    })
}
