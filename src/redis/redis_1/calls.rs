//! Runs scripts over the application's connection.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ::redis::{RedisError, RetryMethod, Value};
use futures::future::{Either, select};

use super::super::convert;
use super::shared::{Kind, Shared};
use crate::backoff::Backoff;
use crate::connection::{Call, ConnectionError, Reply};
use crate::mutex::lock;
use crate::tuning::SLOT_MOVES;

type Answer = Result<Reply, ConnectionError>;

/// Runs one call within its time limit, unless the connection is closed.
pub(super) async fn run(shared: &Shared, call: &Call<'_>) -> Answer {
    if shared.is_gone() {
        let gone = "the application's MultiplexedConnection was lost, and never reconnects";
        return if shared.is_closed() {
            Err(ConnectionError::Closed)
        } else {
            Err(ConnectionError::Unreachable(gone.into()))
        };
    }
    let limit = call.within.map_or(shared.timeout, |within| within.min(shared.timeout));
    let has_entered = AtomicBool::new(false);
    let sent = unless_closed(shared, shared.within(limit, send(shared, call, &has_entered)));
    match sent.await {
        None => Err(ConnectionError::Closed),
        Some(None) if !has_entered.load(Ordering::Relaxed) => {
            Err(ConnectionError::Unreachable(format!("the calls before this one have no answer within {limit:?}")))
        }
        Some(None) => Err(ConnectionError::Unknown(format!("nothing within {limit:?}"))),
        Some(Some(answer)) => answer,
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

/// Sends the call again only if an answer says that it was not executed.
async fn send(shared: &Shared, call: &Call<'_>, has_entered: &AtomicBool) -> Answer {
    let _entered = shared.gates.enter(call.keys).await;
    has_entered.store(true, Ordering::Relaxed);
    let mut backoff = Backoff::new(SLOT_MOVES, call.keys.len() as u64);
    let sha = call.script.sha1();
    // Every call sends the script whole until one call has been answered. A call that tried the SHA1 first and was then
    // sent again could be overtaken by a later call.
    let mut whole = !lock(&shared.loaded).contains(sha);
    loop {
        let answer = shared.application.send(&convert::command(call, whole)).await;
        let error = match answer {
            Ok(Value::ServerError(error)) => RedisError::from(error),
            Ok(value) => {
                lock(&shared.loaded).insert(sha);
                return convert::reply(value);
            }
            Err(error) => error,
        };
        if error.code() == Some("NOSCRIPT") && !whole {
            lock(&shared.loaded).remove(sha);
            whole = true;
        } else if shared.kind == Kind::Cluster && was_turned_away(&error) {
            pause(shared, backoff.pause()).await;
        } else {
            return Err(failed(shared, &error));
        }
    }
}

/// Whether a node of a cluster says that it has not executed the call, and that another one may.
fn was_turned_away(error: &RedisError) -> bool {
    let code = error.code().unwrap_or("");
    matches!(code, "MOVED" | "ASK" | "TRYAGAIN" | "CLUSTERDOWN" | "READONLY" | "LOADING" | "MASTERDOWN")
}

async fn pause(shared: &Shared, pause: Duration) {
    shared.executor.sleep(pause).await;
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
