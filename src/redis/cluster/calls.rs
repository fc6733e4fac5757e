//! Running scripts in a cluster: each call is sent to the master of its slot, and follows the slot when it moves.
//!
//! A call is sent again only after an answer that says that it was not executed. When the answer does not come, the
//! outcome is unknown, and the caller decides. A call that waits for a link takes another way when the map changes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::{join_all, select};

use super::super::link::limit::Limit;
use super::hand::{Handed, NodeAnswer, hand};
use super::host::Host;
use super::node::{Node, Way};
use super::redirect::Redirect;
use super::router::Router;
use crate::backoff::Backoff;
use crate::connection::{Call, ConnectionError, Reply};
use crate::mutant::{self, Mutant};
use crate::protocol::slot;
use crate::tuning::{BATCH, CLUSTER_DOWN, MOST_MOVES, SLOT_MOVES};

/// Runs one call.
pub(super) async fn run(router: &Router, call: &Call<'_>) -> Result<Reply, ConnectionError> {
    let limit = router.limit(std::slice::from_ref(call));
    let answer = follow(router, Way::Plain, call, None, (limit, Some(limit.started))).await;
    answer.map(|answered| answered.reply)
}

/// Runs several calls. The answers are in their order.
pub(super) async fn run_batch(router: &Router, calls: &[Call<'_>]) -> Vec<Result<Reply, ConnectionError>> {
    let answers = run_all(router, Way::Plain, calls, router.limit(calls)).await;
    answers.into_iter().map(|answer| answer.map(|answered| answered.reply)).collect()
}

/// Runs several calls that wait for replicas of the nodes that execute them. The answers are in their order.
pub(super) async fn run_acknowledged(
    router: &Router,
    calls: &[Call<'_>],
    replicas: u32,
    within: Duration,
) -> Vec<NodeAnswer> {
    let limit = Limit { started: router.executor.now(), limit: within };
    run_all(router, Way::Acknowledged(replicas), calls, limit).await
}

/// Groups the calls by node, at most [`BATCH`] in a group, and sends each group in one write.
async fn run_all(router: &Router, way: Way, calls: &[Call<'_>], limit: Limit) -> Vec<NodeAnswer> {
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
        let answers = run_part(router, way, &part, limit).await;
        indices.into_iter().zip(answers).collect::<Vec<_>>()
    });
    let mut answers: Vec<(usize, NodeAnswer)> = join_all(parts).await.into_iter().flatten().collect();
    answers.sort_unstable_by_key(|(index, _)| *index);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// Runs the calls of one node in one write. Calls that the node redirects or puts off go on one by one.
async fn run_part(router: &Router, way: Way, calls: &[Call<'_>], limit: Limit) -> Vec<NodeAnswer> {
    let Some(first) = calls.first() else { return Vec::new() };
    let answered = match hand(router, way, calls, (slot_of(first), None), limit, limit.started).await {
        Ok(Handed::Answered(answers, node)) => {
            answers.into_iter().map(|answer| Some((answer, Arc::clone(&node)))).collect()
        }
        Ok(Handed::Rerouted | Handed::Unserved) => vec![None; calls.len()],
        Err(error) => return calls.iter().map(|_| Err(error.clone())).collect(),
    };
    let calls = calls.iter().zip(answered);
    // The clock is read anew, because the first attempt has taken time.
    join_all(calls.map(|(call, answered)| follow(router, way, call, answered, (limit, None)))).await
}

/// What follows the answer of a node.
enum Next {
    /// Nothing: it is the answer to the call.
    Final(NodeAnswer),
    /// The call is sent to the node that the answer names. `None`: to the master that the map names now.
    Asked(ConnectionError, Option<Host>),
    /// The call is sent again after a pause.
    Later(ConnectionError),
    /// The call is sent again after a pause, or after a reading of the map.
    Down(ConnectionError),
}

/// Sends the call from node to node, as the answers direct, until one gives the final answer. `answered` is the answer
/// of a node that was asked before, and `now` the time, if it is known.
async fn follow(
    router: &Router,
    way: Way,
    call: &Call<'_>,
    mut answered: Option<(NodeAnswer, Arc<Node>)>,
    (limit, mut now): (Limit, Option<Instant>),
) -> NodeAnswer {
    let slot = slot_of(call);
    let (mut later, mut down) = (None, None);
    let (mut moves, mut asked, mut refused) = (0, None, None);
    loop {
        let next = match answered.take() {
            Some((answer, node)) => next(router, slot, answer, &node),
            None => {
                let now = now.take().unwrap_or_else(|| router.executor.now());
                match hand(router, way, std::slice::from_ref(call), (slot, asked.take()), limit, now).await {
                    Ok(Handed::Answered(answers, node)) => {
                        let missing = || Err(ConnectionError::Unknown("the answer is missing".to_owned()));
                        next(router, slot, answers.into_iter().next().unwrap_or_else(missing), &node)
                    }
                    Ok(Handed::Rerouted) => continue,
                    Ok(Handed::Unserved) => Next::Down(ConnectionError::refused("CLUSTERDOWN no node serves the slot")),
                    Err(ConnectionError::Closed) => return Err(ConnectionError::Closed),
                    Err(error) => return Err(refused.unwrap_or(error)),
                }
            }
        };
        let (refusal, is_down) = match next {
            Next::Final(answer) => return answer,
            Next::Asked(refusal, host) => {
                moves += 1;
                if moves < MOST_MOVES {
                    asked = host;
                    continue;
                }
                (refusal, false)
            }
            Next::Later(refusal) => (refusal, false),
            Next::Down(refusal) => (refusal, true),
        };
        moves = 0;
        let left = limit.left(router.executor.now());
        let paused = match is_down {
            true => router.within(left, pause_down(router, &mut down)).await,
            false => router.within(left, pause(router, slot, &mut later)).await,
        };
        if paused.is_none() {
            return Err(if router.is_shut_down(limit) { ConnectionError::Closed } else { refusal });
        }
        refused = Some(refusal);
    }
}

/// Reads the answer of a node, and records the new master of the slot if it names one.
fn next(router: &Router, slot: u16, answer: NodeAnswer, node: &Node) -> Next {
    let refusal = match answer {
        Err(refusal) => refusal,
        answered => return Next::Final(answered),
    };
    if matches!(refusal, ConnectionError::Unknown(_)) && mutant::on(Mutant::ResentAfterUnknown) {
        return Next::Asked(refusal, None);
    }
    match Redirect::of(&refusal, &node.host) {
        None => Next::Final(Err(refusal)),
        Some(Redirect::HalfWay) => Next::Final(Err(ConnectionError::Unknown(refusal.to_string()))),
        Some(Redirect::Moved(_)) if mutant::on(Mutant::MovedNotFollowed) => Next::Later(refusal),
        Some(Redirect::Ask(Some(host))) if mutant::on(Mutant::AskUpdatesMap) => {
            router.moved(slot, &router.public(host));
            Next::Later(refusal)
        }
        Some(Redirect::Moved(Some(owner))) => {
            router.moved(slot, &router.public(owner));
            Next::Asked(refusal, None)
        }
        Some(Redirect::Ask(Some(host))) => Next::Asked(refusal, Some(router.public(host))),
        Some(Redirect::Later) => Next::Later(refusal),
        Some(Redirect::Moved(None) | Redirect::Ask(None) | Redirect::Down) => Next::Down(refusal),
    }
}

/// Pauses for longer each time. `backoff` is `None` at first.
async fn pause(router: &Router, slot: u16, backoff: &mut Option<Backoff>) {
    let backoff = backoff.get_or_insert_with(|| Backoff::new(SLOT_MOVES, router.seed.wrapping_add(slot.into())));
    router.executor.sleep(backoff.pause()).await;
}

/// Asks for a reading of the map, and pauses for longer each time, but at most until a reading ends or the connection
/// is closed.
async fn pause_down(router: &Router, backoff: &mut Option<Backoff>) {
    // Listens before it asks, so that it does not miss the end of the reading.
    let read = router.signals.read.listen();
    if router.is_closed() {
        return;
    }
    router.signals.suspect_map();
    let pause = backoff.get_or_insert_with(|| Backoff::new(CLUSTER_DOWN, router.seed)).pause();
    select(router.executor.sleep(pause), read).await;
}

/// The slot of the first key. All keys of a script have the same hash tag, so they all have this slot.
fn slot_of(call: &Call<'_>) -> u16 {
    call.keys.first().map_or(0, |key| slot::of(key))
}
