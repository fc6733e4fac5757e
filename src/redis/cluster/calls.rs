//! Running scripts in a cluster: each call is sent to the master of its slot, and follows the slot when it moves.
//!
//! A call is sent again only after an answer that says that it was not executed. When the answer does not come, the outcome is
//! unknown, and the caller decides. A call that waits for a link takes another way when the map changes.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::redis::Value;
use futures::FutureExt;
use futures::future::{Either, join_all, ready, select};

use super::super::convert;
use super::super::failure::Failure;
use super::super::link::Up;
use super::super::sending;
use super::asking;
use super::node::Node;
use super::redirect::Redirect;
use super::router::{Route, Router};
use super::slot;
use crate::backoff::{Backoff, Pauses};
use crate::connection::{Call, ConnectionError, Reply};

pub(super) type Answer = Result<Reply, ConnectionError>;

/// Redirections in a row, before a pause.
const MOST_MOVES: u32 = 5;
/// Before a call is sent again to a node that has said "later".
const PAUSES: Pauses = Pauses { shortest: Duration::from_millis(10), longest: Duration::from_millis(50) };
/// A node that gives no answer for so long may be gone: the others are asked.
const SLOW: Duration = Duration::from_millis(500);
/// Calls in one write to a node.
const BATCH: usize = 256;

/// How far a call has come: it decides what is said when its time is over.
#[derive(Default)]
struct Progress {
    /// The node that it was handed to, over the connection of this generation, and that has not answered.
    handed: Option<(Arc<Node>, u64)>,
    /// The node whose link it waits for.
    waits_for: Option<Arc<Node>>,
    /// The last answer, which said "later".
    refusal: Option<ConnectionError>,
}

/// What came of a way.
enum Handed<T> {
    /// The node has answered.
    Answered(T, Arc<Node>),
    /// The map has changed before there was a link. Nothing was sent.
    Rerouted,
    /// By the map no node serves the slot.
    Unserved,
}

pub(super) async fn run(router: &Router, call: &Call<'_>) -> Answer {
    let (started, limit) = (router.executor.now(), limit(router, std::slice::from_ref(call)));
    let mut progress = Progress::default();
    let work = follow(router, call, None, &mut progress);
    match timed(router, limit, work).await {
        Some(answer) => answer,
        None => Err(late(router, started, limit, progress)),
    }
}

