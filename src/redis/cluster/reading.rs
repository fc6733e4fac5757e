//! Reads the map of slots from the best node available.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::redis::aio::MultiplexedConnection;
use ::redis::{Pipeline, Value};
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};

use super::super::convert;
use super::super::dial::handshake::{self, Checked, driven};
use super::super::dial::one_sided::FirstLogin;
use super::super::dial::wishes::Wishes;
use super::super::failure::Failure;
use super::choice::{Choice, Heard};
use super::host::Host;
use super::map::{Nodes, SlotMap};
use super::node::Node;
use super::place::Place;
use super::router::Router;
use super::shard_probe;
use crate::connection::{ConnectionError, Reply, Warning};
use crate::error::ErrorKind;

/// If a node has not answered within this time, the next one is asked too.
const STAGGER: Duration = Duration::from_millis(100);

/// What one node reports.
type View = (Heard, About);

/// What only the first connection asks.
#[derive(Default)]
pub(super) struct About {
    pub(super) warnings: Vec<Warning>,
    /// Whether the node has shard channels and the user may use them.
    pub(super) sharded: bool,
}

/// The result of a reading.
pub(super) struct Reading {
    pub(super) began: Instant,
    pub(super) map: SlotMap,
    /// Whether the map replaces the known one, although it is older.
    pub(super) anew: bool,
    /// The nodes that have answered, and accept calls.
    pub(super) up: Vec<Host>,
    pub(super) about: About,
}

/// Reads the map.
#[derive(Default)]
pub(super) struct Reader {
    /// The greatest current epoch of the cluster that a node has reported.
    newest: u64,
    readings: u64,
}

type Asked<'a> = BoxFuture<'a, Result<View, Failure>>;

impl Reader {
    /// Asks one node after another, until one has news or enough of them have none ([`choice`](super::choice)). The
    /// error is the most informative one.
    pub(super) async fn read(&mut self, router: &Router, first: bool) -> Result<Reading, Failure> {
        let (began, known) = (router.executor.now(), router.map());
        self.readings += 1;
        let mut candidates = Candidates::of(router, &known, self.readings);
        let mut asked: FuturesUnordered<Asked<'_>> = FuturesUnordered::new();
        let mut choice = Choice::new(&known, std::mem::take(&mut candidates.doubted));
        let (mut about, mut failure): (Option<(bool, About)>, Option<Failure>) = (None, None);
        loop {
            let more = match candidates.linked.pop() {
                Some(node) => Some(over(router, node).boxed()),
                None => candidates.next(choice.up.is_empty()).map(|host| at(router, host, first)),
            };
            let is_more = more.is_some();
            asked.extend(more);
            let answered = if is_more || about.is_some() {
                router.within(STAGGER, asked.next()).await
            } else {
                Some(asked.next().await)
            };
            match answered {
                // The node is late, so another one is asked as well.
                None | Some(None) if is_more => {}
                // All nodes were asked.
                None | Some(None) => break,
                Some(Some(Ok((heard, told)))) => {
                    if about.as_ref().is_none_or(|(was_up, _)| heard.up && !was_up) {
                        about = Some((heard.up, told));
                    }
                    if choice.hear(heard, &mut self.newest) {
                        break;
                    }
                    candidates.dispute(choice.disputed());
                }
                Some(Some(Err(other))) if failure.is_none() || !matches!(other, Failure::Io(_)) => {
                    failure = Some(other)
                }
                Some(Some(Err(_))) => {}
            }
        }
        choice.end();
        match about {
            Some((_, about)) => {
                let Choice { map, anew, up, .. } = choice;
                Ok(Reading { began, map, anew, up, about })
            }
            None => Err(failure.unwrap_or_else(|| Failure::Io("no node is known".to_owned()))),
        }
    }
}

/// The nodes to ask, in groups. Each group is shuffled, so that the clients of a cluster do not all ask the same node,
/// and no client asks the same node each time.
struct Candidates {
    /// The nodes with a link.
    linked: Vec<Arc<Node>>,
    /// The masters that an older view names, and that were not asked before.
    disputed: Vec<Host>,
    /// The nodes without a link, and the seeds. The nodes in doubt are asked after all others.
    others: Vec<Host>,
    /// The nodes in doubt. They cannot confirm their own answers.
    doubted: Vec<Host>,
    /// The nodes that were asked, and those with a link, which are asked first.
    asked: HashSet<Host>,
}

impl Candidates {
    fn of(router: &Router, known: &SlotMap, number: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(router.seed ^ number);
        let mut linked = router.links();
        linked.retain(|node| matches!(node.link.ready().now_or_never(), Some(Ok(_))));
        let doubted = linked.extract_if(.., |node| node.is_in_doubt());
        let doubted: Vec<Host> = doubted.map(|node| node.host.clone()).collect();
        random.shuffle(&mut linked);
        let asked: HashSet<Host> = linked.iter().map(|node| node.host.clone()).collect();
        let mut seen: HashSet<Host> = asked.iter().chain(&doubted).cloned().collect();
        let hosts = known.masters().iter().chain(known.replicas()).chain(&router.seeds.hosts);
        let mut others: Vec<Host> = hosts.filter(|host| seen.insert((*host).clone())).cloned().collect();
        random.shuffle(&mut others);
        // The last one is asked first.
        others.splice(0..0, doubted.iter().cloned());
        Self { linked, disputed: Vec::new(), others, doubted, asked }
    }

