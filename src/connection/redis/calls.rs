//! Running scripts over the connection, each call within one deadline.

use std::future::Future;
use std::time::{Duration, Instant};

use ::redis::{Cmd, Pipeline, RedisError, Value};

use super::convert::{self, command, is_noscript};
use super::handshake::Failure;
use super::link::{Shared, Up};
use crate::connection::{Call, ConnectionError, Reply};
use crate::scripts::Script;

pub(super) type Answer = Result<Reply, ConnectionError>;

pub(super) async fn run(shared: &Shared, call: &Call<'_>) -> Answer {
    let (started, limit) = (shared.executor.now(), limit(shared, std::slice::from_ref(call)));
    let mut handed = None;
    let answer = shared
        .within(limit, async {
            let up = shared.ready().await?;
            handed = Some(up.generation);
            let whole = !up.loaded.has(call.script);
            let mut value = in_order(send(&up, command(call, whole))).await?;
            if is_noscript(&value) {
                // Somebody flushed the scripts.
                up.loaded.remove(call.script);
                value = in_order(send(&up, command(call, true))).await?;
            }
            note(&up, call.script, &value);
            heed(shared, &up, convert::reply(value))
        })
        .await;
    match answer {
        Some(Err(error)) => Err(ended(shared, error, handed)),
        Some(answer) => answer,
        None => Err(late(shared, started, limit, handed)),
    }
}

/// The answers are in the order of `calls`, and an error of one leaves the others alone.
pub(super) async fn run_batch(shared: &Shared, calls: &[Call<'_>]) -> Vec<Answer> {
    if calls.is_empty() {
        return Vec::new();
    }
    let (started, limit) = (shared.executor.now(), limit(shared, calls));
    let mut handed = None;
    let mut answers: Vec<Option<Answer>> = vec![None; calls.len()];
    let whole = shared
        .within(limit, async {
            let up = shared.ready().await?;
            handed = Some(up.generation);
            let mut left: Vec<usize> = (0..calls.len()).collect();
            // The second round is for the scripts that somebody flushed.
            for round in 0..2 {
                let values = in_order(send_all(&up, calls, &left, round == 1)).await?;
                let mut again = Vec::new();
                for (index, value) in left.into_iter().zip(values) {
                    if round == 0 && is_noscript(&value) {
                        up.loaded.remove(calls[index].script);
                        again.push(index);
                    } else {
                        note(&up, calls[index].script, &value);
                        answers[index] = Some(heed(shared, &up, convert::reply(value)));
                    }
                }
                left = again;
                if left.is_empty() {
                    break;
                }
            }
            Ok(())
        })
        .await;
    let missing = match whole {
        Some(Ok(())) => ConnectionError::Unknown("the answer is missing".to_owned()),
        Some(Err(error)) => ended(shared, error, handed),
        None => late(shared, started, limit, handed),
    };
    answers.into_iter().map(|answer| answer.unwrap_or_else(|| Err(missing.clone()))).collect()
}

async fn send(up: &Up, command: Cmd) -> Result<Value, ConnectionError> {
    up.connection.clone().send_packed_command(&command).await.map_err(lost)
}

async fn send_all(
    up: &Up,
    calls: &[Call<'_>],
    which: &[usize],
    all_whole: bool,
) -> Result<Vec<Value>, ConnectionError> {
    let mut pipeline = Pipeline::with_capacity(which.len());
    let mut sent: Vec<&'static Script> = Vec::new();
    for &index in which {
        let script = calls[index].script;
        let known = (!all_whole && up.loaded.has(script)) || sent.iter().any(|other| std::ptr::eq(*other, script));
        pipeline.add_command(command(&calls[index], !known));
        // The server takes the batch in order: after its first use, the script is there for the rest.
        sent.push(script);
    }
    up.connection.clone().send_packed_commands(&pipeline, 0, which.len()).await.map_err(lost)
}

/// Errors of the server come as values. What redis-rs calls an error is a connection that ended, and it says the same
/// for a command that was never written as for one whose answer was lost.
fn lost(error: RedisError) -> ConnectionError {
    ConnectionError::Unknown(error.to_string())
}

/// Only an answer that is no error shows that the server has the script.
fn note(up: &Up, script: &'static Script, value: &Value) {
    if !matches!(value, Value::ServerError(_)) {
        up.loaded.add(script);
    }
}

/// Looks at an answer for signs that the server is no primary any more. Behind one address there may be another by now, which
/// is found by connecting anew only.
fn heed(shared: &Shared, up: &Up, answer: Answer) -> Answer {
    if let Err(refusal) = &answer
        && convert::is_of_a_replica(refusal)
    {
        shared.suspect(up.generation, Failure::Refused(refusal.clone()));
    }
    answer
}

/// The call failed. If that was the end of the connection it was `handed` to, later calls wait for the next one, also
/// those that come before the supervisor has noticed.
fn ended(shared: &Shared, error: ConnectionError, handed: Option<u64>) -> ConnectionError {
    match (error, handed) {
        (ConnectionError::Unknown(_), _) if shared.is_closed() => ConnectionError::Closed,
        (error @ ConnectionError::Unknown(_), Some(generation)) => {
            shared.suspect(generation, Failure::Io("the connection was lost".to_owned()));
            error
        }
        (error, _) => error,
    }
}

/// How long the calls, sent together, may take: none may be waited for longer than it is of use.
fn limit(shared: &Shared, calls: &[Call<'_>]) -> Duration {
    calls.iter().filter_map(|call| call.within).fold(shared.timeout, Duration::min)
}

/// The `limit` is over. `handed` is the connection that the call was handed to.
fn late(shared: &Shared, started: Instant, limit: Duration, handed: Option<u64>) -> ConnectionError {
    // A sleep ends early only when the runtime is shut down.
    let shut_down = shared.executor.now().saturating_duration_since(started) < limit;
    if shut_down || shared.is_closed() {
        return ConnectionError::Closed;
    }
    let Some(generation) = handed else { return shared.unavailable() };
    // The other side may be gone without a word, and would answer no later call either.
    shared.suspect(generation, Failure::Io("the connection gave no answer".to_owned()));
    ConnectionError::Unknown(format!("nothing within {limit:?}"))
}

/// Takes a call out of tokio's cooperative scheduling: a task that has used up its budget would be sent away before
/// the call is in the queue, and a later call of another task would overtake it.
#[cfg(feature = "tokio")]
fn in_order<F: Future>(future: F) -> impl Future<Output = F::Output> {
    ::tokio::task::unconstrained(future)
}

/// Without tokio there are no budgets.
#[cfg(not(feature = "tokio"))]
fn in_order<F: Future>(future: F) -> impl Future<Output = F::Output> {
    future
}
