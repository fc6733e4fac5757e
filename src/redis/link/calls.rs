//! Runs scripts over a connection, each call within its time limit.

use std::future::ready;
use std::pin::pin;
use std::time::{Duration, Instant};

use futures::FutureExt;

use super::super::convert;
use super::super::failure::Failure;
use super::super::url::address::Address;
use super::limit::Limit;
use super::sending::{self, Around};
use super::unanswered::HandedCall;
use super::{Link, Up};
use crate::connection::{Acknowledged, Call, ConnectionError, Reply};
use crate::error::ErrorKind;
use crate::observe;

pub(in crate::redis) type Answer = Result<Reply, ConnectionError>;

/// The parameters of calls that wait for replicas.
#[derive(Clone, Copy, Debug)]
pub(in crate::redis) struct Waiting {
    pub(in crate::redis) replicas: u32,
    pub(in crate::redis) within: Duration,
    /// Whether each call is for a slot that its node is taking over.
    pub(in crate::redis) asking: bool,
}

/// Runs one call, as soon as there is a connection.
pub(in crate::redis) async fn run(link: &Link, call: &Call<'_>) -> Answer {
    let limit = link.limit(std::slice::from_ref(call));
    one(link, call, limit, limit.started, connected(link, limit.started)).await
}

/// Runs several calls as soon as there is a connection. The answers are in their order, and one error does not affect
/// the other calls.
pub(in crate::redis) async fn run_batch(link: &Link, calls: &[Call<'_>]) -> Vec<Answer> {
    if calls.is_empty() {
        return Vec::new();
    }
    let limit = link.limit(calls);
    several(link, calls, &Around::default(), limit, limit.started, connected(link, limit.started)).await.0
}

/// Like [`run_batch`], over this connection. `asking` says that the node is taking the slot of the calls over.
pub(in crate::redis) async fn run_over(
    link: &Link,
    up: Up,
    calls: &[Call<'_>],
    asking: bool,
    limit: Limit,
    now: Instant,
) -> Vec<Answer> {
    match calls {
        [call] if !asking => vec![one(link, call, limit, now, ready(Ok((up, now)))).await],
        _ => {
            let around = Around { before_each: asking_first(asking), after: None };
            several(link, calls, &around, limit, now, ready(Ok((up, now)))).await.0
        }
    }
}

fn asking_first(asking: bool) -> Option<::redis::Cmd> {
    asking.then(|| ::redis::cmd("ASKING"))
}

/// Like [`run_batch`], followed by `WAIT`. Each answer comes with the number of replicas that have acknowledged the
/// calls. The wait ends shortly before the time limit, so that the answer comes in time.
pub(in crate::redis) async fn run_acknowledged(
    link: &Link,
    calls: &[Call<'_>],
    Waiting { replicas, within, asking }: Waiting,
) -> Vec<Result<Acknowledged, ConnectionError>> {
    if calls.is_empty() {
        return Vec::new();
    }
    // A server notices ten times a second that a wait is over. A busy machine may answer later than it did at login,
    // and the connection is given up if the answer is late.
    let answering = (Duration::from_millis(100) + link.patient()).max(within / 5);
    let waiting = within.saturating_sub(answering).max(within / 2);
    let started = link.executor.now();
    let wait = |is_first: bool| {
        // Calls are sent again if the server does not have their script. The first wait may have used up the time.
        let left = within.saturating_sub(link.executor.now().saturating_duration_since(started) + answering);
        let waiting = if is_first { waiting } else { left };
        let millis = u64::try_from(waiting.as_millis()).unwrap_or(u64::MAX).max(u64::from(is_first));
        // `WAIT` with a timeout of zero would wait without end.
        (millis > 0).then(|| ::redis::cmd("WAIT").arg(replicas).arg(millis).take())
    };
    let around = Around { before_each: asking_first(asking), after: Some(&wait) };
    // A short wait may end after the time limit. That is no sign of a dead connection.
    let limit = Limit { started, limit: within.max(waiting + answering) };
    let (answers, waited) = several(link, calls, &around, limit, started, connected(link, started)).await;
    let replicas = match waited {
        Some(Ok(Reply::Integer(replicas))) => Ok(u32::try_from(replicas).unwrap_or(0)),
        Some(Err(refusal)) => Err(refused_behind(refusal)),
        // It is unknown whether replicas have acknowledged the calls that were answered.
        Some(Ok(_)) | None => Ok(0),
    };
    let acknowledged = |reply| replicas.clone().map(|replicas| Acknowledged { reply, replicas });
    answers.into_iter().map(|answer| answer.and_then(acknowledged)).collect()
}

/// The error of calls that were executed, but behind which the server has not waited, because it was demoted meanwhile
/// for example. A refusal would say that they were not executed, and they might be sent again. What no retry would mend
/// stays as it is, because an operator has to know of it.
fn refused_behind(refusal: ConnectionError) -> ConnectionError {
    let kind = refusal.kind();
    match refusal {
        ConnectionError::Refused { .. } if !matches!(kind, ErrorKind::Denied | ErrorKind::Unsupported) => {
            ConnectionError::Unknown(format!("the wait for replicas was refused: {refusal}"))
        }
        other => other,
    }
}

/// Sends one call over the connection `up`.
async fn one(
    link: &Link,
    call: &Call<'_>,
    limit: Limit,
    now: Instant,
    up: impl Future<Output = Result<(Up, Instant), ConnectionError>>,
) -> Answer {
    let mut handed = HandedCall::new(link);
    let answered = {
        // Pinned here: a future that is handed over by value is stored, and copied, once more by each function on its
        // way.
        let work = pin!(async {
            let (mut up, since) = up.await?;
            handed.set(up.generation, since);
            tell(&up);
            let value = sending::send(&mut up, call).await?;
            check_still_primary(link, up.generation, convert::reply(value))
        });
        link.in_time(limit, now, work).await
    };
    let handed = handed.take();
    match answered {
        Some(Err(error)) => Err(ended(link, error, handed)),
        Some(answer) => answer,
        None => Err(link.late(limit, handed)),
    }
}

/// Sends the calls with the commands around them in one write, over the connection `up`. Returns the answers to the
/// calls and to the command behind them.
async fn several(
    link: &Link,
    calls: &[Call<'_>],
    around: &Around<'_>,
    limit: Limit,
    now: Instant,
    up: impl Future<Output = Result<(Up, Instant), ConnectionError>>,
) -> (Vec<Answer>, Option<Answer>) {
    let mut handed = HandedCall::new(link);
    let mut values = vec![None; calls.len()];
    let whole = {
        let work = pin!(async {
            let (up, since) = up.await?;
            handed.set(up.generation, since);
            tell(&up);
            sending::send_all(&up, calls, around, &mut values).await
        });
        link.in_time(limit, now, work).await
    };
    let handed = handed.take();
    // Checked before the connection is given up for another reason.
    let answers: Vec<Option<Answer>> =
        values.into_iter().map(|value| Some(check_still_primary(link, handed?.0, convert::reply(value?)))).collect();
    let (missing, last) = match whole {
        Some(Ok(last)) => (ConnectionError::Unknown("the answer is missing".to_owned()), last),
        Some(Err(error)) => (ended(link, error, handed), None),
        None => (link.late(limit, handed), None),
    };
    let last =
        handed.zip(last).map(|((generation, _), value)| check_still_primary(link, generation, convert::reply(value)));
    (answers.into_iter().map(|answer| answer.unwrap_or_else(|| Err(missing.clone()))).collect(), last)
}

/// Tells the span of the current acquisition which server is asked.
fn tell(up: &Up) {
    match &up.server.address {
        Address::Tcp(host, port) => observe::asks(host, Some(*port)),
        #[cfg(unix)]
        Address::Unix(path) => observe::asks(&path.display(), None),
    }
}

/// Waits for a connection. Returns the connection and the time at which the call got it. The clock is read only after a
/// wait.
async fn connected(link: &Link, started: Instant) -> Result<(Up, Instant), ConnectionError> {
    if let Some(up) = link.ready().now_or_never() {
        return Ok((up?, started));
    }
    let up = link.ready().await?;
    Ok((up, link.executor.now()))
}

/// Checks an answer for signs that the server is no longer the primary. Another server may be the primary behind the
/// same address by now, and only a new connection reaches that server.
fn check_still_primary(link: &Link, generation: u64, answer: Answer) -> Answer {
    link.silence.ends();
    if link.is_disowned(generation) {
        // For example, the answer is a grant of the old primary that the new one does not have.
        return Err(ConnectionError::Unknown("another server is the primary now".to_owned()));
    }
    if let Err(refusal) = &answer
        && convert::is_of_a_replica(refusal)
    {
        link.suspect(generation, Failure::Refused(refusal.clone()));
    }
    answer
}

/// Handles a failed call. If the connection that it was `handed` to has ended, later calls wait for the next
/// connection, even before the supervisor has noticed.
fn ended(link: &Link, error: ConnectionError, handed: Option<(u64, Instant)>) -> ConnectionError {
    match (error, handed) {
        (ConnectionError::Unknown(_), _) if link.is_closed() => ConnectionError::Closed,
        (error @ ConnectionError::Unknown(_), Some((generation, _))) => {
            link.suspect(generation, Failure::Io("the connection was lost".to_owned()));
            error
        }
        (error, _) => error,
    }
}

#[cfg(test)]
mod tests;
