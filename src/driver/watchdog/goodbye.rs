//! The last calls when the runtime ends before the client does, so that waiters need not wait for the leases to expire.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use futures::future::join_all;

use crate::connection::Connection;
use crate::driver::label::Labelled;
use crate::engine::cleanup::Cleanup;
use crate::protocol::dispatch::{Failure, Scripts};
use crate::protocol::reply::Cancelled;
use crate::runtime::Executor;
use crate::tuning::BATCH;

/// The most polls of a connection that needs no runtime. Such a connection usually blocks in its first poll. The number
/// is limited because the clock may stand still.
const POLLS: u32 = 1_000;

/// Sends the remaining cancels over a connection that needs no runtime. Blocks for the client's shutdown timeout at
/// most.
pub(super) fn say(
    executor: &dyn Executor,
    connection: &dyn Connection,
    inbox_prefix: &str,
    within: Duration,
    (mut left, label): (Vec<Cleanup>, Option<&Labelled>),
) {
    let label = label.filter(|label| label.may_be_stored());
    if left.is_empty() && label.is_none() || within.is_zero() {
        return;
    }
    let until = executor.now() + within;
    // Closed first, because a request that another thread sends after the last call of the good-bye would leave a
    // ticket or a hold.
    connection.close();
    let Some(connection) = connection.without_runtime(within) else { return };
    let scripts = Scripts { connection: &*connection, inbox_prefix };
    while !left.is_empty() {
        let rest = left.split_off(left.len().min(BATCH));
        let calls = left.iter().map(|cleanup| scripts.cancel(&cleanup.keys, cleanup.ticket, cleanup.from_tail));
        let Some(answers) = poll_until(executor, until, join_all(calls)) else { break };
        // In a cluster, the other nodes may answer.
        let is_one_server = !connection.topology().one_name_per_call;
        if is_one_server && answers.iter().any(|answer| matches!(answer, Err(failure) if !is_refusal(failure))) {
            break;
        }
        // Calls that were begun and did not finish are sent first.
        let unfinished = left
            .into_iter()
            .zip(answers)
            .filter(|(_, answer)| matches!(answer, Ok(Cancelled { call_again: true, .. })));
        left = unfinished.map(|(cleanup, _)| cleanup).chain(rest).collect();
    }
    if let Some(label) = label {
        // An error is ignored, because the client has ended. The label then ends with its life.
        let _ = poll_until(executor, until, label.last_call(scripts));
    }
    connection.close();
}

/// Whether only this call failed, for example because its key has the wrong type. Any other failure would repeat for
/// every call to the same server.
fn is_refusal(failure: &Failure) -> bool {
    match failure {
        Failure::Connection(error) | Failure::Late(error) => {
            matches!(error, crate::connection::ConnectionError::Refused { .. })
        }
        Failure::Reply(_) | Failure::NoSuchRequest(_) | Failure::OtherSlots(_) | Failure::Dropped => true,
    }
}

/// Polls without a waker, so a future that needs a task or timer of the runtime does not end.
pub(crate) fn poll_until<F: Future>(executor: &dyn Executor, until: Instant, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    for _ in 0..POLLS {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return Some(output);
        }
        if executor.now() >= until {
            break;
        }
    }
    None
}
