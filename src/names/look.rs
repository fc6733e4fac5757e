//! Who holds and who waits for names of any kind.

use std::time::Duration;

use uuid::Uuid;

use super::NameInUse;
use crate::context::Context;
use crate::error::{Error, ErrorKind, Result};
use crate::inspect::{Access, Labels, WaiterState, clients_of};
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::dispatch::Failure;
use crate::protocol::key::Keys;
use crate::protocol::kind::Kind;
use crate::protocol::limits::MAX_LISTED;
use crate::protocol::names::PrimitiveKind;
use crate::protocol::seen::{Seen, SeenHold};
use crate::protocol::token::Token;
use crate::tuning::BATCH;

/// Who holds a name and who waits for it, as read by [`Client::look`](crate::Client::look).
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct NameState {
    /// The name.
    pub name: NameInUse,
    /// Who holds it: at most 1,000, those whose leases end first. Nobody holds a latch, a barrier or a rate limiter.
    pub holds: Vec<HoldState>,
    /// The number of waiters, counted as by `inspect` of that primitive.
    pub waiters: u64,
    /// Those of the first 100 waiters whose tickets have not expired, in their order. Those of a latch or a barrier
    /// have none.
    pub queue: Vec<WaiterState>,
}

/// A hold of any primitive, as read by [`Client::look`](crate::Client::look).
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct HoldState {
    /// The [`Client::id`](crate::Client::id) of the holder's client, or `None` if bowline did not write the hold.
    pub client: Option<Uuid>,
    /// The [label](crate::ConfigBuilder::label) of that client, if it has one and it could be read.
    pub label: Option<String>,
    /// What it holds.
    pub access: Access,
    /// The fencing token. Permits of a semaphore have none.
    pub token: Option<Token>,
    /// The rest of the lease, by the server's clock.
    #[cfg_attr(feature = "serde", serde(with = "crate::duration_text"))]
    pub remaining: Duration,
}

/// Looks at each name in one moment. The looks at different names are not of the same moment.
pub(crate) async fn look(context: &Context, names: &[NameInUse]) -> Vec<Result<NameState>> {
    let seen = look_at(context, "look", names, MAX_LISTED).await;
    let all = || seen.iter().flatten();
    let ids = all().flat_map(|seen| seen.holds.iter().map(|hold| &*hold.id));
    let queue: Vec<_> = all().flat_map(|seen| seen.queue.iter().copied()).collect();
    let labels = Labels::read(context, clients_of(ids, &queue)).await;
    let state = |(name, seen): (&NameInUse, Result<Seen>)| seen.map(|seen| NameState::of(name.clone(), seen, &labels));
    names.iter().zip(seen).map(state).collect()
}

impl NameState {
    fn of(name: NameInUse, Seen { holds, waiters, queue, .. }: Seen, labels: &Labels) -> Self {
        let mut holds: Vec<_> = holds.into_iter().map(|hold| HoldState::of(hold, labels)).collect();
        if name.kind == PrimitiveKind::RedLock {
            // The vote comes first. The turn of the same client is no hold of its own.
            holds.dedup_by_key(|hold| hold.client);
        }
        let queue = match name.kind {
            PrimitiveKind::Barrier | PrimitiveKind::DoubleBarrier => labels.parties(queue),
            _ => labels.queue(queue),
        };
        Self { name, holds, waiters, queue }
    }
}

impl HoldState {
    pub(super) fn of(SeenHold { id, token, left: remaining, claim }: SeenHold, labels: &Labels) -> Self {
        let client = AttemptId::client_of(&id);
        let token = Some(token).filter(|token| *token != Token::NONE);
        let remaining = remaining.unwrap_or_default();
        Self { client, label: labels.get(client), access: Access::of(claim), token, remaining }
    }
}

/// What is stored of these names, with up to `listed` tickets of each.
pub(crate) async fn look_at(
    context: &Context,
    operation: &'static str,
    names: &[NameInUse],
    listed: u32,
) -> Vec<Result<Seen>> {
    let mut looked = Vec::with_capacity(names.len());
    for names in names.chunks(BATCH) {
        let keys: Vec<Result<Vec<Keys>>> = names.iter().map(|name| keys_of(context, operation, name)).collect();
        let all: Vec<&Keys> = keys.iter().flatten().flatten().collect();
        let mut seen = ask_all(context, operation, &all, listed).await.into_iter();
        for keys in keys {
            looked.push(keys.and_then(|keys| {
                let parts: Vec<_> = seen.by_ref().take(keys.len()).collect();
                parts.into_iter().try_fold(Seen::default(), |whole, part| Ok(whole.and(part?)))
            }));
        }
    }
    looked
}

