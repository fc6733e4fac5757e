//! What a new client costs: the time and the commands until it has its first grant.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline::{Client, Config, Executor};
use bowline_benches::bare::BareConnection;
use bowline_benches::measure::Samples;
use bowline_benches::runtime::Runtime;
use bowline_benches::{Result, clients};

use crate::Metrics;

const NAME: &str = "bench:connect";
const WARM_UP: u32 = 5;

pub(crate) async fn measure(runtime: Runtime, executor: Arc<dyn Executor>, url: String, pairs: u32) -> Result<Metrics> {
    let (ahead, background) = (Config::default(), Config::builder().connect_in_background(true).build()?);
    // The floor sends what a pair sends, and the first part of it is the acquisition.
    let (client, seen) = clients::watched(runtime, &executor, &url, Config::default()).await?;
    let connecting = seen.commands();
    seen.record();
    client.lock(NAME).lock().await?.release().await?;
    let sent = seen.recorded();
    client.close().await;
    let [mut floor, mut connected, mut granted, mut at_once, mut in_background] =
        std::array::from_fn(|_| Samples::default());
    for n in 0..WARM_UP + pairs / 30 {
        let counts = n >= WARM_UP;
        let start = Instant::now();
        let mut bare = BareConnection::open(runtime, &executor, &url).await?;
        bare.run(&bare.floor_of(&sent[..1])).await?;
        add(&mut floor, start.elapsed(), counts);
        drop(bare);
        for (config, connected, granted) in
            [(&ahead, &mut connected, &mut granted), (&background, &mut at_once, &mut in_background)]
        {
            let start = Instant::now();
            let client = clients::plain_with(runtime, &executor, &url, config.clone()).await?;
            add(connected, start.elapsed(), counts);
            first_grant(&client).await?;
            add(granted, start.elapsed(), counts);
            client.close().await;
        }
    }
    let floor_us = floor.percentile(50.0);
    Ok(vec![
        ("ratio_p50", granted.percentile(50.0) / floor_us),
        ("background_ratio_p50", in_background.percentile(50.0) / floor_us),
        ("commands", connecting as f64 + 1.0),
        ("connected_p50_us", connected.percentile(50.0)),
        ("granted_p50_us", granted.percentile(50.0)),
        ("background_connected_p50_us", at_once.percentile(50.0)),
        ("background_granted_p50_us", in_background.percentile(50.0)),
        ("floor_p50_us", floor_us),
    ])
}

/// The guard is released when the client closes, which is not measured.
async fn first_grant(client: &Client) -> Result<()> {
    drop(client.lock(NAME).lock().await?);
    Ok(())
}

fn add(samples: &mut Samples, took: Duration, counts: bool) {
    if counts {
        samples.add(took);
    }
}
