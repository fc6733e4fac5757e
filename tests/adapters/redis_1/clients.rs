//! Clients over the application's connection.

use bowline::Client;
use futures::future::maybe_done;

use super::*;
use crate::support::adapters::hand_over;

/// Two clients, each over a manager of its own: one waits for the other's lock.
#[test]
fn a_lock_is_handed_over() {
    on_tokio(|executor| async move {
        let server = Server::start();
        let mut clients = Vec::new();
        for _ in 0..2 {
            let redis = redis::Client::open(server.url()).unwrap();
            let connection = by_manager(executor.clone(), redis).await.unwrap();
            clients.push(Client::connect(executor.clone(), Arc::new(connection), config()).await.unwrap());
        }
        hand_over(&clients).await;
        for client in &clients {
            client.close().await;
        }
    });
}

/// Polls acquisitions once, more than are let through at a time, and then no more. Another one is granted all the same.
pub(super) async fn hold_up_nobody(client: &Client) {
    let acquire = |n| Box::pin(maybe_done(client.lock(&format!("kept:{n}")).lock().into_future()));
    let mut kept: Vec<_> = (0..200).map(acquire).collect();
    for acquisition in &mut kept {
        let _ = futures::poll!(acquisition);
    }
    for n in 0..50 {
        client.lock(&format!("other:{n}")).lock().await.unwrap().release().await.unwrap();
    }
    for mut acquisition in kept {
        acquisition.as_mut().await;
        acquisition.as_mut().take_output().unwrap().unwrap().release().await.unwrap();
    }
}

#[test]
fn calls_that_are_not_polled_hold_up_nobody() {
    on_tokio(|executor| async move {
        let server = Server::start();
        let connection = by_manager(executor.clone(), redis::Client::open(server.url()).unwrap()).await.unwrap();
        let client = Client::connect(executor.clone(), Arc::new(connection), config()).await.unwrap();
        hold_up_nobody(&client).await;
        client.close().await;
    });
}

/// The application goes on with its connection when the client is closed.
#[test]
fn the_application_keeps_its_connection() {
    on_tokio(|executor| async move {
        let server = Server::start();
        let redis = redis::Client::open(server.url()).unwrap();
        let mut manager = ConnectionManager::new(redis.clone()).await.unwrap();
        let connection = redis_1::from_manager(executor.clone(), manager.clone(), redis, &config()).await.unwrap();
        let client = Client::connect(executor.clone(), Arc::new(connection), config()).await.unwrap();
        client.lock("orders").lock().await.unwrap().release().await.unwrap();
        client.close().await;
        let pong: String = redis::cmd("PING").query_async(&mut manager).await.unwrap();
        assert_eq!(pong, "PONG");
    });
}
