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
use super::gate::{Enter, Entering};
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
    /// Sends the call when it is its turn, unless the caller gives up before that.
    async fn carry(self, shared: Arc<Shared>, turn: MaybeDone<Enter>, mut caller: oneshot::Sender<Answer>) {
        let limit = self.limit;
        let has_entered = AtomicBool::new(false);
        let sent = shared.within(limit, async {
            let entering = {
                let mut turn = pin!(turn);
                match select(turn.as_mut(), caller.cancellation()).await {
                    Either::Left(_) => {}
                    Either::Right(_) => return None,
                }
                turn.take_output()
            };
            has_entered.store(true, Ordering::Relaxed);
            let mut sending = pin!(self.send(&shared));
            // The first poll puts the call in the queue of redis-rs, before the next one may enter.
            let first = poll!(&mut sending);
            let _entered = entering.and_then(Entering::done);
            Some(match first {
                Poll::Ready(answer) => answer,
                Poll::Pending => sending.await,
            })
        });
        let answer = match sent.await {
            Some(None) => return,
            Some(Some(answer)) => answer,
            None if !has_entered.load(Ordering::Relaxed) => {
                Err(ConnectionError::Unreachable(format!("the calls before this one have no answer within {limit:?}")))
            }
            None => Err(ConnectionError::Unknown(format!("nothing within {limit:?}"))),
        };
        let _ = caller.send(answer);
    }

    /// Sends the call again only if an answer says that it was not executed.
    async fn send(&self, shared: &Shared) -> Answer {
        let mut backoff = Backoff::new(SLOT_MOVES, self.keys as u64);
        let sha = self.script.sha1();
        // Every call sends the script whole until one call has been answered. A call that tried the SHA1 first and was
        // then sent again could be overtaken by a later call.
        let mut whole = (!lock(&shared.loaded).contains(sha)).then(|| self.whole());
        loop {
            let answer = shared.application.send(whole.as_ref().unwrap_or(&self.by_sha)).await;
            let error = match answer {
                Ok(Value::ServerError(error)) => RedisError::from(error),
                Ok(value) => {
                    lock(&shared.loaded).insert(sha);
                    return convert::reply(value);
                }
                Err(error) => error,
            };
            if error.code() == Some("NOSCRIPT") && whole.is_none() {
                lock(&shared.loaded).remove(sha);
                whole = Some(self.whole());
            } else if shared.kind == Kind::Cluster && was_turned_away(&error) {
                shared.executor.sleep(backoff.pause()).await;
            } else {
                return Err(failed(shared, &error));
            }
        }
    }

    /// The same call with the source of its script.
    fn whole(&self) -> Cmd {
        let mut whole = ::redis::cmd("EVAL");
        whole.arg(self.script.source());
        for arg in self.by_sha.args_iter().skip(2) {
            if let ::redis::Arg::Simple(bytes) = arg {
                whole.arg(bytes);
            }
        }
        whole
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
