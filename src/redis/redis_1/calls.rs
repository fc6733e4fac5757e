//! Runs scripts over the application's connection.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use ::redis::{Cmd, RedisError, RetryMethod, Value};
use futures::channel::oneshot;
use futures::future::{Either, MaybeDone, maybe_done, select};
use futures::poll;

use super::super::convert;
use super::gate::{Enter, Entered};
use super::shared::{Kind, Shared};
use crate::backoff::Backoff;
use crate::connection::{Call, ConnectionError, Reply};
use crate::mutex::lock;
use crate::protocol::Script;
use crate::tuning::SLOT_MOVES;

type Answer = Result<Reply, ConnectionError>;

/// Runs one call within its time limit, unless the connection is closed.
///
/// A task of its own carries the call. If the caller's future did, a future that is kept and not polled would keep its
/// place at the gate, and all later calls behind it.
pub(super) async fn run(shared: &Arc<Shared>, call: &Call<'_>) -> Answer {
    if shared.is_closed() {
        return Err(ConnectionError::Closed);
    }
    if shared.is_gone() {
        let gone = "the application's MultiplexedConnection was lost, and never reconnects";
        return Err(ConnectionError::Unreachable(gone.into()));
    }
    // Its place at the gate is that of this poll.
    let mut turn = maybe_done(shared.gates.enter(call.keys));
    let _ = poll!(&mut turn);
    let (sender, answer) = oneshot::channel();
    let carried = Carried {
        script: call.script,
        keys: call.keys.len(),
        by_sha: convert::command(call, false),
        limit: call.within.map_or(shared.timeout, |within| within.min(shared.timeout)),
    };
    shared.executor.spawn(Box::pin(carried.carry(Arc::clone(shared), turn, sender)));
    match unless_closed(shared, answer).await {
        Some(Ok(answer)) => answer,
        // Closed, or the runtime was shut down.
        None | Some(Err(oneshot::Canceled)) => Err(ConnectionError::Closed),
    }
}

/// A call on its way.
struct Carried {
    script: &'static Script,
    /// The number of its keys.
    keys: usize,
    by_sha: Cmd,
    limit: Duration,
}

impl Carried {
    /// Sends the call when it is its turn. Once it is sent, it keeps its place at the gate until it is answered or its
    /// time is over, even if the caller gives up.
    async fn carry(self, shared: Arc<Shared>, turn: MaybeDone<Enter>, mut caller: oneshot::Sender<Answer>) {
        let has_entered = AtomicBool::new(false);
        let sent = shared.within(self.limit, async {
            let mut entered = entered(turn, &mut caller).await?;
            has_entered.store(true, Ordering::Relaxed);
            let mut sending = pin!(self.send(&shared, &caller));
            // The first poll puts the call in the queue of redis-rs.
            let first = poll!(&mut sending);
            entered.queued();
            match first {
                Poll::Ready(answer) => answer,
                Poll::Pending => sending.await,
            }
        });
        let limit = self.limit;
        let answer = match sent.await {
            // Nobody waits for it.
            Some(None) => return,
            Some(Some(answer)) => answer,
            None if !has_entered.load(Ordering::Relaxed) => {
                Err(ConnectionError::Unreachable(format!("the calls before this one have no answer within {limit:?}")))
            }
            None => Err(ConnectionError::Unknown(format!("nothing within {limit:?}"))),
        };
        let _ = caller.send(answer);
    }

    /// Sends the call again only if an answer says that it was not executed. `None`: the caller has given up, or the
    /// connection was closed, and nothing more is sent.
    async fn send(&self, shared: &Shared, caller: &oneshot::Sender<Answer>) -> Option<Answer> {
        let mut backoff = Backoff::new(SLOT_MOVES, self.keys as u64);
        let (script, sha) = (self.script, self.script.sha1());
        // Every call sends the script whole until one call has been answered. A call that tried the SHA1 first and was
        // then sent again could be overtaken by a later call.
        let mut whole = (!lock(&shared.loaded).contains(sha)).then(|| convert::whole(&self.by_sha, script));
        while !caller.is_canceled() && !shared.is_closed() {
            let answer = shared.application.send(whole.as_ref().unwrap_or(&self.by_sha)).await;
            let error = match answer {
                Ok(Value::ServerError(error)) => RedisError::from(error),
                Ok(value) => {
                    lock(&shared.loaded).insert(sha);
                    return Some(convert::reply(value));
                }
                Err(error) => error,
            };
            if error.code() == Some("NOSCRIPT") && whole.is_none() {
                lock(&shared.loaded).remove(sha);
                whole = Some(convert::whole(&self.by_sha, script));
            } else if shared.kind == Kind::Cluster && was_turned_away(&error) {
                shared.executor.sleep(backoff.pause()).await;
            } else {
                return Some(Err(failed(shared, &error)));
            }
        }
        None
    }
}

/// Waits for the turn. `None`: the caller has given up before.
async fn entered(turn: MaybeDone<Enter>, caller: &mut oneshot::Sender<Answer>) -> Option<Entered> {
    let mut turn = pin!(turn);
    match select(caller.cancellation(), turn.as_mut()).await {
        Either::Left(_) => None,
        Either::Right(_) => turn.take_output(),
    }
}

/// `None`: the connection was closed before or meanwhile.
pub(super) async fn unless_closed<T>(shared: &Shared, work: impl Future<Output = T>) -> Option<T> {
    if shared.is_closed() {
        return None;
    }
    match select(pin!(work), pin!(shared.until_closed())).await {
        Either::Left((output, _)) => Some(output),
        Either::Right(_) => None,
    }
}

/// Whether a node of a cluster says that it has not executed the call, and that another one may.
fn was_turned_away(error: &RedisError) -> bool {
    let code = error.code().unwrap_or("");
    matches!(code, "MOVED" | "ASK" | "TRYAGAIN" | "CLUSTERDOWN" | "READONLY" | "LOADING" | "MASTERDOWN")
}

/// redis-rs does not say whether a call that failed was sent.
pub(super) fn failed(shared: &Shared, error: &RedisError) -> ConnectionError {
    if let Some(refusal) = convert::refused_by_server(error) {
        return refusal;
    }
    if error.is_unrecoverable_error() || matches!(error.retry_method(), RetryMethod::Reconnect) {
        shared.lost();
    }
    ConnectionError::Unknown(error.to_string())
}
