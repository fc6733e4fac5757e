//! Calls that wait for replicas: written to the master of each slot at once, over the connection of that node for them.
//!
//! Calls that a node sends away go on by themselves, as in `calls`, and the replicas of the node that executes a call
//! are the ones that count.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;

use super::super::calls::Waiting;
use super::calls::{MOST_MOVES, slot_of};
use super::hand::{PAUSES, Progress, link, pause_down};
use super::host::Host;
use super::node::Node;
use super::redirect::Redirect;
use super::router::Router;
use super::sure::sure;
use crate::backoff::Backoff;
use crate::connection::{Acknowledged, Call, ConnectionError};

type Answer = Result<Acknowledged, ConnectionError>;

/// Runs several calls. The answers are in their order.
pub(super) async fn run(router: &Router, calls: &[Call<'_>], replicas: u32, within: Duration) -> Vec<Answer> {
    let waiting = Waiting { replicas, within, asking: false };
    let parts = by(calls.iter().enumerate(), |(_, call)| router.number_of(slot_of(call)));
    let parts = parts.into_iter().map(|(_, part)| async move {
        let (indices, part): (Vec<usize>, Vec<&Call<'_>>) = part.into_iter().unzip();
        indices.into_iter().zip(follow(router, &part, waiting).await).collect::<Vec<_>>()
    });
    in_order(join_all(parts).await)
}

/// Runs the calls of one node as long as that node executes them.
async fn follow(router: &Router, calls: &[&Call<'_>], waiting: Waiting) -> Vec<Answer> {
    let started = router.executor.now();
    let (mut backoff, mut down) = (Backoff::new(PAUSES, router.seed), None);
    let mut done = Vec::new();
    let mut moves = 0;
    // What is sent next, and where if not to the master of its slot.
    let mut left: Vec<(usize, Option<Host>)> = (0..calls.len()).map(|index| (index, None)).collect();
    loop {
        let elapsed = router.executor.now().saturating_duration_since(started);
        let in_time = Waiting { within: waiting.within.saturating_sub(elapsed), ..waiting };
        let round = by(left.drain(..), |(index, asked)| (router.number_of(slot_of(calls[*index])), asked.clone()));
        let round = round.into_iter().map(|((_, asked), part)| {
            let indices: Vec<usize> = part.into_iter().map(|(index, _)| index).collect();
            let part: Vec<Call<'_>> = indices.iter().map(|index| *calls[*index]).collect();
            async move { indices.into_iter().zip(at_one(router, &part, asked, in_time).await).collect::<Vec<_>>() }
        });
        let (mut pause, mut is_down, mut moved) = (false, false, false);
        for (index, (answer, node)) in join_all(round).await.into_iter().flatten() {
            let refused = answer.as_ref().err().zip(node.as_ref());
            let redirect = refused.and_then(|(refusal, node)| Redirect::of(refusal, &node.host));
            let asked = match redirect {
                None if node.is_some() => {
                    done.push((index, answer));
                    continue;
                }
                Some(Redirect::HalfWay) => {
                    done.push((index, answer.map_err(|refusal| ConnectionError::Unknown(refusal.to_string()))));
                    continue;
                }
                Some(Redirect::Moved(Some(owner))) => {
                    router.moved(slot_of(calls[index]), &router.public(owner));
                    moved = true;
                    None
                }
                Some(Redirect::Ask(Some(host))) => {
                    moved = true;
                    Some(router.public(host))
                }
                Some(Redirect::Later) => {
                    pause = true;
                    None
                }
                Some(Redirect::Moved(None) | Redirect::Ask(None) | Redirect::Down) | None => {
                    is_down = true;
                    None
                }
            };
            let over = router.executor.now().saturating_duration_since(started) >= waiting.within || router.is_closed();
            if over { done.push((index, answer)) } else { left.push((index, asked)) }
        }
        if left.is_empty() {
            return in_order(vec![done]);
        }
        moves += u32::from(moved);
        if is_down {
            moves = 0;
            let elapsed = router.executor.now().saturating_duration_since(started);
            router.within(waiting.within.saturating_sub(elapsed), pause_down(router, &mut down)).await;
            continue;
        }
        // Nodes that disagree about a slot send calls to each other.
        if pause || moves >= MOST_MOVES {
            moves = 0;
            router.executor.sleep(backoff.pause()).await;
        }
    }
}

/// Sends the calls to one node. Each answer comes with that node, or with none if nothing was sent.
async fn at_one(
    router: &Router,
    calls: &[Call<'_>],
    asked: Option<Host>,
    waiting: Waiting,
) -> Vec<(Answer, Option<Arc<Node>>)> {
    let failed = |error: ConnectionError| calls.iter().map(|_| (Err(error.clone()), None)).collect();
    let asking = asked.is_some();
    let route = match (asked, calls.first()) {
        (Some(host), _) => router.to_host(host),
        (None, Some(first)) => router.to_slot(slot_of(first)),
        (None, None) => return Vec::new(),
    };
    let (node, version) = match route {
        Ok(route) => (route.node, route.version),
        Err(closed) => return failed(closed),
    };
    let Some(node) = node else {
        return failed(ConnectionError::refused("CLUSTERDOWN no node serves the slot"));
    };
    let mut progress = Progress::default();
    match router.within(waiting.within, link(router, &node, version, &mut progress)).await {
        Some(Ok(Some(_))) => {}
        Some(Ok(None)) => return failed(ConnectionError::Unreachable(format!("{}: replaced", node.host))),
        Some(Err(closed)) => return failed(closed),
        None => {
            return failed(match node.link.unavailable() {
                // Only the link of this node was closed.
                ConnectionError::Closed if !router.is_closed() => {
                    ConnectionError::Unreachable(format!("{}: replaced", node.host))
                }
                error => error,
            });
        }
    }
    let handed = router.executor.now();
    let answers = node.acknowledging.run(&node.link, calls, Waiting { asking, ..waiting }).await;
    // A link that waits for replicas is slow when they are, so the generation that counts is that of the link for
    // commands.
    let sure = match answers.iter().any(Result::is_ok) {
        true => router.within(waiting.within, sure(router, &node, u64::MAX, handed)).await,
        false => Some(Ok(())),
    };
    let late = || ConnectionError::Unknown("answered late, and no other node has confirmed the master".to_owned());
    let unsure = sure.unwrap_or_else(|| Err(late())).err();
    let answers = answers.into_iter().map(|answer| match (answer, &unsure) {
        // Only the link of this node was closed, because the node was replaced.
        (Err(ConnectionError::Closed), _) if !router.is_closed() => {
            Err(ConnectionError::Unknown(format!("{}: replaced", node.host)))
        }
        (Ok(_), Some(unsure)) => Err(unsure.clone()),
        (answer, _) => answer,
    });
    answers.map(|answer| (answer, Some(Arc::clone(&node)))).collect()
}

/// Groups the items by key.
fn by<T, K: PartialEq>(items: impl Iterator<Item = T>, key: impl Fn(&T) -> K) -> Vec<(K, Vec<T>)> {
    let mut groups: Vec<(K, Vec<T>)> = Vec::new();
    for item in items {
        let key = key(&item);
        match groups.iter_mut().find(|(other, _)| *other == key) {
            Some((_, group)) => group.push(item),
            None => groups.push((key, vec![item])),
        }
    }
    groups
}

fn in_order(parts: Vec<Vec<(usize, Answer)>>) -> Vec<Answer> {
    let mut answers: Vec<(usize, Answer)> = parts.into_iter().flatten().collect();
    answers.sort_unstable_by_key(|(index, _)| *index);
    answers.into_iter().map(|(_, answer)| answer).collect()
}
