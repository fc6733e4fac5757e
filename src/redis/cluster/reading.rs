//! Reads the map of slots from the best node available.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::{Pipeline, Value};
use futures::future::{BoxFuture, Either, select};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};

use super::super::convert;
use super::super::failure::Failure;
use super::super::handshake::{self, Fresh};
use super::host::Host;
use super::map::SlotMap;
use super::node::Node;
use super::place::Place;
use super::router::Router;
use super::sharding;
use crate::connection::{ConnectionError, Reply, Warning};
use crate::error::ErrorKind;

/// If a node has not answered within this time, the next one is asked too.
const STAGGER: Duration = Duration::from_millis(100);

/// The map as one node reports it.
pub(super) struct View {
    pub(super) map: SlotMap,
    /// Whether the node accepts calls. A node that is cut off from the others does not, and its map may be old.
    up: bool,
    /// The epoch, which grows with each failover. Of two views, the one with the larger epoch is newer.
    epoch: u64,
    /// Whether the node has shard channels and the user may use them. Only the first connection asks this.
    pub(super) sharded: bool,
    pub(super) warnings: Vec<Warning>,
}

impl View {
    fn rank(&self) -> (bool, u64) {
        (self.up, self.epoch)
    }
}

type Asked<'a> = BoxFuture<'a, Result<View, Failure>>;

/// Asks one node after another until a map is as new as the `newest` one known. If there is none, takes the newest one
/// found. The error is the most informative one.
pub(super) async fn read(router: &Router, newest: &mut u64, first: bool) -> Result<View, Failure> {
    let mut waiting = candidates(router, first).into_iter();
    let mut asked = FuturesUnordered::new();
    let mut best: Option<View> = None;
    let mut failure: Option<Failure> = None;
    loop {
        let more = waiting.next().map(|asking| asked.push(asking)).is_some();
        let answered = if more { router.within(STAGGER, asked.next()).await } else { Some(asked.next().await) };
        match answered {
            // The node is late, so another one is asked as well.
            None => {}
            Some(None) => return best.ok_or(failure.unwrap_or_else(|| Failure::Io("no node is known".to_owned()))),
            Some(Some(Ok(view))) if view.up && view.epoch >= *newest => {
                *newest = view.epoch;
                return Ok(view);
            }
            Some(Some(Ok(view))) if best.as_ref().is_none_or(|best| best.rank() < view.rank()) => best = Some(view),
            Some(Some(Err(other))) if failure.is_none() || !matches!(other, Failure::Io(_)) => failure = Some(other),
            Some(Some(_)) => {}
        }
    }
}

