//! How operators take permits, readers and writers from their holders.

use uuid::Uuid;

use crate::context::Context;
use crate::error::Result;
use crate::handle::Primitive;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::message::Message;
use crate::protocol::token::Token;
use crate::tuning::BATCH;

/// Whose holds an operator takes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Whose {
    /// Those of all clients.
    Everybody,
    /// Those of the client with this [id](crate::Client::id).
    Client(Uuid),
}

impl Whose {
    /// The client, or `None` for all.
    pub(crate) fn client(self) -> Option<Uuid> {
        match self {
            Self::Everybody => None,
            Self::Client(client) => Some(client),
        }
    }

    /// Whether it is about this client. `None`: bowline did not write the hold.
    pub(crate) fn means(self, client: Option<Uuid>) -> bool {
        self.client().is_none_or(|meant| client == Some(meant))
    }
}

/// What an operator has taken away, returned by `force_release`. If an answer was lost, the call was sent again, and
/// the holds that the first copy took are not in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Revoked {
    /// The number of holds that were taken.
    pub holds: u64,
    /// If a writer was among them: a token that is larger than the writer's and smaller than that of the next one. Give
    /// it to the protected resource, so that the resource rejects the old writer from now on.
    pub token: Option<Token>,
}

/// Takes a lock from the hold with this attempt id. `None`: that hold has ended.
pub(crate) async fn take_from(primitive: &Primitive, operation: &'static str, holder: &str) -> Result<Option<Token>> {
    let context = primitive.context();
    let released = primitive.ask(operation, |scripts, keys| scripts.force_release_lock(keys, holder)).await?;
    context.observe(released.now);
    if released.call_again {
        context.promote_later(primitive.keys(operation)?);
    }
    // Also if another copy of the call has ended the hold.
    has_ended(context, holder);
    Ok(released.token)
}

/// The hold with this attempt id may not be used any more. The message of the server takes another way, if the hold is
/// of this client.
pub(crate) fn has_ended(context: &Context, holder: &str) {
    context.deliver(AttemptId::parse(holder).map(|id| Message::Revoked { id }));
}

/// Takes the holds that the server names now: not those that are granted meanwhile.
pub(crate) async fn force_release(primitive: &Primitive, limit: u32, whose: Whose) -> Result<Revoked> {
    const OPERATION: &str = "force_release";
    let is_meant = |id: &str| whose.means(AttemptId::client_of(id));
    let inspected = primitive.ask(OPERATION, |scripts, keys| scripts.inspect(keys, limit, 0)).await?;
    let ids: Vec<String> = inspected.holds.into_iter().map(|hold| hold.attempt_id).filter(|id| is_meant(id)).collect();
    let context = primitive.context();
    let mut revoked = Revoked { holds: 0, token: None };
    for ids in ids.chunks(BATCH) {
        // The call names the holders, so that a second copy of it takes nothing from others.
        let taken = primitive.ask(OPERATION, |scripts, keys| scripts.force_release_permits(keys, limit, ids)).await?;
        context.observe(taken.now);
        revoked.holds += taken.holds;
        revoked.token = revoked.token.max(taken.token);
        if taken.call_again {
            context.promote_later(primitive.keys(OPERATION)?);
        }
    }
    Ok(revoked)
}
