//! A pair by the blocking facade, beside one of the async API of the same client.

use std::sync::Arc;
use std::time::Instant;

use bowline::{Executor, blocking};
use bowline_benches::measure::Samples;
use bowline_benches::runtime::Runtime;
use bowline_benches::{Result, clients};
use futures::channel::oneshot;

use crate::Metrics;

/// Pairs of a side's turn. The blocking one has a thread for each turn.
const SLICE: u32 = 50;

pub(crate) async fn measure(runtime: Runtime, executor: Arc<dyn Executor>, url: String, pairs: u32) -> Result<Metrics> {
    let client = clients::plain(runtime, &executor, &url).await?;
    let (lock, facade) = (client.lock("bench:async"), blocking::Client::new(client.clone()));
    let [mut plain, mut blocking] = [Samples::default(), Samples::default()];
    for n in 0..=pairs.div_ceil(SLICE) {
        let (done, slice) = oneshot::channel();
        let facade = facade.clone();
        std::thread::spawn(move || done.send(blocks(&facade)));
        let blocked = slice.await??;
        let mut awaited = Samples::default();
        for _ in 0..SLICE {
            let start = Instant::now();
            lock.lock().await?.release().await?;
            awaited.add(start.elapsed());
        }
        if n > 0 {
            blocking.extend(blocked);
            plain.extend(awaited);
        }
    }
    client.close().await;
    Ok(vec![
        ("ratio_p50", blocking.percentile(50.0) / plain.percentile(50.0)),
        ("p50_us", blocking.percentile(50.0)),
        ("p99_us", blocking.percentile(99.0)),
        ("async_p50_us", plain.percentile(50.0)),
        ("async_p99_us", plain.percentile(99.0)),
    ])
}

/// A turn of the blocking side.
fn blocks(client: &blocking::Client) -> bowline::Result<Samples> {
    let (lock, mut samples) = (client.lock("bench:blocking"), Samples::default());
    for _ in 0..SLICE {
        let start = Instant::now();
        lock.lock().block()?.release()?;
        samples.add(start.elapsed());
    }
    Ok(samples)
}
