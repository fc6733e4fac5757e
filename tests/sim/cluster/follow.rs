//! The way of a call, from one node to the next.

use std::sync::Arc;
use std::time::Duration;

use bowline::ConnectionError;
use futures::future::{BoxFuture, Either, select};

use super::Cluster;
use crate::network::Link;
use crate::nodes::Node;
use crate::world::MS;

/// Sends the call over a link, behind an `ASKING` or not, and waits for so long.
pub type Sending<'a, T> = dyn Fn(Arc<Link>, bool, Duration) -> BoxFuture<'a, Result<T, ConnectionError>> + Sync + 'a;

/// Redirections in a row, before a pause.
const MOST_MOVES: u32 = 5;

/// A node that gives no answer for so long may be gone: the others are asked; then again and again.
const SLOW: Duration = Duration::from_millis(500);
const AGAIN: Duration = Duration::from_millis(100);

/// Where a call goes after an answer.
enum Next {
    Moved(Node),
    Ask(Node),
    Later,
    Down,
}

/// `None`: it is the answer of the call.
fn redirect(code: &str, message: &str) -> Option<Next> {
    let node = || message.rsplit(' ').next()?.parse().ok();
    Some(match code {
        "MOVED" => Next::Moved(node()?),
        "ASK" => Next::Ask(node()?),
        "TRYAGAIN" => Next::Later,
        "CLUSTERDOWN" | "LOADING" | "MASTERDOWN" => Next::Down,
        _ => return None,
    })
}

/// The mistake of that name.
fn resends() -> bool {
    #[cfg(feature = "_mutants")]
    return super::is_on(bowline::Mutant::ResentAfterUnknown);
    #[cfg(not(feature = "_mutants"))]
    false
}

impl Cluster {
    /// Until there is an answer, or the time is over.
    pub(super) async fn follow<T>(
        self: &Arc<Self>,
        slot: &str,
        within: Duration,
        send: &Sending<'_, T>,
    ) -> Result<T, ConnectionError> {
        let until = self.executor.now() + within;
        let (mut asked, mut moves) = (None, 0);
        let mut last = ConnectionError::Unreachable("no node could be reached".to_owned());
        loop {
            let left = until.saturating_duration_since(self.executor.now());
            let (closed, version, owner) = self.look(|state| (state.closed, state.version, state.map.owner(slot)));
            if closed || left.is_zero() {
                return Err(if closed { ConnectionError::Closed } else { last });
            }
            let asking = asked.is_some();
            let link = self.link(asked.take().unwrap_or(owner));
            if !self.stands(&link, version, left).await {
                continue;
            }
            let left = until.saturating_duration_since(self.executor.now());
            let refusal = match self.watched(send(link, asking, left)).await {
                Ok(answer) => return Ok(answer),
                Err(refusal @ ConnectionError::Refused { .. }) => refusal,
                Err(ConnectionError::Unreachable(_)) => continue,
                Err(ConnectionError::Closed) if self.look(|state| state.closed) => return Err(ConnectionError::Closed),
                // The connection broke, or the node was replaced.
                Err(_) => {
                    self.suspect_map();
                    last = ConnectionError::Unknown("no answer".to_owned());
                    if resends() {
                        continue;
                    }
                    return Err(last);
                }
            };
            let ConnectionError::Refused { code, message } = &refusal else { return Err(refusal) };
            if message.contains("non local key") {
                return Err(ConnectionError::Unknown(refusal.to_string()));
            }
            moves += 1;
            match redirect(code, message) {
                None => return Err(refusal),
                Some(Next::Moved(owner)) => {
                    self.moved(slot, owner);
                    if moves < MOST_MOVES {
                        continue;
                    }
                }
                Some(Next::Ask(node)) if moves < MOST_MOVES => {
                    asked = Some(node);
                    continue;
                }
                Some(Next::Ask(_) | Next::Later) => {}
                Some(Next::Down) => self.suspect_map(),
            }
            (moves, last) = (0, refusal);
            let pause = self.machine.random(|random| random.between(10 * MS, 50 * MS));
            self.executor.sleep(pause).await;
        }
    }

    /// Waits for the link, no longer than that. False: the map has changed, or the link is not there yet.
    async fn stands(&self, link: &Arc<Link>, version: u64, left: Duration) -> bool {
        let other = Box::pin(self.until(|state| state.closed || state.version != version));
        let late = select(other, self.executor.sleep(left.min(AGAIN)));
        match select(Box::pin(link.up()), late).await {
            Either::Left((up, _)) => up,
            Either::Right((Either::Left(_), _)) => false,
            Either::Right((Either::Right(_), _)) => {
                self.suspect_map();
                false
            }
        }
    }

    /// While there is no answer, the other nodes are asked whether this one was replaced.
    async fn watched<T>(&self, mut answer: BoxFuture<'_, T>) -> T {
        let mut wait = SLOW;
        loop {
            match select(answer, self.executor.sleep(wait)).await {
                Either::Left((answer, _)) => return answer,
                Either::Right((_, rest)) => answer = rest,
            }
            self.suspect_map();
            wait = AGAIN;
        }
    }
}
