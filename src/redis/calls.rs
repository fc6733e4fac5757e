//! Running scripts over the connection, each call within one deadline.

use std::time::{Duration, Instant};

use super::convert;
use super::failure::Failure;
use super::link::Shared;
use super::sending::{self, Around};
use crate::connection::{Acknowledged, Call, ConnectionError, Reply};

pub(super) type Answer = Result<Reply, ConnectionError>;

/// How calls wait for replicas.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) replicas: u32,
    pub(super) within: Duration,
    /// Each call is for a slot that its node is taking over.
    pub(super) asking: bool,
}

pub(super) async fn run(shared: &Shared, call: &Call<'_>) -> Answer {
    let (started, limit) = (shared.executor.now(), limit(shared, std::slice::from_ref(call)));
    let mut handed = None;
    let answer = shared
        .within(limit, async {
            let up = shared.ready().await?;
            handed = Some(up.generation);
            let value = sending::send(&up, call).await?;
            heed(shared, up.generation, convert::reply(value))
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
    let limit = limit(shared, calls);
    batch(shared, calls, &Around::default(), limit).await.0
}

/// As [`run_batch`], followed by `WAIT`: each answer comes with the number of replicas that have acknowledged the calls.
/// Waits for them until shortly before the time is over, so that the answer is there in time.
pub(super) async fn run_acknowledged(
    shared: &Shared,
    calls: &[Call<'_>],
    Waiting { replicas, within, asking }: Waiting,
) -> Vec<Result<Acknowledged, ConnectionError>> {
    if calls.is_empty() {
        return Vec::new();
    }
    // A server notices ten times a second that a wait is over.
    let answering = Duration::from_millis(100) + shared.patient();
    let waiting = within.saturating_sub(answering).max(within / 2);
    let millis = u64::try_from(waiting.as_millis()).unwrap_or(u64::MAX).max(1);
    let mut wait = ::redis::cmd("WAIT");
    wait.arg(replicas).arg(millis);
    let around = Around { before_each: asking.then(|| ::redis::cmd("ASKING")), after: Some(wait) };
    // A short wait may end later than that: this is no sign of a dead connection.
    let (answers, waited) = batch(shared, calls, &around, within.max(waiting + answering)).await;
    let replicas = match waited {
        Some(Ok(Reply::Integer(replicas))) => Ok(u32::try_from(replicas).unwrap_or(0)),
        Some(Err(refusal)) => Err(refusal),
        // The calls that were answered may have been acknowledged or not.
        Some(Ok(_)) | None => Ok(0),
    };
    let acknowledged = |reply| replicas.clone().map(|replicas| Acknowledged { reply, replicas });
    answers.into_iter().map(|answer| answer.and_then(acknowledged)).collect()
}

/// Sends the calls at once, with what is sent around them, and returns their answers and that to what is sent after them.
async fn batch(shared: &Shared, calls: &[Call<'_>], around: &Around, limit: Duration) -> (Vec<Answer>, Option<Answer>) {
    let started = shared.executor.now();
    let mut handed = None;
    let mut values = vec![None; calls.len()];
    let whole = shared
        .within(limit, async {
            let up = shared.ready().await?;
            handed = Some(up.generation);
            sending::send_all(&up, calls, around, &mut values).await
        })
        .await;
    // Before the connection is given up for another reason.
    let answers: Vec<Option<Answer>> =
        values.into_iter().map(|value| Some(heed(shared, handed?, convert::reply(value?)))).collect();
    let (missing, last) = match whole {
        Some(Ok(last)) => (ConnectionError::Unknown("the answer is missing".to_owned()), last),
        Some(Err(error)) => (ended(shared, error, handed), None),
        None => (late(shared, started, limit, handed), None),
    };
    let last = handed.zip(last).map(|(generation, value)| heed(shared, generation, convert::reply(value)));
    (answers.into_iter().map(|answer| answer.unwrap_or_else(|| Err(missing.clone()))).collect(), last)
}

/// Looks at an answer for signs that the server is no primary any more. Behind one address there may be another by now, which
/// is found by connecting anew only.
fn heed(shared: &Shared, generation: u64, answer: Answer) -> Answer {
    if shared.is_disowned(generation) {
        // A grant of the old primary, for instance, which the new one may know nothing of.
        return Err(ConnectionError::Unknown("another server is the primary now".to_owned()));
    }
    if let Err(refusal) = &answer
        && convert::is_of_a_replica(refusal)
    {
        shared.suspect(generation, Failure::Refused(refusal.clone()));
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

/// How long the calls, sent together, may take: none may be waited for longer than it is of use, unless a connection that
/// is merely slow takes as long.
fn limit(shared: &Shared, calls: &[Call<'_>]) -> Duration {
    let of_use = calls.iter().filter_map(|call| call.within).fold(shared.timeout, Duration::min);
    of_use.max(shared.patient()).min(shared.timeout)
}

/// The `limit` is over. `handed` is the connection that the call was handed to.
pub(super) fn late(shared: &Shared, started: Instant, limit: Duration, handed: Option<u64>) -> ConnectionError {
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
