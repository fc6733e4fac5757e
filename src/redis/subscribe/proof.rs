//! Finds out whether a subscription is on the server that executes the commands.
//!
//! Behind one address there may be several servers, one after the other or at the same time. A demoted primary may
//! still grant, and tell its subscribers. So a message counts only after the commands' server has confirmed this very
//! subscription: each socket also subscribes to a probe, which is a channel that no other client knows, and the
//! commands' server is asked for the number of its subscribers. An address would prove nothing, and not every user may
//! read the id of a server.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use ::redis::{Cmd, Value};
use futures::FutureExt;
use futures::future::{BoxFuture, Either, MaybeDone, maybe_done, select};
use uuid::Uuid;

use super::super::convert;
use super::super::failure::Failure;
use super::super::link::Link;
use super::super::link::state::Up;
use crate::connection::{ConnectionError, Reply};
use crate::mutant::{self, Mutant};
use crate::runtime::Executor;

/// The shortest pause before the second question. Servers that are near have answered the first one by then.
const SHORTEST_PAUSE: Duration = Duration::from_millis(2);

/// What the server of the connection for commands says about a subscription.
pub(super) enum Proof {
    /// It has the subscription. The generation is that of the connection that asked.
    Here(u64),
    /// It does not have the subscription. The generation is that of the connection that asked.
    Elsewhere(u64),
    /// It refused to answer.
    Refused(ConnectionError),
    /// It did not answer. The connection is given up, and the next one will be asked.
    Unanswered,
}

/// A new name of a probe. Each socket has another one, because the server may be late to notice the end of the former
/// socket. The name starts with the channel, so that a right to `<channel>*` covers both.
#[expect(clippy::disallowed_methods, reason = "this is an adapter, and nothing is decided by it but who is who")]
pub(super) fn probe(channel: &str) -> String {
    format!("{channel}:{}", Uuid::new_v4().simple())
}

/// A question that leaves right after the subscription, over the connection for commands. Most often it also arrives
/// later, and is then answered as early as the subscription. If the server is far away, it is asked a second time a
/// little later, because it may overtake the subscription. If both arrive before the subscription, [`prove`] follows.
pub(super) struct Early {
    link: Arc<Link>,
    probe: String,
    /// The question, once there is a connection for commands.
    asked: Option<MaybeDone<BoxFuture<'static, Proof>>>,
}

impl Early {
    pub(super) fn new(link: &Arc<Link>, probe: &str) -> Self {
        Self { link: Arc::clone(link), probe: probe.to_owned(), asked: None }
    }

    /// Asks as soon as there is a connection for commands, or goes on waiting for the answer.
    pub(super) async fn ask(&mut self) {
        let asked = match &mut self.asked {
            Some(asked) => asked,
            none => {
                // A connection that is closed answers nothing.
                let Ok(up) = self.link.ready().await else { return };
                let (link, probe) = (Arc::clone(&self.link), self.probe.clone());
                none.insert(maybe_done(async move { prove_twice(&link, &up, &probe).await }.boxed()))
            }
        };
        asked.await;
    }

    /// The generation of the connection that has proven the subscription, if that is still the one for commands.
    /// Does not wait for a connection for commands.
    pub(super) async fn proven(self) -> Option<u64> {
        let mut asked = self.asked?;
        (&mut asked).await;
        match Pin::new(&mut asked).take_output()? {
            Proof::Here(generation) if self.link.is_current(generation) => Some(generation),
            _ => None,
        }
    }
}

/// Asks, and once more an eighth of a round trip later if there is no answer yet. The first answer that proves the
/// subscription counts.
async fn prove_twice(link: &Link, up: &Up, probe: &str) -> Proof {
    // Before the first login is answered, the round trip is unknown.
    let (first, pause) = (pin!(prove(link, up, probe)), (link.round_trip() / 8).max(SHORTEST_PAUSE));
    let first = match select(first, link.executor.sleep(pause)).await {
        Either::Left((proof, _)) => return proof,
        Either::Right(((), first)) => first,
    };
    match select(first, pin!(prove(link, up, probe))).await {
        Either::Left((proof @ Proof::Here(_), _)) | Either::Right((proof, _)) => proof,
        Either::Left((_, second)) => second.await,
    }
}

/// Asks over the connection for commands whether its server has the subscription.
pub(super) async fn prove(link: &Link, up: &Up, probe: &str) -> Proof {
    if mutant::on(Mutant::OneLinkRedialled) {
        return Proof::Here(up.generation);
    }
    let mut connection = up.connection.clone();
    let command = how_many(probe);
    // With the timeout of any other call, because after a reconnect thousands of calls may be queued before this one.
    match link.within(link.timeout, connection.send_packed_command(&command)).await {
        Some(Ok(value)) => judge(link, up, value),
        Some(Err(error)) => unanswered(link, up, error.to_string()),
        None => unanswered(link, up, "the connection gave no answer".to_owned()),
    }
}

fn how_many(probe: &str) -> Cmd {
    let mut command = ::redis::cmd("PUBSUB");
    command.arg("NUMSUB").arg(probe);
    command
}

fn judge(link: &Link, up: &Up, value: Value) -> Proof {
    match convert::reply(value) {
        Ok(Reply::Array(items)) => match &items[..] {
            [_, Reply::Integer(1..)] => Proof::Here(up.generation),
            _ => Proof::Elsewhere(up.generation),
        },
        Ok(_) => Proof::Refused(ConnectionError::refused("ERR unexpected reply to PUBSUB NUMSUB")),
        Err(refusal) => {
            if convert::is_of_a_replica(&refusal) {
                link.suspect(up.generation, Failure::Refused(refusal.clone()));
            }
            Proof::Refused(refusal)
        }
    }
}

fn unanswered(link: &Link, up: &Up, why: String) -> Proof {
    link.suspect(up.generation, Failure::Io(why));
    Proof::Unanswered
}
