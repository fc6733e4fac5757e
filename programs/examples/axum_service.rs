//! An HTTP service: one client for all requests, a lock for each order, and what each failure is to the caller.
//!
//! `cargo run -p bowline-programs --example axum_service`, without a Redis, or on the one at `REDIS_URL`.
#![allow(clippy::disallowed_methods, reason = "an application uses its runtime directly")]

use std::{error::Error, time::Duration};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bowline::{Client, ErrorKind, LockGuard};
use bowline_programs::{http::request, redis};
use tokio::{net::TcpListener, sync::oneshot};

/// Ships an order. No two requests for one order work at the same time, in whatever processes they are.
async fn ship(State(client): State<Client>, Path(order): Path<String>) -> Result<String, Failed> {
    let lock = client.lock(&format!("order:{order}"));
    // A lost lease stops the work where it awaits. A caller that goes away releases the lock, or leaves the queue.
    let work = |guard: LockGuard| async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        format!("shipped, with token {}", guard.token())
    };
    lock.lock().timeout(Duration::from_millis(500)).run(work).await.map_err(Failed)
}

async fn health(State(client): State<Client>) -> Result<String, Failed> {
    client.lock("health").inspect().await.map_err(Failed)?;
    Ok(format!("{:?}", client.stats()))
}

struct Failed(bowline::Error);

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        let status = match self.0.kind() {
            // Somebody else works on the order, or may do so by now.
            ErrorKind::TimedOut | ErrorKind::QueueFull | ErrorKind::Lost => StatusCode::CONFLICT,
            // The service is about to end, or its Redis is away.
            ErrorKind::Closed | ErrorKind::Unavailable | ErrorKind::Refused => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        (status, [(header::RETRY_AFTER, "1")], format!("{:#}", self.0)).into_response()
    }
}

fn seen(expected: &str, (status, body): &(String, String)) {
    assert_eq!(status, expected, "{body}");
    println!("{status}: {body}");
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let client = redis::connect().await?;
    let routes = Router::new().route("/orders/{order}/ship", post(ship)).route("/health", get(health));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    // A service would wait for `tokio::signal::ctrl_c()` in place of `stopped`.
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = axum::serve(listener, routes.with_state(client.clone())).with_graceful_shutdown(async {
        let _ = stopped.await;
    });
    let serving = tokio::spawn(serving.into_future());
    let (ship, lock) = (|| request(address, "POST", "/orders/42/ship"), client.lock("order:42"));
    let (first, second) = tokio::try_join!(ship(), ship())?;
    seen("200 OK", &first);
    seen("200 OK", &second);
    let other = lock.lock().await?;
    seen("409 Conflict", &ship().await?);
    other.release().await?;
    let shipping = tokio::spawn(ship());
    while lock.force_release().await?.is_none() {}
    seen("409 Conflict", &shipping.await??);
    seen("200 OK", &request(address, "GET", "/health").await?);
    client.close().await;
    seen("503 Service Unavailable", &ship().await?);
    drop(stop);
    Ok(serving.await??)
}
