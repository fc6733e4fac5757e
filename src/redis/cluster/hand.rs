//! Hands calls to a node, over its link or as soon as there is one.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::redis::Value;
use futures::FutureExt;
use futures::future::{Either, select};

use super::super::convert;
use super::super::failure::Failure;
use super::super::link::Up;
use super::super::sending::{self, Around};
use super::asking;
use super::node::Node;
use super::router::{Route, Router};
use super::sure::sure;
use crate::backoff::{Backoff, Pauses};
use crate::connection::{Call, ConnectionError, Reply};

/// The pauses before a call is sent again to a node that has said "later".
pub(super) const PAUSES: Pauses = Pauses { shortest: Duration::from_millis(10), longest: Duration::from_millis(50) };
/// The pauses before a call is sent again to a node that accepts no calls. All clients of the cluster wait then.
const PAUSES_DOWN: Pauses = Pauses { shortest: Duration::from_millis(10), longest: Duration::from_millis(500) };

/// Has the map read, and pauses for longer each time, but at most until a reading of the map ends. `backoff` is `None`
/// at first.
pub(super) async fn pause_down(router: &Router, backoff: &mut Option<Backoff>) {
    // Listens first: the reading that is asked for must not end unheard.
    let read = router.signals.listen_reading();
    router.signals.suspect_map();
    let pause = backoff.get_or_insert_with(|| Backoff::new(PAUSES_DOWN, router.seed)).pause();
    select(router.executor.sleep(pause), read).await;
}

/// The state of a call, which decides its error when the time is over.
#[derive(Default)]
pub(super) struct Progress {
    /// Set while a node has the call and has not answered.
    pub(super) handed: Option<HandedTo>,
    /// Whether the node has answered late, and another one has to confirm that it is a master.
    pub(super) unsure: bool,
    /// The node whose link the call waits for.
    pub(super) waits_for: Option<Arc<Node>>,
    /// The last answer, which said "later".
    pub(super) refusal: Option<ConnectionError>,
}

/// The connection that has a call. If this is dropped before there is an answer, the caller has given the call up.
pub(super) struct HandedTo {
    pub(super) node: Arc<Node>,
    pub(super) generation: u64,
    pub(super) since: Instant,
    is_answered: bool,
}

impl Drop for HandedTo {
    fn drop(&mut self) {
        if !self.is_answered {
            self.node.link.given_up(self.generation, self.since);
        }
    }
}

impl Progress {
    fn hand(&mut self, node: &Arc<Node>, generation: u64, since: Instant) {
        self.handed = Some(HandedTo { node: Arc::clone(node), generation, since, is_answered: false });
    }

    fn answered(&mut self) {
        if let Some(handed) = &mut self.handed {
            handed.node.link.silence.ends();
            handed.is_answered = true;
        }
        self.handed = None;
    }
}

/// The result of handing a call to the node of a route.
pub(super) enum Handed<T> {
    /// The node has answered.
    Answered(T, Arc<Node>),
    /// The map changed before there was a link. Nothing was sent.
    Rerouted,
    /// No node serves the slot, according to the map.
    Unserved,
}

/// Hands one call to a node. `asking` says that the node is taking the slot over.
pub(super) async fn hand(
    router: &Router,
    route: &Route,
    call: &Call<'_>,
    asking: bool,
    progress: &mut Progress,
) -> Result<Handed<Result<Reply, ConnectionError>>, ConnectionError> {
    let Some(node) = &route.node else { return Ok(Handed::Unserved) };
    let Some(mut up) = link(router, node, route.version, progress).await? else { return Ok(Handed::Rerouted) };
    let handed = router.executor.now();
    progress.hand(node, up.generation, handed);
    let sent = if asking { asking::send(&up, call).await } else { sending::send(&mut up, call).await };
    let value =
        sent.and_then(counts(node, up.generation)).map_err(|error| ended(router, node, up.generation, error))?;
    progress.answered();
    progress.unsure = true;
    sure(router, node, up.generation, handed).await?;
    progress.unsure = false;
    Ok(Handed::Answered(convert::reply(value), Arc::clone(node)))
}

/// Hands several calls to a node at once. The answers are in the order of the calls.
pub(super) async fn hand_all(
    router: &Router,
    route: &Route,
    calls: &[Call<'_>],
    values: &mut [Option<Value>],
    progress: &mut Progress,
) -> Result<Handed<()>, ConnectionError> {
    let Some(node) = &route.node else { return Ok(Handed::Unserved) };
    let Some(up) = link(router, node, route.version, progress).await? else { return Ok(Handed::Rerouted) };
    let handed = router.executor.now();
    progress.hand(node, up.generation, handed);
    let sent = sending::send_all(&up, calls, &Around::default(), values).await;
    sent.and_then(counts(node, up.generation)).map_err(|error| ended(router, node, up.generation, error))?;
    progress.answered();
    progress.unsure = true;
    sure(router, node, up.generation, handed).await?;
    progress.unsure = false;
    Ok(Handed::Answered((), Arc::clone(node)))
}

/// Waits for the link to a node. `None`: the map has changed meanwhile, or the node has left it.
pub(super) async fn link(
    router: &Router,
    node: &Arc<Node>,
    version: u64,
    progress: &mut Progress,
) -> Result<Option<Up>, ConnectionError> {
    let ready = match node.link.ready().now_or_never() {
        Some(ready) => ready,
        None => {
            progress.waits_for = Some(Arc::clone(node));
            match select(pin!(node.link.ready()), pin!(router.other_than(version))).await {
                Either::Left((ready, _)) => ready,
                Either::Right(_) => return Ok(None),
            }
        }
    };
    progress.waits_for = None;
    match ready {
        Ok(up) => Ok(Some(up)),
        Err(_) if router.is_closed() => Err(ConnectionError::Closed),
        Err(_) => {
            // Without a pause, this call would never yield to a runtime that is shut down and closes every new link.
            router.executor.sleep(PAUSES.shortest).await;
            Ok(None)
        }
    }
}

/// Accepts the answer of a node unless the node was replaced before the answer was read.
fn counts<T>(node: &Node, generation: u64) -> impl FnOnce(T) -> Result<T, ConnectionError> {
    let replaced = node.link.is_disowned(generation);
    move |answer| {
        if replaced { Err(ConnectionError::Unknown("the node was replaced".to_owned())) } else { Ok(answer) }
    }
}

/// Handles the end of the connection that the call was handed to. Later calls wait for the next connection, even before
/// the link's task has noticed.
fn ended(router: &Router, node: &Node, generation: u64, error: ConnectionError) -> ConnectionError {
    if router.is_closed() {
        return ConnectionError::Closed;
    }
    node.link.suspect(generation, Failure::Io("the connection was lost".to_owned()));
    error
}