/// The answers are in the order of `calls`. Calls that one node executes are written to it at once.
pub(super) async fn run_batch(router: &Router, calls: &[Call<'_>]) -> Vec<Answer> {
    let (started, limit) = (router.executor.now(), limit(router, calls));
    let mut parts: Vec<(u64, Vec<usize>)> = Vec::new();
    for (index, call) in calls.iter().enumerate() {
        let number = router.number_of(slot_of(call));
        match parts.iter_mut().find(|(other, part)| *other == number && part.len() < BATCH) {
            Some((_, part)) => part.push(index),
            None => parts.push((number, vec![index])),
        }
    }
    let parts = parts.into_iter().map(|(_, indices)| async move {
        let part: Vec<Call<'_>> = indices.iter().map(|index| calls[*index]).collect();
        let answers = run_part(router, &part, started, limit).await;
        indices.into_iter().zip(answers).collect::<Vec<_>>()
    });
    let mut answers: Vec<(usize, Answer)> = join_all(parts).await.into_iter().flatten().collect();
    answers.sort_unstable_by_key(|(index, _)| *index);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// Calls of one node, in one write. What the node sends away goes on by itself.
async fn run_part(router: &Router, calls: &[Call<'_>], started: Instant, limit: Duration) -> Vec<Answer> {
    let Some(first) = calls.first() else { return Vec::new() };
    let mut progress = Progress::default();
    let mut values = vec![None; calls.len()];
    let work = async {
        let route = router.to_slot(slot_of(first))?;
        hand_all(router, &route, calls, &mut values, &mut progress).await
    };
    let handed = timed(router, limit, work).await;
    let missing = match &handed {
        Some(Ok(_)) => ConnectionError::Unknown("the answer is missing".to_owned()),
        Some(Err(error)) => error.clone(),
        None => late(router, started, limit, progress),
    };
    let left = limit.saturating_sub(router.executor.now().saturating_duration_since(started));
    let answers = calls.iter().zip(values).map(|(call, value)| {
        let answered = match (value.map(convert::reply), &handed) {
            (Some(Ok(reply)), _) => return ready(Ok(reply)).boxed(),
            (Some(Err(refusal)), Some(Ok(Handed::Answered((), node)))) => Some((refusal, Arc::clone(node))),
            (Some(Err(refusal)), _) => return ready(Err(refusal)).boxed(),
            (None, Some(Ok(Handed::Rerouted | Handed::Unserved))) => None,
            (None, _) => return ready(Err(missing.clone())).boxed(),
        };
        async move {
            let (started, mut progress) = (router.executor.now(), Progress::default());
            let work = follow(router, call, answered, &mut progress);
            match timed(router, left, work).await {
                Some(answer) => answer,
                None => Err(late(router, started, left, progress)),
            }
        }
        .boxed()
    });
    join_all(answers).await
}

/// From one node to the next, until there is an answer. `answered` is what a node has said already.
async fn follow(
    router: &Router,
    call: &Call<'_>,
    mut answered: Option<(ConnectionError, Arc<Node>)>,
    progress: &mut Progress,
) -> Answer {
    let slot = slot_of(call);
    let mut backoff = Backoff::new(PAUSES, router.seed.wrapping_add(slot.into()));
    let (mut moves, mut asked) = (0, None);
    loop {
        let (refusal, node) = match answered.take() {
            Some(answered) => answered,
            None => {
                let (route, asking) = match asked.take() {
                    Some(host) => (router.to_host(host)?, true),
                    None => (router.to_slot(slot)?, false),
                };
                match hand(router, &route, call, asking, progress).await? {
                    Handed::Answered(Ok(reply), _) => return Ok(reply),
                    Handed::Answered(Err(refusal), node) => (refusal, node),
                    Handed::Rerouted => continue,
                    Handed::Unserved => {
                        progress.refusal = Some(ConnectionError::refused("CLUSTERDOWN no node serves the slot"));
                        router.signals.suspect_map();
                        router.executor.sleep(backoff.pause()).await;
                        continue;
                    }
                }
            }
        };
        match Redirect::of(&refusal, &node.host) {
            None => return Err(refusal),
            Some(Redirect::HalfWay) => return Err(ConnectionError::Unknown(refusal.to_string())),
            Some(Redirect::Moved(Some(owner))) => {
                router.moved(slot, &router.public(owner));
                moves += 1;
                if moves < MOST_MOVES {
                    continue;
                }
            }
            Some(Redirect::Ask(Some(host))) => {
                moves += 1;
                if moves < MOST_MOVES {
                    asked = Some(router.public(host));
                    continue;
                }
            }
            Some(Redirect::Later) => {}
            Some(Redirect::Moved(None) | Redirect::Ask(None) | Redirect::Down) => router.signals.suspect_map(),
        }
        moves = 0;
        progress.refusal = Some(refusal);
        router.executor.sleep(backoff.pause()).await;
    }
}

/// Hands one call to a node, `asking` for a slot that the node is taking over.
async fn hand(
    router: &Router,
    route: &Route,
    call: &Call<'_>,
    asking: bool,
    progress: &mut Progress,
) -> Result<Handed<Answer>, ConnectionError> {
    let Some(node) = &route.node else { return Ok(Handed::Unserved) };
    let Some(up) = link(router, node, route.version, progress).await? else { return Ok(Handed::Rerouted) };
    progress.handed = Some((Arc::clone(node), up.generation));
    let sent = if asking { asking::send(&up, call).await } else { sending::send(&up, call).await };
    let value = sent.map_err(|error| ended(router, node, up.generation, error))?;
    progress.handed = None;
    Ok(Handed::Answered(convert::reply(value), Arc::clone(node)))
}

/// Hands several calls to a node at once, and puts each answer at the place of its call.
async fn hand_all(
    router: &Router,
    route: &Route,
    calls: &[Call<'_>],
    values: &mut [Option<Value>],
    progress: &mut Progress,
) -> Result<Handed<()>, ConnectionError> {
    let Some(node) = &route.node else { return Ok(Handed::Unserved) };
    let Some(up) = link(router, node, route.version, progress).await? else { return Ok(Handed::Rerouted) };
    progress.handed = Some((Arc::clone(node), up.generation));
    let sent = sending::send_all(&up, calls, None, values).await;
    sent.map_err(|error| ended(router, node, up.generation, error))?;
    progress.handed = None;
    Ok(Handed::Answered((), Arc::clone(node)))
}

/// Waits for the link to a node. `None`: the map has changed meanwhile, or the node has left it.
async fn link(
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
            // Without a pause, a runtime that is shut down and closes every new link would never get to drop this call.
            router.executor.sleep(PAUSES.shortest).await;
            Ok(None)
        }
    }
}

/// The connection that the call was handed to has ended. Later calls wait for the next one, also those that come before the
/// link's task has noticed.
fn ended(router: &Router, node: &Node, generation: u64, error: ConnectionError) -> ConnectionError {
    if router.is_closed() {
        return ConnectionError::Closed;
    }
    node.link.suspect(generation, Failure::Io("the connection was lost".to_owned()));
    error
}

/// As long as the `limit`. While a node is slow, the others are asked whether it was replaced.
async fn timed<T>(router: &Router, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    let first = limit.min(SLOW);
    if let Some(output) = router.within(first, work.as_mut()).await {
        return Some(output);
    }
    if first == limit {
        return None;
    }
    router.signals.suspect_map();
    router.within(limit - first, work).await
}

/// How long the calls, sent together, may take: none is waited for longer than it is of use, unless a link that is merely slow
/// takes as long.
fn limit(router: &Router, calls: &[Call<'_>]) -> Duration {
    let longest = router.config.command_timeout;
    let Some(of_use) = calls.iter().filter_map(|call| call.within).min() else { return longest };
    let patient = router.links().iter().map(|node| node.link.patient()).max().unwrap_or_default();
    of_use.max(patient).min(longest)
}

/// The `limit` is over.
fn late(router: &Router, started: Instant, limit: Duration, progress: Progress) -> ConnectionError {
    // A sleep ends early only when the runtime is shut down.
    let shut_down = router.executor.now().saturating_duration_since(started) < limit;
    if shut_down || router.is_closed() {
        return ConnectionError::Closed;
    }
    match progress {
        Progress { handed: Some((node, generation)), .. } => {
            // The node may be gone without a word, and would answer no later call either.
            node.link.suspect(generation, Failure::Io("the connection gave no answer".to_owned()));
            ConnectionError::Unknown(format!("nothing within {limit:?}"))
        }
        Progress { refusal: Some(refusal), .. } => refusal,
        Progress { waits_for: Some(node), .. } => match node.link.unavailable() {
            ConnectionError::Closed => ConnectionError::Unreachable(format!("{}: replaced", node.host)),
            error => error,
        },
        Progress { .. } => ConnectionError::Unreachable("no node of the cluster could be reached".to_owned()),
    }
}

/// The slot of the first key, and so of all: a script's keys share a tag.
fn slot_of(call: &Call<'_>) -> u16 {
    call.keys.first().map_or(0, |key| slot::of(key))
}
