//! Calls that go wrong.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use bowline::{Call, Connection, ConnectionError, Executor, RedisConnection, Reply};

use super::{WrongConnection, lock};
use crate::support::adapters::admin;
use crate::support::request::Request;

#[derive(Clone, Copy, Debug)]
pub(super) enum WrongCall {
    /// Sends a call again whose answer was lost.
    SendsTwice,
    /// Has a call that was lost pass for one that was never sent.
    DeniesWhatItSent,
    /// Passes every other call on later than it was made.
    Reorders,
    /// Says that no answer came, but long after the deadline.
    IsLate,
    /// Stays down once the connection was lost.
    NeverReconnects,
    HidesTheCode,
    TakesNilForZero,
    /// Gives one call the answer of another one, while very many are under way.
    MixesAnswers,
    ReversesBatches,
    /// Loads no script for a batch.
    LoadsNothingForBatches,
    /// Takes a script that it has sent for known for ever.
    BelievesTheServerKeepsScripts,
    /// A call has one of a few places until its future is done.
    HoldsUp,
    /// A dropped call is sent again in the background.
    RepeatsDroppedCalls,
}

type Answer = Result<Reply, ConnectionError>;

/// Runs the call in the background if it is dropped before it is done.
struct Repeat<'a> {
    connection: &'a WrongConnection,
    request: Option<Request>,
}

impl Drop for Repeat<'_> {
    fn drop(&mut self) {
        let Some(request) = self.request.take() else { return };
        let inner: Arc<RedisConnection> = self.connection.inner.clone();
        self.connection.shared.executor.spawn(Box::pin(async move {
            let _ = inner.run(Call::new(request.script, &request.keys(), &request.args())).await;
        }));
    }
}

impl WrongConnection {
    pub(super) async fn wrong_call(&self, wrong: WrongCall, call: Call<'_>) -> Answer {
        let number = self.calls.fetch_add(1, SeqCst);
        match wrong {
            WrongCall::SendsTwice => match self.inner.run(call).await {
                Err(ConnectionError::Unknown(_)) => self.inner.run(call).await,
                answer => answer,
            },
            WrongCall::DeniesWhatItSent => self.inner.run(call).await.map_err(|error| match error {
                ConnectionError::Unknown(why) => ConnectionError::Unreachable(why),
                other => other,
            }),
            WrongCall::Reorders => {
                if number.is_multiple_of(2) {
                    self.shared.executor.sleep(std::time::Duration::from_millis(1)).await;
                }
                self.inner.run(call).await
            }
            WrongCall::IsLate => {
                let answer = self.inner.run(call).await;
                if matches!(&answer, Err(ConnectionError::Unknown(why)) if why.starts_with("nothing within")) {
                    self.shared.executor.sleep(std::time::Duration::from_secs(10)).await;
                }
                answer
            }
            WrongCall::NeverReconnects => {
                // The inner one may have reconnected before a call could fail.
                if self.inner.reconnects() > 0 {
                    return Err(ConnectionError::Unreachable("on purpose".to_owned()));
                }
                self.inner.run(call).await
            }
            WrongCall::HidesTheCode => self.inner.run(call).await.map_err(|error| match error {
                ConnectionError::Refused { message, .. } => {
                    ConnectionError::Refused { code: "ERR".to_owned(), message }
                }
                other => other,
            }),
            WrongCall::TakesNilForZero => match self.inner.run(call).await {
                Ok(Reply::Nil) => Ok(Reply::Integer(0)),
                answer => answer,
            },
            WrongCall::MixesAnswers => {
                let under_way = self.under_way.fetch_add(1, SeqCst);
                let answer = self.inner.run(call).await;
                self.under_way.fetch_sub(1, SeqCst);
                let Ok(reply) = answer else { return answer };
                let other = lock(&self.last).replace(reply.clone());
                Ok(if under_way >= 150 { other.unwrap_or(reply) } else { reply })
            }
            WrongCall::RepeatsDroppedCalls => {
                let mut repeat = Repeat { connection: self, request: Some(Request::new(&call)) };
                let answer = self.inner.run(call).await;
                repeat.request = None;
                answer
            }
            WrongCall::HoldsUp => match tokio::time::timeout(super::TIMEOUT / 2, self.places.acquire()).await {
                Ok(_place) => self.inner.run(call).await,
                Err(_) => Err(ConnectionError::Unreachable("on purpose".to_owned())),
            },
            WrongCall::LoadsNothingForBatches => {
                lock(&self.shared.scripts).push(call.script.sha1());
                self.inner.run(call).await
            }
            WrongCall::BelievesTheServerKeepsScripts => {
                self.known(&[call])?;
                self.inner.run(call).await
            }
            WrongCall::ReversesBatches => self.inner.run(call).await,
        }
    }

    pub(super) async fn wrong_batch(&self, wrong: WrongCall, calls: &[Call<'_>]) -> Vec<Answer> {
        match wrong {
            WrongCall::ReversesBatches => {
                let mut answers = self.inner.run_batch(calls).await;
                answers.reverse();
                answers
            }
            WrongCall::LoadsNothingForBatches => {
                let known = lock(&self.shared.scripts).clone();
                if calls.iter().any(|call| !known.contains(&call.script.sha1())) {
                    return calls
                        .iter()
                        .map(|_| Err(ConnectionError::refused("NOSCRIPT No matching script.")))
                        .collect();
                }
                self.inner.run_batch(calls).await
            }
            WrongCall::BelievesTheServerKeepsScripts => {
                if let Err(refused) = self.known(calls) {
                    return calls.iter().map(|_| Err(refused.clone())).collect();
                }
                self.inner.run_batch(calls).await
            }
            // A batch of one goes wrong as a call does.
            _ if calls.len() == 1 => vec![self.wrong_call(wrong, calls[0]).await],
            _ => self.inner.run_batch(calls).await,
        }
    }

    /// Fails if the server has lost a script that any of these connections has sent before.
    fn known(&self, calls: &[Call<'_>]) -> Result<(), ConnectionError> {
        let mut sent = lock(&self.shared.scripts);
        for call in calls {
            // Others are lost with those of the check that is meant.
            if call.script.name() == "testing_count" && sent.contains(&call.script.sha1()) {
                let exists = admin(&self.shared.server, &["SCRIPT", "EXISTS", call.script.sha1()]);
                if exists == redis::Value::Array(vec![redis::Value::Int(0)]) {
                    return Err(ConnectionError::refused("NOSCRIPT No matching script."));
                }
            }
        }
        sent.extend(calls.iter().map(|call| call.script.sha1()));
        Ok(())
    }
}
