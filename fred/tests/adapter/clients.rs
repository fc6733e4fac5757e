//! bowline's clients over the application's client.

use fred::types::{ClusterHash, CustomCommand, Value};

use super::*;

#[test]
fn a_lock_is_handed_over() {
    on_tokio(|executor| async move {
        let server = Server::start();
        let clients =
            [client(&executor, centralized(server.port())).await, client(&executor, centralized(server.port())).await];
        hand_over(&clients).await;
        for client in &clients {
            client.close().await;
        }
    });
}

#[test]
fn the_application_keeps_its_client() {
    on_tokio(|executor| async move {
        let server = Server::start();
        let fred = application(centralized(server.port())).await;
        let connection = from_client(executor.clone(), fred.clone(), &config()).unwrap();
        let client = Client::connect(executor.clone(), Arc::new(connection), config()).await.unwrap();
        client.lock("orders").lock().await.unwrap().release().await.unwrap();
        client.close().await;
        let ping = CustomCommand::new_static("PING", ClusterHash::FirstKey, false);
        let pong: String = fred.custom(ping, Vec::<Value>::new()).await.unwrap();
        assert_eq!(pong, "PONG");
        // Only the application's connection is left, beside the one that asks.
        eventually(&executor, "the end of the subscription", || {
            let list = redis::cmd("CLIENT").arg("LIST").arg("TYPE").arg("pubsub").query::<String>(&mut server.client());
            list.unwrap().is_empty()
        })
        .await;
    });
}

#[test]
fn a_client_may_be_connected_later() {
    on_tokio(|executor| async move {
        let server = Server::start();
        let fred = unconnected(centralized(server.port()));
        let connection = from_client(executor.clone(), fred.clone(), &config()).unwrap();
        let connecting = Client::connect(executor.clone(), Arc::new(connection), config());
        // What is polled first comes first.
        let (client, _) = futures::join!(connecting, async { fred.init().await.map(drop).unwrap() });
        let client = client.unwrap();
        client.lock("orders").lock().await.unwrap().release().await.unwrap();
        client.close().await;
    });
}

/// Threads that know of no runtime poll bowline's futures, and fred's with them.
#[test]
fn threads_without_a_runtime_wait_for_a_lock() {
    bounded(|| {
        let server = Server::start();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let executor: Arc<dyn Executor> = Arc::new(Tokio::new(runtime.handle().clone()));
        let clients = runtime.block_on(async {
            [client(&executor, centralized(server.port())).await, client(&executor, centralized(server.port())).await]
        });
        futures::executor::block_on(async {
            hand_over(&clients).await;
            for client in &clients {
                client.close().await;
            }
        });
    });
}
