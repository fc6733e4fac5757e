//! Hands commands to the connection in order, and sends the source of each script once.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ::redis::{Cmd, Pipeline, RedisError, Value};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::super::convert::{command, is_noscript};
use super::Up;
use super::loaded::Loaded;
use crate::connection::{Call, ConnectionError};
use crate::protocol::Script;

type Sent<T> = Result<T, ConnectionError>;

/// How often a call is sent by its SHA1 before it sends the source itself. The server may lose the script while the
/// call is on its way, and once more after another call has sent the source.
const ROUNDS: u8 = 2;

/// Commands that are sent with the calls of a batch, in the same write.
#[derive(Default)]
pub(in crate::redis) struct Around<'a> {
    /// Sent directly before each call. Its answers are ignored.
    pub(in crate::redis) before_each: Option<Cmd>,
    /// Sent directly after all calls. The argument says whether the calls are sent for the first time.
    pub(in crate::redis) after: Option<&'a (dyn Fn(bool) -> Option<Cmd> + Sync)>,
}

/// Sends one call.
pub(in crate::redis) async fn send(up: &mut Up, call: &Call<'_>) -> Sent<Value> {
    for _ in 0..ROUNDS {
        let Some(time) = up.loaded.sent(call.script) else { break };
        let command = command(call, false);
        let value = in_order(up.connection.send_packed_command(&command)).await.map_err(lost)?;
        if !is_noscript(&value) {
            return Ok(value);
        }
        up.loaded.remove(call.script, time);
    }
    // On the heap, so that the future of every call does not carry what is done once per script and connection.
    send_whole(up, call.script, command(call, true)).boxed().await
}

async fn send_whole(up: &Up, script: &'static Script, command: Cmd) -> Sent<Value> {
    let mut connection = up.connection.clone();
    let sending = async move { connection.send_packed_command(&command).await.map_err(lost) };
    let (value, times) = handed_over(up, &[script], sending).await;
    let value = value?;
    note(up, script, times[0], &value);
    Ok(value)
}

/// Sends several calls at once. The answers are in their order, followed by the answer to the command after them.
pub(in crate::redis) async fn send_all(
    up: &Up,
    calls: &[Call<'_>],
    around: &Around<'_>,
    values: &mut [Option<Value>],
) -> Sent<Option<Value>> {
    let mut left: Vec<usize> = (0..calls.len()).collect();
    let mut last = None;
    for round in 0..=ROUNDS {
        // The command after the calls is sent again with each round, because only then is it after all of them.
        let after = around.after.and_then(|after| after(round == 0));
        let (before_each, all_whole) = (around.before_each.as_ref(), round == ROUNDS);
        (left, last) = send_some(up, calls, &left, (before_each, after), all_whole, values).await?;
        if left.is_empty() {
            break;
        }
    }
    Ok(last)
}

/// Sends the calls that are `left`. Returns those whose script the server does not have, and the answer to the command
/// after them.
async fn send_some(
    up: &Up,
    calls: &[Call<'_>],
    left: &[usize],
    (before_each, after): (Option<&Cmd>, Option<Cmd>),
    all_whole: bool,
    values: &mut [Option<Value>],
) -> Sent<(Vec<usize>, Option<Value>)> {
    let mut pipeline = Pipeline::with_capacity(2 * left.len() + 1);
    // For each script: the index of the call that sends the source, or the number of the earlier time at which it was
    // sent.
    let mut whole: Vec<(&'static Script, usize)> = Vec::new();
    let mut before: Vec<(&'static Script, u64)> = Vec::new();
    for &index in left {
        let script = calls[index].script;
        // The server executes the batch in order, so the script is there after its first use.
        let here = whole.iter().any(|(other, _)| std::ptr::eq(*other, script));
        let known = if here || all_whole { None } else { up.loaded.sent(script) };
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
    let (has_before, has_after) = (before_each.is_some(), after.is_some());
    if let Some(after) = after {
        pipeline.add_command(after);
    }
    let (mut connection, count) = (up.connection.clone(), pipeline.len());
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

/// An error does not show that the server has the script.
fn note(up: &Up, script: &'static Script, time: u64, value: &Value) {
    if matches!(value, Value::ServerError(_)) {
        up.loaded.remove(script, time);
    }
}

/// Hands calls that send these sources to the connection, and records that the sources were sent.
async fn handed_over<T: Send + 'static>(
    up: &Up,
    scripts: &[&'static Script],
    sending: impl Future<Output = T> + Send + 'static,
) -> (T, Vec<u64>) {
    let mut sending = Outliving { loaded: Arc::clone(&up.loaded), sending: Some(in_order(sending).boxed()) };
    // The first poll puts the call in the queue. The source is recorded only after that, because otherwise a call with
    // only the SHA1 might overtake this one.
    let first = futures::poll!(&mut sending);
    let times = scripts.iter().map(|script| up.loaded.add(script)).collect();
    match first {
        Poll::Ready(output) => (output, times),
        Poll::Pending => (sending.await, times),
    }
}

/// A future that is kept until it is done, even if its owner is dropped.
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

/// Errors of the server arrive as values. An error of redis-rs means that the connection ended, and does not say
/// whether the command was written or only its answer was lost.
pub(in crate::redis) fn lost(error: RedisError) -> ConnectionError {
    ConnectionError::Unknown(error.to_string())
}

/// Exempts a call from tokio's cooperative scheduling. Otherwise a task that has used up its budget would have to yield
/// before its call is in the queue, and a later call of another task would overtake it.
#[cfg(feature = "tokio")]
pub(in crate::redis) fn in_order<F: Future>(future: F) -> impl Future<Output = F::Output> {
    ::tokio::task::unconstrained(future)
}

/// Other runtimes have no such budgets.
#[cfg(not(feature = "tokio"))]
pub(in crate::redis) fn in_order<F: Future>(future: F) -> impl Future<Output = F::Output> {
    future
}

#[cfg(test)]
mod tests;