/// What is asked about a name: nothing if it can neither be held nor be waited for.
fn keys_of(context: &Context, operation: &'static str, NameInUse { kind, name }: &NameInUse) -> Result<Vec<Keys>> {
    const ONCE: Kind = Kind::Once { first: 0, period: 1, retries: false };
    let kinds: &[Kind] = match kind {
        PrimitiveKind::Lock => &[Kind::Lock],
        PrimitiveKind::RwLock => &[Kind::ReadWrite],
        PrimitiveKind::Semaphore => &[Kind::Semaphore { limit: 1 }],
        PrimitiveKind::Latch => &[Kind::Latch],
        PrimitiveKind::Barrier => &[Kind::Barrier { parties: 1, keep: 0 }],
        // Who waits to enter has come inside before.
        PrimitiveKind::DoubleBarrier => &[Kind::Inside { parties: 1, keep: 0 }],
        PrimitiveKind::Once => &[ONCE],
        PrimitiveKind::Election => &[Kind::Election],
        PrimitiveKind::RateLimiter => &[],
        // The votes are held, and the turn is waited for.
        PrimitiveKind::RedLock => &[Kind::Vote, Kind::Turn],
    };
    let keys = kinds.iter().map(|kind| Keys::new(&context.config.prefix, *kind, name));
    keys.map(|keys| keys.map_err(|error| error.during(operation))).collect()
}

/// The keys of a name whose main key changes with each hold.
pub(super) fn key_of_holds(context: &Context, operation: &'static str, name: &NameInUse) -> Result<Keys> {
    let refused = match name.kind {
        PrimitiveKind::Lock
        | PrimitiveKind::RwLock
        | PrimitiveKind::Semaphore
        | PrimitiveKind::Once
        | PrimitiveKind::Election => None,
        PrimitiveKind::RedLock => Some((ErrorKind::Unsupported, "no single server knows who holds it")),
        PrimitiveKind::Latch | PrimitiveKind::Barrier | PrimitiveKind::DoubleBarrier | PrimitiveKind::RateLimiter => {
            Some((ErrorKind::InvalidInput, "nobody can hold it"))
        }
    };
    if let Some((kind, reason)) = refused {
        return Err(Error::because(kind, operation, format!("{name}: {reason}")).with_name(&name.name));
    }
    let keys = keys_of(context, operation, name)?.into_iter().next();
    keys.ok_or_else(|| Error::new(ErrorKind::InvalidInput, operation).with_name(&name.name))
}

/// Repeats the calls that fail until they are answered, but no longer than the client's retry timeout.
async fn ask_all(context: &Context, operation: &'static str, all: &[&Keys], listed: u32) -> Vec<Result<Seen>> {
    let Some(first) = all.first() else { return Vec::new() };
    let mut answers: Vec<Option<Result<Seen>>> = all.iter().map(|_| None).collect();
    let mut retry = context.retry(operation, first);
    // What every name gets that has no answer, when no time is left.
    let failed = loop {
        if context.engine.is_closed() {
            break context.closed(operation, first);
        }
        let sent = match retry.begin().await {
            Ok(sent) => sent,
            Err(error) => break error,
        };
        let left: Vec<usize> = (0..all.len()).filter(|at| answers[*at].is_none()).collect();
        let keys: Vec<&Keys> = left.iter().map(|at| all[*at]).collect();
        let within = retry.limit(sent).unwrap_or(context.config.command_timeout);
        let mut again = None;
        for (at, answer) in left.into_iter().zip(context.scripts().seen_each(&keys, listed, within).await) {
            match answer {
                Err(failure) if failure.kind().is_retryable() => again = Some(failure),
                answer => {
                    let told = |failure: Failure| failure.into_error(operation).with_name(&all[at].name);
                    answers[at] = Some(answer.map_err(told));
                }
            }
        }
        let Some(failure) = again else { return answers.into_iter().flatten().collect() };
        if let Err(error) = retry.again_after(failure).await {
            break error;
        }
    };
    let told =
        |(keys, answer): (&&Keys, Option<_>)| answer.unwrap_or_else(|| Err(failed.clone().with_name(&keys.name)));
    all.iter().zip(answers).map(told).collect()
}
