//! A run under load with a failover in it, whose metrics a Prometheus can read. `scripts/dashboard` makes the picture
//! of docs/metrics.md from it.
//!
//! `cargo run --release -p bowline-benches --features dashboard --bin dashboard -- port=9000 [seconds=60] [fails=20]`
#![allow(clippy::disallowed_methods, reason = "what is measured here is real time")]

use std::time::Duration;

use axum::Router;
use axum::routing::get;
use bowline::{Client, Config, ErrorKind};
use bowline_benches::Result;
use bowline_benches::args::Args;
use bowline_testkit::sentinels::Sentinels;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep, sleep_until};

/// Bounds of the buckets, in seconds.
const SECONDS: [f64; 12] = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.3, 1.0, 3.0, 10.0];

const CLIENTS: usize = 8;
const TASKS: usize = 4;
/// Locks that are held for the whole run, by each client.
const HELD: usize = 25;

fn main() -> Result<()> {
    let args = Args::parse(&["port", "seconds", "fails"])?;
    let (port, seconds, fails) = (args.value("port", 9000_u16)?, args.value("seconds", 60)?, args.value("fails", 20)?);
    let recorder = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)?
        .install_recorder()?;
    // One second, in which the sentinels call the primary down.
    let mut sentinels = Sentinels::start_with(Duration::from_secs(1), &[]);
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let page = move || std::future::ready(recorder.render());
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        tokio::spawn(axum::serve(listener, Router::new().route("/metrics", get(page))).into_future());
        let began = Instant::now();
        let config = || Config::builder().lease(Duration::from_secs(6)).build();
        let mut clients = Vec::new();
        for number in 0..CLIENTS {
            let client = bowline::tokio::connect_with(sentinels.url(), config()?).await?;
            (0..TASKS).for_each(|task| drop(tokio::spawn(work(client.clone(), number + task))));
            (0..HELD).for_each(|held| drop(tokio::spawn(hold(client.clone(), format!("shard:{number}:{held}")))));
            clients.push(client);
        }
        sleep_until(began + Duration::from_secs(fails)).await;
        println!("the primary is killed");
        sentinels.kill(0);
        sleep_until(began + Duration::from_secs(seconds)).await;
        for client in clients {
            println!("{:?}", client.stats());
            client.close().await;
        }
        Ok(())
    })
}

/// Works under one of two locks, and then under one of three permits, until the client is closed.
async fn work(client: Client, number: usize) {
    let (lock, permits) = (client.lock(&format!("orders:{}", number % 2)), client.semaphore("mails", 3));
    loop {
        let locking = lock.lock().timeout(Duration::from_secs(5));
        let locking = if number.is_multiple_of(2) { locking.fair() } else { locking.non_fair() };
        let locked = locking.run(|_| sleep(Duration::from_millis(2))).await;
        let permitted = permits.acquire().run(|_| sleep(Duration::from_millis(2))).await;
        if [locked, permitted].iter().any(|ended| ended.as_ref().is_err_and(|error| error.kind() == ErrorKind::Closed))
        {
            return;
        }
    }
}

/// Holds the lock as long as it is not lost, and then again.
async fn hold(client: Client, name: String) {
    while let Ok(guard) = client.lock(&name).lock().await {
        guard.lost().await;
    }
}
