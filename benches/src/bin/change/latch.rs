//! A latch that is counted down although there is none, then set, counted, and set again.

use std::sync::Arc;
use std::time::Duration;

use bowline::wire::{PREFIX, Resource};
use bowline::{Client, Config, Executor};
use bowline_benches::runtime::Runtime;
use bowline_benches::server::Probe;
use bowline_benches::{Result, clients};
use futures::{StreamExt, TryStreamExt, stream};

use crate::Line;

const AT_ONCE: usize = 500;
const NAME: &str = "bench:latch";

pub(crate) async fn measure(
    executor: Arc<dyn Executor>,
    url: String,
    mut probe: Probe,
    case: String,
    counts: u32,
) -> Result<Vec<Line>> {
    let config = Config::default();
    let (client, _) = clients::watched(Runtime::TokioMulti, &executor, &url, config).await?;
    count(&client, counts).await?;
    let missing = bytes(&mut probe)?;

    let latch = client.latch(NAME);
    latch.try_set(counts, Duration::from_secs(600)).await?;
    count(&client, counts).await?;
    let counted = bytes(&mut probe)?;
    let before = probe.executed()?;
    latch.try_set(1, Duration::from_secs(600)).await?;
    let set = probe.executed()? - before;
    client.close().await;
    Ok(vec![
        (case.clone(), "megabytes_of_a_missing_latch", missing as f64 / 1e6),
        (case.clone(), "megabytes_after_counting", counted as f64 / 1e6),
        (case, "try_set_milliseconds", set.micros as f64 / 1e3),
    ])
}

async fn count(client: &Client, counts: u32) -> Result<()> {
    let each = |_| {
        let latch = client.latch(NAME);
        async move { latch.count_down().await.map(drop) }
    };
    Ok(stream::iter(0..counts).map(each).buffer_unordered(AT_ONCE).try_for_each(|()| async { Ok(()) }).await?)
}

/// Of all keys of the latch.
fn bytes(probe: &mut Probe) -> Result<u64> {
    let mut sum = 0;
    for key in Resource::latch(PREFIX, NAME)?.keys() {
        sum += probe.ask::<Option<u64>>(&["MEMORY", "USAGE", &key, "SAMPLES", "0"])?.unwrap_or(0);
    }
    Ok(sum)
}
