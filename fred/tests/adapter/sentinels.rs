//! A client that asks sentinels for the primary.

use bowline::Connection;
use bowline_testkit::sentinels::{MASTER_NAME, Sentinels};

use super::*;

#[test]
fn clients_follow_a_failover() {
    bounded(|| {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let executor: Arc<dyn Executor> = Arc::new(Tokio::new(runtime.handle().clone()));
        let mut servers = Sentinels::start();
        let hosts: Vec<_> = (0..3).map(|n| ("127.0.0.1".to_owned(), servers.sentinel_port(n))).collect();
        let config = || fred_config(ServerConfig::new_sentinel(hosts.clone(), MASTER_NAME));
        runtime.block_on(async {
            let clients = [client(&executor, config()).await, client(&executor, config()).await];
            assert!(connection(&executor, config()).await.topology().fails_over);
            hand_over(&clients).await;
            let master = servers.master();
            servers.kill(master);
            servers.await_master(|server| server != master);
            for client in &clients {
                // Calls fail until fred knows the new primary.
                let start = executor.now();
                while let Err(error) = client.lock("orders").lock().await {
                    assert!(executor.now() - start < BOUND / 3, "{error:#}");
                }
            }
            hand_over(&clients).await;
            for client in &clients {
                client.close().await;
            }
        });
    });
}
