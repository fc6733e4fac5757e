//! What the clients of a cluster ask of the nodes that are left while a shard is down: how often they connect.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline::{Client, Executor};
use bowline_benches::runtime::Runtime;
use bowline_benches::{Result, clients};
use bowline_testkit::cluster::Cluster;
use futures::future::{join_all, try_join_all};

use crate::Line;

const MASTERS: usize = 3;

/// Names of each client. So each client has names in most shards.
const NAMES: usize = 6;

/// Clients that connect at the same time.
const AT_ONCE: usize = 20;

pub(crate) async fn measure(executor: Arc<dyn Executor>, count: usize, seconds: u64) -> Result<Vec<Line>> {
    let mut cluster = Cluster::start(MASTERS, 0);
    let url = cluster.user_url();
    let mut all = Vec::new();
    while all.len() < count {
        let next = (0..AT_ONCE.min(count - all.len())).map(|_| clients::plain(Runtime::TokioMulti, &executor, &url));
        all.extend(try_join_all(next).await?);
    }
    join_all(all.iter().enumerate().map(|(number, client)| acquire_all(client, number))).await;
    let lost = MASTERS - 1;
    let calm = logins(&cluster, lost)?;
    cluster.kill(lost);
    let (began, time) = (Instant::now(), Duration::from_secs(seconds));
    join_all(all.iter().enumerate().map(|(number, client)| async move {
        while began.elapsed() < time {
            acquire_all(client, number).await;
        }
    }))
    .await;
    let new = logins(&cluster, lost)?.saturating_sub(calm) as f64;
    let case = format!("storm-{count}");
    Ok(vec![
        (case.clone(), "seconds", began.elapsed().as_secs_f64()),
        (case.clone(), "logins", new),
        (case.clone(), "logins_per_client", new / count as f64),
        (case, "logins_per_second", new / began.elapsed().as_secs_f64()),
    ])
}

/// Acquires and releases the names of this client. Those of the shard that is down fail.
async fn acquire_all(client: &Client, number: usize) {
    for name in 0..NAMES {
        let lock = client.lock(&format!("{number}:{name}"));
        drop(lock.lock().timeout(Duration::from_secs(2)).await);
    }
}

/// How often somebody has logged in at the first nodes. The testkit, which looks at the keys over connections of its
/// own, does not.
fn logins(cluster: &Cluster, nodes: usize) -> Result<u64> {
    let mut all = 0;
    for node in 0..nodes {
        let info: String = redis::cmd("INFO").arg("commandstats").query(&mut cluster.node(node).client())?;
        let calls = info.lines().find_map(|line| line.strip_prefix("cmdstat_hello:calls=")?.split(',').next());
        all += calls.ok_or("no HELLO among the commandstats")?.parse::<u64>()?;
    }
    Ok(all)
}
