//! What a new client costs: the time and the commands until it has its first grant.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::Metrics;
use bowline::{Client, Config, Executor};
use bowline_benches::bare::BareConnection;
use bowline_benches::far::Far;
use bowline_benches::measure::Samples;
use bowline_benches::runtime::Runtime;
use bowline_benches::{Result, clients};

const NAME: &str = "bench:connect";
const WARM_UP: u32 = 5;
const FAR_CLIENTS: u32 = 9;

pub(crate) async fn measure(runtime: Runtime, executor: Arc<dyn Executor>, url: String, pairs: u32) -> Result<Metrics> {
    let (ahead, background) = (Config::default(), Config::builder().connect_in_background(true).build()?);
    // The floor sends what a pair sends, and the first part of it is the acquisition.
    let (client, seen) = clients::watched(runtime, &executor, &url, Config::default()).await?;
    let connecting = seen.commands();
    seen.record();
    client.lock(NAME).lock().await?.release().await?;
    let sent = seen.recorded();
    client.close().await;
    let known = BareConnection::open(runtime, &executor, &url).await?;
    let acquisition = known.floor_of(&sent[..1]);
    let [mut floor, mut connected, mut granted, mut at_once, mut in_background] =
        std::array::from_fn(|_| Samples::default());
    for n in 0..WARM_UP + pairs / 30 {
        let counts = n >= WARM_UP;
        let start = Instant::now();
        let mut bare = known.another(runtime, &executor, &url).await?;
        bare.run(&acquisition).await?;
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
    let far = Far::from(&url, crate::FAR)?;
    let [ahead_far, background_far] = [&ahead, &background].map(|config| round_trips(runtime, &executor, &far, config));
    Ok(vec![
        ("round_trips", ahead_far.await?),
        ("background_round_trips", background_far.await?),
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

/// The median of the round trips until the first grant. The floor takes two: a login and a script.
async fn round_trips(runtime: Runtime, executor: &Arc<dyn Executor>, far: &Far, config: &Config) -> Result<f64> {
    let mut granted = Samples::default();
    for _ in 0..FAR_CLIENTS {
        let start = Instant::now();
        let client = clients::plain_with(runtime, executor, &far.url(), config.clone()).await?;
        first_grant(&client).await?;
        granted.add(start.elapsed());
        client.close().await;
    }
    Ok(far.round_trips(granted))
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
