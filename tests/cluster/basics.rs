use std::time::Duration;

use crate::support::cluster::Cluster;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

#[test]
fn a_lock_in_a_cluster() {
    let cluster = Cluster::start(3, 3);
    runtime().block_on(async {
        let client = bowline::tokio::connect(&cluster.url()).await.unwrap();
        let other = bowline::tokio::connect(&cluster.node(1).url()).await.unwrap();
        for n in 0..20 {
            let name = format!("n{n}");
            let guard = client.lock(&name).lock().await.unwrap();
            let waiting = tokio::spawn({
                let lock = other.lock(&name);
                async move { lock.lock().await.unwrap() }
            });
            tokio::time::sleep(Duration::from_millis(20)).await;
            guard.release().await.unwrap();
            let guard = tokio::time::timeout(Duration::from_secs(2), waiting).await.unwrap().unwrap();
            guard.release().await.unwrap();
        }
    });
}
