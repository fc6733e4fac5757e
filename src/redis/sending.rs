//! Handing commands to the connection: in order, each script whole once.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ::redis::{Cmd, Pipeline, RedisError, Value};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::convert::{command, is_noscript};
use super::link::Up;
use super::loaded::Loaded;
use crate::connection::{Call, ConnectionError};
use crate::protocol::Script;

type Sent<T> = Result<T, ConnectionError>;

/// The server may forget a script while it is being asked for it, and once more when another call has sent it whole meanwhile.
/// After that, a call sends it itself.
const ROUNDS: u8 = 2;

/// What is sent with the calls of a batch, in the same write.
#[derive(Default)]
pub(super) struct Around {
    /// Right before each call. The answers to it are of no interest.
    pub(super) before_each: Option<Cmd>,
    /// Right behind all calls.
    pub(super) after: Option<Cmd>,
}

/// Sends one call.
pub(super) async fn send(up: &Up, call: &Call<'_>) -> Sent<Value> {
    for _ in 0..ROUNDS {
        let Some(time) = up.loaded.sent(call.script) else { break };
        let command = command(call, false);
        let value = in_order(up.connection.clone().send_packed_command(&command)).await.map_err(lost)?;
        if !is_noscript(&value) {
            return Ok(value);
        }
        up.loaded.remove(call.script, time);
    }
    send_whole(up, call.script, command(call, true)).await
}

async fn send_whole(up: &Up, script: &'static Script, command: Cmd) -> Sent<Value> {
    let mut connection = up.connection.clone();
    let sending = async move { connection.send_packed_command(&command).await.map_err(lost) };
    let (value, times) = handed_over(up, &[script], sending).await;
    let value = value?;
    note(up, script, times[0], &value);
    Ok(value)
}

/// Sends several calls at once, and puts each answer at the place of its call. Returns the answer to what is sent after them.
pub(super) async fn send_all(
    up: &Up,
    calls: &[Call<'_>],
    around: &Around,
    values: &mut [Option<Value>],
) -> Sent<Option<Value>> {
    let mut left: Vec<usize> = (0..calls.len()).collect();
    let mut last = None;
    for round in 0..=ROUNDS {
        // What follows is sent with each round: only the last one is behind all calls.
        (left, last) = send_some(up, calls, &left, around, round == ROUNDS, values).await?;
        if left.is_empty() {
            break;
        }
    }
    Ok(last)
}

/// Sends those of the calls that are `left`, and returns those for which the server had no script, and the answer to what is
/// sent after them.
async fn send_some(
    up: &Up,
    calls: &[Call<'_>],
    left: &[usize],
    Around { before_each, after }: &Around,
    all_whole: bool,
    values: &mut [Option<Value>],
) -> Sent<(Vec<usize>, Option<Value>)> {
    let mut pipeline = Pipeline::with_capacity(2 * left.len() + 1);
    // By script: where it is sent whole, or which time that was before.
    let mut whole: Vec<(&'static Script, usize)> = Vec::new();
    let mut before: Vec<(&'static Script, u64)> = Vec::new();
    for &index in left {
        let script = calls[index].script;
        // The server takes the batch in order: after its first use, the script is there for the rest.
        let here = whole.iter().any(|(other, _)| std::ptr::eq(*other, script));
        // What is waited for behind the batch must not be waited for twice: its scripts are sent whole.
        let known = if here || all_whole || after.is_some() { None } else { up.loaded.sent(script) };
        if let Some(before) = before_each {
            pipeline.add_command(before.clone());
        }
        pipeline.add_command(command(&calls[index], !here && known.is_none()));
        match known {
            Some(time) => before.push((script, time)),
            None if !here => whole.push((script, index)),
            None => {}
        }
    }
    if let Some(after) = after {
        pipeline.add_command(after.clone());
    }
    let (mut connection, count) = (up.connection.clone(), pipeline.len());
    let (has_before, has_after) = (before_each.is_some(), after.is_some());
    let sending = async move {
        let mut answers = connection.send_packed_commands(&pipeline, 0, count).await.map_err(lost)?;
        let last = if has_after { answers.pop() } else { None };
        if has_before {
            answers = answers.into_iter().skip(1).step_by(2).collect();
        }
        Sent::Ok((answers, last))
    };
    let (answers, last) = if whole.is_empty() {
        in_order(sending).await?
    } else {
        let scripts: Vec<&'static Script> = whole.iter().map(|(script, _)| *script).collect();
        let (sent, times) = handed_over(up, &scripts, sending).await;
        let (answers, last) = sent?;
        for ((script, first), time) in whole.iter().zip(times) {
            let place = left.iter().position(|index| index == first);
            if let Some(answer) = place.and_then(|place| answers.get(place)) {
                note(up, script, time, answer);
            }
        }
        (answers, last)
    };
    let mut again = Vec::new();
    for (&index, answer) in left.iter().zip(answers) {
        if is_noscript(&answer) && !all_whole {
            again.push(index);
        } else {
            values[index] = Some(answer);
        }
    }
    for (script, time) in before {
        if again.iter().any(|index| std::ptr::eq(calls[*index].script, script)) {
            up.loaded.remove(script, time);
        }
    }
    Ok((again, last))
}

/// An error is no sign that the server has the script.
fn note(up: &Up, script: &'static Script, time: u64, value: &Value) {
    if matches!(value, Value::ServerError(_)) {
        up.loaded.remove(script, time);
    }
}

/// Hands what sends these scripts whole to the connection, and notes which time that is.
async fn handed_over<T: Send + 'static>(
    up: &Up,
    scripts: &[&'static Script],
    sending: impl Future<Output = T> + Send + 'static,
) -> (T, Vec<u64>) {
    let mut sending = Outliving { loaded: Arc::clone(&up.loaded), sending: Some(in_order(sending).boxed()) };
    // The first poll puts it into the queue. Not before that: a call with the SHA1 alone might be ahead of it.
    let first = futures::poll!(&mut sending);
    let times = scripts.iter().map(|script| up.loaded.add(script)).collect();
    match first {
        Poll::Ready(output) => (output, times),
        Poll::Pending => (sending.await, times),
    }
}

/// A future that is not dropped with its owner before it is done, but kept.
struct Outliving<T: Send + 'static> {
    loaded: Arc<Loaded>,
    sending: Option<BoxFuture<'static, T>>,
}

impl<T: Send + 'static> Future for Outliving<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let Some(sending) = &mut self.sending else { return Poll::Pending };
        let polled = sending.poll_unpin(cx);
        if polled.is_ready() {
            self.sending = None;
        }
        polled
    }
}

impl<T: Send + 'static> Drop for Outliving<T> {
    fn drop(&mut self) {
        if let Some(sending) = self.sending.take() {
            self.loaded.keep(sending.map(drop).boxed());
        }
    }
}

/// Errors of the server come as values. What redis-rs calls an error is a connection that ended, and it says the same
/// for a command that was never written as for one whose answer was lost.
pub(super) fn lost(error: RedisError) -> ConnectionError {
    ConnectionError::Unknown(error.to_string())
}

/// Takes a call out of tokio's cooperative scheduling: a task that has used up its budget would be sent away before
/// the call is in the queue, and a later call of another task would overtake it.
#[cfg(feature = "tokio")]
pub(super) fn in_order<F: Future>(future: F) -> impl Future<Output = F::Output> {
    ::tokio::task::unconstrained(future)
}

/// Without tokio there are no budgets.
#[cfg(not(feature = "tokio"))]
pub(super) fn in_order<F: Future>(future: F) -> impl Future<Output = F::Output> {
    future
}
