//! Metrics for Prometheus: the recorder is installed once, and `/metrics` serves what all clients of the process tell.
//!
//! `cargo run -p bowline-programs --example metrics`, without a Redis, or on the one at `REDIS_URL`. With
//! `LISTEN=127.0.0.1:9000`, it goes on, so that a Prometheus can read it.
#![allow(clippy::disallowed_methods, reason = "an application uses its runtime directly")]

use std::error::Error;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use bowline::Client;
use bowline_programs::{http::request, redis};
use futures::future::join_all;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
use tokio::net::TcpListener;

/// Bounds of the buckets, in seconds: from a free lock to a wait that someone will notice.
const SECONDS: [f64; 9] = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0];

/// Eight tasks that want the same lock, and four permits.
async fn work(client: &Client) -> bowline::Result<()> {
    let tasks = (0..8).map(|n| async move {
        for _ in 0..10 {
            let lock = client.lock("orders").lock();
            let guard = if n % 2 == 0 { lock.fair() } else { lock.non_fair() }.await?;
            tokio::time::sleep(Duration::from_millis(1)).await;
            guard.release().await?;
            client.semaphore("mails", 4).acquire().await?.release().await?;
        }
        Ok(())
    });
    join_all(tasks).await.into_iter().collect()
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // Before the first client, because what is told without a recorder is not kept.
    let recorder = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)?
        .install_recorder()?;
    let client = redis::connect().await?;

    let listen = std::env::var("LISTEN");
    let listener = TcpListener::bind(listen.as_deref().unwrap_or("127.0.0.1:0")).await?;
    let address = listener.local_addr()?;
    let page = move || std::future::ready(recorder.render());
    let serving = tokio::spawn(axum::serve(listener, Router::new().route("/metrics", get(page))).into_future());

    work(&client).await?;
    while listen.is_ok() {
        work(&client).await?;
    }
    let (status, page) = request(address, "GET", "/metrics").await?;
    assert_eq!(status, "200 OK");
    println!("{page}");
    assert!(page.contains("bowline_wait_seconds_count{operation=\"lock\",outcome=\"granted\"} 80"), "80 locks");
    assert!(page.contains("bowline_holds 0"), "all were released");
    client.close().await;
    serving.abort();
    Ok(())
}