/// The nodes to ask: those with a link, then the other nodes and the seeds. Each group is shuffled, so that the clients of a
/// cluster do not all ask the same node.
fn candidates(router: &Router, first: bool) -> Vec<Asked<'_>> {
    let mut random = fastrand::Rng::with_seed(router.seed ^ router.signals.gaps());
    let mut links = router.links();
    random.shuffle(&mut links);
    links.retain(|node| matches!(node.link.ready().now_or_never(), Some(Ok(_))));
    let map = router.map();
    let mut others: Vec<Host> =
        map.masters().iter().chain(map.replicas()).chain(&router.seeds.hosts).cloned().collect();
    others.retain(|host| links.iter().all(|node| node.host != *host));
    random.shuffle(&mut others);
    let mut seen: Vec<Host> = Vec::new();
    others.retain(|host| {
        let new = !seen.contains(host);
        seen.push(host.clone());
        new
    });
    let over_links = links.into_iter().map(|node| -> Asked<'_> { Box::pin(over(router, node)) });
    over_links.chain(others.into_iter().map(|host| -> Asked<'_> { Box::pin(at(router, host, first)) })).collect()
}

/// Asks a node over its link.
async fn over(router: &Router, node: Arc<Node>) -> Result<View, Failure> {
    let up = node.link.ready().await.map_err(Failure::Refused)?;
    let limit = router.config.command_timeout.min(node.link.upkeep);
    let asked = router.within(limit, ask(router, up.connection, &node.host, false)).await;
    asked.unwrap_or_else(|| Err(Failure::Io(format!("no answer within {limit:?}"))))
}

/// Asks a node over a new connection.
async fn at(router: &Router, host: Host, first: bool) -> Result<View, Failure> {
    let progress = Arc::default();
    let asked = async {
        let target = Place::new(&router.seeds.access, host.clone()).target()?;
        let Fresh { target, connection, driver } = handshake::login(target, &*router.dialer, None, &progress).await?;
        let mut fresh = Fresh { target, connection, driver };
        let warnings = handshake::prepare(&mut fresh, first).await?;
        let asked = pin!(ask(router, fresh.connection, &host, first));
        match select(asked, fresh.driver).await {
            Either::Left((view, _)) => view.map(|view| View { warnings, ..view }),
            Either::Right(((), _)) => Err(Failure::Io("the server closed the connection".to_owned())),
        }
    };
    let limit = router.config.command_timeout;
    router.within(limit, asked).await.unwrap_or_else(|| Err(progress.late(limit)))
}

async fn ask(
    router: &Router,
    mut connection: MultiplexedConnection,
    host: &Host,
    first: bool,
) -> Result<View, Failure> {
    let mut pipeline = Pipeline::with_capacity(3);
    pipeline.cmd("CLUSTER").arg("INFO");
    pipeline.cmd("CLUSTER").arg("SLOTS");
    if first {
        sharding::ask(&mut pipeline, &router.config.prefix);
    }
    let count = pipeline.len();
    let values = connection.send_packed_commands(&pipeline, 0, count).await;
    let mut values = values.map_err(|error| Failure::Io(error.to_string()))?.into_iter();
    let (up, epoch) = state(convert::reply(values.next().unwrap_or(Value::Nil)));
    let slots = convert::reply(values.next().unwrap_or(Value::Nil)).map_err(Failure::Refused)?;
    let map = SlotMap::parse(&slots, host, |host| router.public(host));
    let map = map.ok_or_else(|| Failure::Unsupported("the answer to CLUSTER SLOTS has another form".to_owned()))?;
    if map.is_empty() {
        let refusal = ConnectionError::refused("CLUSTERDOWN the node knows of no slots");
        return Err(Failure::Refused(refusal));
    }
    let sharded = if first { sharding::is_offered(values)? } else { false };
    Ok(View { map, up, epoch, sharded, warnings: Vec::new() })
}

/// Whether the node accepts calls, by its answer to `CLUSTER INFO`. A user without the right to ask gets no answer.
pub(super) fn is_up(info: Result<Reply, ConnectionError>) -> bool {
    state(info).0
}

fn state(info: Result<Reply, ConnectionError>) -> (bool, u64) {
    let info = match info {
        Ok(Reply::Bytes(info)) => String::from_utf8_lossy(&info).into_owned(),
        Err(refusal) if refusal.kind() != ErrorKind::Denied => return (false, 0),
        _ => return (true, 0),
    };
    let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let epoch = field("cluster_current_epoch:").and_then(|epoch| epoch.parse().ok());
    (field("cluster_state:") != Some("fail"), epoch.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_says_how_it_is() {
        let of = |text: &str| state(Ok(Reply::Bytes(text.as_bytes().to_vec())));
        assert_eq!(of("cluster_state:ok\r\ncluster_slots_ok:16384\r\ncluster_current_epoch:6\r\n"), (true, 6));
        assert_eq!(of("cluster_state:fail\r\ncluster_current_epoch:7\r\n"), (false, 7));
        assert_eq!(state(Err(ConnectionError::refused("NOPERM no"))), (true, 0), "it is taken to be up");
        assert_eq!(state(Err(ConnectionError::refused("LOADING wait"))), (false, 0));
    }
}
