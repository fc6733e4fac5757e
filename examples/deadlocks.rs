//! Two programs wait for each other. An operator finds that out, and takes one of their locks.
//!
//! `cargo run --example deadlocks`, without a Redis, or on the one at `REDIS_URL`.
#![allow(clippy::disallowed_methods, reason = "an application uses its runtime directly")]

use std::error::Error;
use std::time::Duration;

use bowline::embedded::Server;
use bowline::{Client, Config, LockGuard};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Outcome<()> {
    let server = Server::new();
    let clients = [client(&server, "web-1").await?, client(&server, "web-2").await?];
    let operator = client(&server, "operator").await?;

    // Each has one account, and wants the other one. `client.lock_all(["alice", "bob"])` would never do that.
    let guards = [clients[0].lock("alice").lock().await?, clients[1].lock("bob").lock().await?];
    let [alice, bob] = guards;
    let programs = [
        tokio::spawn(transfer(clients[0].clone(), alice, "bob")),
        tokio::spawn(transfer(clients[1].clone(), bob, "alice")),
    ];

    let deadlock = loop {
        // Waits until the labels are stored, too.
        match operator.deadlocks().await?.pop() {
            Some(deadlock) if deadlock.waits.iter().all(|wait| wait.label.is_some()) => break deadlock,
            _ => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    };
    println!("{deadlock}");
    if let Some(way_out) = &deadlock.way_out {
        let lock = operator.lock(&way_out.name.name);
        // It may have ended since: take the lock only from the hold that was found.
        let token = lock.inspect().await?.holder.map(|holder| holder.token);
        if token == way_out.token
            && let Some(fence) = lock.force_release().await?
        {
            println!("have the storage reject tokens below {fence}");
        }
    }
    for program in programs {
        program.await??;
    }
    assert!(operator.deadlocks().await?.is_empty());
    for client in clients.iter().chain([&operator]) {
        client.close().await;
    }
    Ok(())
}

async fn transfer(client: Client, held: LockGuard, wanted: &'static str) -> Outcome<()> {
    // Stops waiting if the lock that it holds is taken away.
    match held.protect(client.lock(wanted).lock().into_future()).await {
        Ok(second) => {
            println!("{} and {wanted} are locked", held.name());
            second?.release().await?;
            held.release().await?;
        }
        Err(error) => println!("{error}"),
    }
    Ok(())
}

/// At `REDIS_URL`, else on the embedded server.
async fn client(server: &Server, label: &str) -> bowline::Result<Client> {
    let config = Config::builder().label(label).build()?;
    match std::env::var("REDIS_URL") {
        Ok(url) => bowline::tokio::connect_with(&url, config).await,
        Err(_) => server.client_with(bowline::tokio::Tokio::current()?, config).await,
    }
}
