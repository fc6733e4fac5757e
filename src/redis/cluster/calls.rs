//! Running scripts in a cluster: each call is sent to the master of its slot, and follows the slot when it moves.
//!
//! A call is sent again only after an answer that says that it was not executed. When the answer does not come, the
//! outcome is unknown, and the caller decides. A call that waits for a link takes another way when the map changes.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::{join_all, ready};

use super::super::convert;
use super::super::failure::Failure;
use super::super::link::{SLOW, is_silent};
use super::hand::{Handed, PAUSES, Progress, hand, hand_all, pause_down};
use super::node::Node;
use super::redirect::Redirect;
use super::router::Router;
use crate::backoff::Backoff;
use crate::connection::{Call, ConnectionError, Reply};
use crate::mutant::{self, Mutant};
use crate::protocol::slot;

pub(super) type Answer = Result<Reply, ConnectionError>;

/// Redirections in a row, before a pause.
pub(super) const MOST_MOVES: u32 = 5;
/// As long as a slow node gives no answer, the others are asked again after this, or as soon as the map may be read
/// again.
const AGAIN: Duration = Duration::from_millis(100);
/// The most calls in one write to a node.
const BATCH: usize = 256;

pub(super) async fn run(router: &Router, call: &Call<'_>) -> Answer {
    let (started, limit) = (router.executor.now(), limit(router, std::slice::from_ref(call)));
    let mut progress = Progress::default();
    let work = follow(router, call, None, &mut progress);
    match timed(router, started, limit, work).await {
        Some(answer) => answer,
        None => Err(late(router, started, limit, progress)),
    }
}

/// Runs several calls. The answers are in their order. Calls that one node executes are written to it at once.
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

/// Runs the calls of one node in one write. Calls that the node redirects continue one by one.
async fn run_part(router: &Router, calls: &[Call<'_>], started: Instant, limit: Duration) -> Vec<Answer> {
    let Some(first) = calls.first() else { return Vec::new() };
    let mut progress = Progress::default();
    let mut values = vec![None; calls.len()];
    let work = async {
        let route = router.to_slot(slot_of(first))?;
        hand_all(router, &route, calls, &mut values, &mut progress).await
    };
    let handed = timed(router, started, limit, work).await;
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
            match timed(router, started, left, work).await {
                Some(answer) => answer,
                None => Err(late(router, started, left, progress)),
            }
        }
        .boxed()
    });
    join_all(answers).await
}

/// Sends the call from node to node, as the answers direct, until one answers finally. `answered` is the answer of a
/// node that was asked before.
async fn follow(
    router: &Router,
    call: &Call<'_>,
    mut answered: Option<(ConnectionError, Arc<Node>)>,
    progress: &mut Progress,
) -> Answer {
    let slot = slot_of(call);
    let mut backoff = Backoff::new(PAUSES, router.seed.wrapping_add(slot.into()));
    let mut down = None;
    let (mut moves, mut asked) = (0, None);
    loop {
        let (refusal, node) = match answered.take() {
            Some(answered) => answered,
            None => {
                let (route, asking) = match asked.take() {
                    Some(host) => (router.to_host(host)?, true),
                    None => (router.to_slot(slot)?, false),
                };
                let handed = hand(router, &route, call, asking, progress).await;
                if matches!(handed, Err(ConnectionError::Unknown(_))) && mutant::on(Mutant::ResentAfterUnknown) {
                    continue;
                }
                match handed? {
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
            Some(Redirect::Moved(_)) if mutant::on(Mutant::MovedNotFollowed) => {}
            Some(Redirect::Ask(Some(host))) if mutant::on(Mutant::AskUpdatesMap) => {
                router.moved(slot, &router.public(host));
            }
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
            Some(Redirect::Moved(None) | Redirect::Ask(None) | Redirect::Down) => {
                (moves, progress.refusal) = (0, Some(refusal));
                pause_down(router, &mut down).await;
                continue;
            }
        }
        (moves, progress.refusal) = (0, Some(refusal));
        router.executor.sleep(backoff.pause()).await;
    }
}

/// As long as the `limit`, from `started` on. While there is no answer, the other nodes are asked again and again
/// whether this one was replaced. Only a call without an answer for so long has timers of its own.
async fn timed<T>(router: &Router, started: Instant, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    if limit <= SLOW {
        return router.within(limit, work).await;
    }
    if let Some(output) = router.under_way.within(started, work.as_mut()).await {
        return Some(output);
    }
    let mut left = limit - SLOW;
    while !left.is_zero() {
        router.signals.suspect_map();
        let part = left.min(AGAIN);
        if let Some(output) = router.within(part, work.as_mut()).await {
            return Some(output);
        }
        left -= part;
    }
    None
}

/// The time limit of calls that are sent together: until the first answer is of no use, but at least as long as a link
/// that is merely slow takes.
fn limit(router: &Router, calls: &[Call<'_>]) -> Duration {
    let longest = router.config.command_timeout;
    let Some(of_use) = calls.iter().filter_map(|call| call.within).min() else { return longest };
    of_use.max(router.patient()).min(longest)
}

/// The error of a call whose `limit` is over.
fn late(router: &Router, started: Instant, limit: Duration, progress: Progress) -> ConnectionError {
    // A sleep ends early only when the runtime is shut down.
    let now = router.executor.now();
    let shut_down = now.saturating_duration_since(started) < limit;
    if shut_down || router.is_closed() {
        return ConnectionError::Closed;
    }
    match progress {
        Progress { handed: Some(handed), .. } => {
            // The node may have vanished silently, and would then answer no later call either.
            if is_silent(now.saturating_duration_since(handed.since), limit) {
                handed.node.link.suspect(handed.generation, Failure::Io("the connection gave no answer".to_owned()));
            }
            ConnectionError::Unknown(format!("nothing within {limit:?}"))
        }
        Progress { unsure: true, .. } => {
            ConnectionError::Unknown("answered late, and no other node has confirmed the master".to_owned())
        }
        Progress { refusal: Some(refusal), .. } => refusal,
        Progress { waits_for: Some(node), .. } => match node.link.unavailable() {
            ConnectionError::Closed => ConnectionError::Unreachable(format!("{}: replaced", node.host)),
            error => error,
        },
        Progress { .. } => ConnectionError::Unreachable("no node of the cluster could be reached".to_owned()),
    }
}

/// The slot of the first key. All keys of a script have the same hash tag, so it is the slot of all.
pub(super) fn slot_of(call: &Call<'_>) -> u16 {
    call.keys.first().map_or(0, |key| slot::of(key))
}
