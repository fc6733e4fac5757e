//! Hands calls to one node, over its link or as soon as there is one.

use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use futures::FutureExt;
use futures::future::{Either, select};

use super::super::link::calls::{Waiting, run_over};
use super::super::link::limit::Limit;
use super::super::link::state::Up;
use super::host::Host;
use super::node::{Node, Way};
use super::redirect::Redirect;
use super::router::{Route, Router};
use super::sure::sure;
use crate::connection::{Acknowledged, Call, ConnectionError};
use crate::tuning::LINK_CLOSED;

/// The answer to a call, with the number of replicas that have acknowledged it: 0 if the call does not wait for
/// replicas.
pub(super) type NodeAnswer = Result<Acknowledged, ConnectionError>;

/// The result of handing calls to the node of a route.
pub(super) enum Handed {
    /// The answers, in the order of the calls. It may be unknown whether the node has executed a call.
    Answered(Vec<NodeAnswer>, Arc<Node>),
    /// The map changed before there was a link. Nothing was sent.
    Rerouted,
    /// No node serves the slot, according to the map. Nothing was sent.
    Unserved,
}

/// Hands the calls to the master of their slot, or to the node that an `ASK` has named because it is taking the slot
/// over. The error: nothing was sent within the time limit.
pub(super) async fn hand(
    router: &Router,
    way: Way,
    calls: &[Call<'_>],
    (slot, asked): (u16, Option<Host>),
    limit: Limit,
    now: Instant,
) -> Result<Handed, ConnectionError> {
    let asking = asked.is_some();
    let Route { node, version } = match asked {
        Some(host) => router.to_host(host)?,
        None => router.to_slot(slot)?,
    };
    let Some(node) = node else { return Ok(Handed::Unserved) };
    let Some((up, now)) = link(router, &node, version, limit, now).await? else { return Ok(Handed::Rerouted) };
    let answers = match way {
        Way::Plain => {
            let plain = |reply| Acknowledged { reply, replicas: 0 };
            let answers = run_over(&node.link, up, calls, asking, limit, now).await;
            answers.into_iter().map(|answer| answer.map(plain)).collect()
        }
        Way::Acknowledged(replicas) => {
            let waiting = Waiting { replicas, within: limit.left(now), asking };
            node.acknowledging.run(&node.link, calls, waiting).await
        }
    };
    Ok(Handed::Answered(confirmed(router, &node, (now, way), answers, limit).await, node))
}

/// Waits for the link to a node. Returns it with the time since when there is one for this call: the clock is read only
/// after a wait, so calls that need not wait have their whole time, and [share a timer](super::super::link::limit).
/// `None`: the map has changed meanwhile, or the node has left it. The error: there was no link in time.
async fn link(
    router: &Router,
    node: &Arc<Node>,
    version: u64,
    limit: Limit,
    now: Instant,
) -> Result<Option<(Up, Instant)>, ConnectionError> {
    let (ready, since) = match node.link.ready().now_or_never() {
        Some(ready) => (ready, now),
        None => {
            let wait = pin!(async {
                match select(pin!(node.link.ready()), pin!(router.other_than(version))).await {
                    Either::Left((ready, _)) => Some(ready),
                    Either::Right(_) => None,
                }
            });
            match node.link.in_time(limit, now, wait).await {
                Some(Some(ready)) => (ready, router.executor.now()),
                Some(None) => return Ok(None),
                None if router.is_shut_down(limit) => return Err(ConnectionError::Closed),
                None => return Err(no_link(node)),
            }
        }
    };
    match ready {
        Ok(up) => Ok(Some((up, since))),
        Err(_) if router.is_closed() => Err(ConnectionError::Closed),
        Err(_) => {
            router.executor.sleep(LINK_CLOSED).await;
            Ok(None)
        }
    }
}

/// The error of a call for which there was no link in time.
fn no_link(node: &Node) -> ConnectionError {
    match node.link.unavailable() {
        // Only the link to this node was closed.
        ConnectionError::Closed => ConnectionError::Unreachable(format!("{}: replaced", node.host)),
        error => error,
    }
}

/// Checks the answers to calls that were handed over at `handed`. Late answers count only once another node has
/// confirmed that this one is still a master.
async fn confirmed(
    router: &Router,
    node: &Node,
    (handed, way): (Instant, Way),
    answers: Vec<NodeAnswer>,
    limit: Limit,
) -> Vec<NodeAnswer> {
    let counts = |answer: &NodeAnswer| match answer {
        Ok(_) => true,
        Err(refusal @ ConnectionError::Refused { .. }) => Redirect::of(refusal, &node.host).is_none(),
        Err(_) => false,
    };
    let sure = match answers.iter().any(counts) {
        true => {
            let left = limit.left(router.executor.now());
            router.within(left, sure(router, node, handed, way)).await
        }
        false => Some(Ok(())),
    };
    let late = || match router.is_shut_down(limit) {
        true => ConnectionError::Closed,
        false => ConnectionError::Unknown("answered late, and no other node has confirmed the master".to_owned()),
    };
    let unsure = sure.unwrap_or_else(|| Err(late())).err();
    let answers = answers.into_iter().map(|answer| match (answer, &unsure) {
        (Err(ConnectionError::Closed), _) if !router.is_closed() => {
            Err(ConnectionError::Unknown(format!("{}: replaced", node.host)))
        }
        (answer, Some(unsure)) if counts(&answer) => Err(unsure.clone()),
        (answer, _) => answer,
    });
    answers.collect()
}