    /// The next node to ask when those with a link were asked. Without a link, that costs a login, also in a cluster
    /// that is trying to heal. So one of the others is asked only while no node that accepts calls has answered.
    fn next(&mut self, none_is_up: bool) -> Option<Host> {
        let host = self.disputed.pop().or_else(|| self.others.pop_if(|_| none_is_up))?;
        self.asked.insert(host.clone());
        Some(host)
    }

    /// The masters of an older view are asked in any case: if most of them report the same, the cluster was made anew.
    fn dispute<'a>(&mut self, masters: impl Iterator<Item = &'a Host>) {
        for host in masters {
            if !self.asked.contains(host) && !self.disputed.contains(host) {
                self.disputed.push(host.clone());
            }
        }
    }
}

/// Asks a node without a link. The first reading makes a connection of its own. Later readings make a link, which is
/// kept for the next reading and closed when it is idle.
fn at(router: &Router, host: Host, first: bool) -> Asked<'_> {
    if first {
        return at_once(router, host).boxed();
    }
    async move {
        match router.to_host(host).map(|route| route.node) {
            Ok(Some(node)) => over(router, node).await,
            Ok(None) => Err(Failure::Io("no node is known".to_owned())),
            Err(closed) => Err(Failure::Refused(closed)),
        }
    }
    .boxed()
}

/// Asks a node over its link.
async fn over(router: &Router, node: Arc<Node>) -> Result<View, Failure> {
    router.use_link(&node.host);
    // A node that is gone for good never has a link.
    let longest = router.config.command_timeout;
    let ready = router.within(longest, node.link.ready()).await;
    let up =
        ready.ok_or_else(|| Failure::Io(format!("no connection within {longest:?}")))?.map_err(Failure::Refused)?;
    let limit = router.config.command_timeout.min(node.link.upkeep);
    let sent = router.executor.now();
    let asked = router.within(limit, ask(router, up.connection, &node.host, false)).await;
    if let Some(Ok(_)) = asked {
        node.link.answered(router.executor.now().saturating_duration_since(sent));
    }
    asked.unwrap_or_else(|| Err(Failure::Io(format!("no answer within {limit:?}"))))
}

/// Asks a node over a new connection, for the first time.
async fn at_once(router: &Router, host: Host) -> Result<View, Failure> {
    let (progress, limit) = (Arc::default(), router.config.command_timeout);
    let asked = async {
        let target = Place::new(&router.seeds.access, host.clone()).target()?;
        let (dialer, executor) = (&*router.dialer, &router.executor);
        let made = handshake::connect(Arc::clone(&target), dialer, executor, &progress, (true, Wishes::default()));
        let made = FirstLogin { target: &target, dialer, executor, limit }.watch(&progress, made).await?;
        let Checked { mut fresh, warnings, .. } = made;
        let (heard, about) = driven(&mut fresh.driver, ask(router, fresh.connection, &host, true)).await??;
        Ok((heard, About { warnings, ..about }))
    };
    router.within(limit, asked).await.unwrap_or_else(|| Err(progress.late(limit)))
}

async fn ask(
    router: &Router,
    mut connection: MultiplexedConnection,
    host: &Host,
    first: bool,
) -> Result<View, Failure> {
    let mut pipeline = Pipeline::with_capacity(7);
    pipeline.cmd("CLUSTER").arg("INFO");
    pipeline.cmd("CLUSTER").arg("NODES");
    pipeline.cmd("CLUSTER").arg("SLOTS");
    if first {
        shard_probe::ask(&mut pipeline, &router.config.prefix);
    }
    let count = pipeline.len();
    let values = connection.send_packed_commands(&pipeline, 0, count).await;
    let mut values = values.map_err(|error| Failure::Io(error.to_string()))?.into_iter();
    let (up, epoch) = state(convert::reply(values.next().unwrap_or(Value::Nil)));
    // A user without this right gets neither epochs nor the id of the node.
    let known = convert::reply(values.next().unwrap_or(Value::Nil))
        .map_or_else(|_| Nodes::default(), |nodes| Nodes::parse(&nodes));
    let slots = convert::reply(values.next().unwrap_or(Value::Nil)).map_err(Failure::Refused)?;
    let public = |host| router.public(host);
    let map = SlotMap::parse(&slots, host, &known, public);
    let map = map.ok_or_else(|| Failure::Unsupported("the answer to CLUSTER SLOTS has another form".to_owned()))?;
    if map.is_empty() {
        let refusal = ConnectionError::refused("CLUSTERDOWN the node knows of no slots");
        return Err(Failure::Refused(refusal));
    }
    let sharded = if first { shard_probe::is_offered(values)? } else { false };
    // A seed may spell the address of a node in another way than the map does.
    let host = SlotMap::own_address(&slots, host, &known, public).unwrap_or_else(|| host.clone());
    Ok((Heard { host, map, up, epoch }, About { warnings: Vec::new(), sharded }))
}

/// Whether the node accepts calls, by its answer to `CLUSTER INFO`. Without the right to ask, the node counts as one
/// that does.
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
        assert!(!is_up(Err(ConnectionError::refused("LOADING wait"))) && is_up(Ok(Reply::Bytes(Vec::new()))));
    }
}
