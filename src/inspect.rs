//! What operators read of a primitive: who holds it, who waits, and their labels.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use uuid::Uuid;

use crate::context::Context;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::dispatch::Failure;
use crate::protocol::key::Named;
use crate::protocol::limits::{READ, UPGRADABLE, UPGRADE, WRITE};
use crate::protocol::ticket::{Claim, Ticket};
use crate::protocol::token::Token;
use crate::runtime::timeout;
use crate::tuning::{LABEL_WAIT, MOST_LABELS};

/// The holder of a lock, as read by `inspect` of a [`Lock`](crate::Lock), a [`RwLock`](crate::RwLock) or a
/// [`RedLock`](crate::RedLock).
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct HolderState {
    /// The [`Client::id`](crate::Client::id) of the holder's client, or `None` if bowline did not write the key.
    pub client: Option<Uuid>,
    /// The [label](crate::ConfigBuilder::label) of the holder's client, if it has one and it could be read.
    #[cfg_attr(feature = "serde", serde(default))]
    pub label: Option<String>,
    /// The fencing token of the grant. If the lock was handed off within a [cohort](crate::Acquire::non_fair), this is
    /// the token of the first guard of the cohort's newest hand-off budget, which may still be to come.
    pub token: Token,
    /// The rest of the lease, by the server's clock.
    #[cfg_attr(feature = "serde", serde(with = "crate::duration_text"))]
    pub remaining: Duration,
    /// Whether the client keeps the lock [idle](crate::Acquire::retained). `None` if the holder is another client,
    /// which alone knows, and for anything that is not a [`Lock`](crate::Lock) or the writer of an
    /// [`RwLock`](crate::RwLock).
    #[cfg_attr(feature = "serde", serde(default))]
    pub idle: Option<bool>,
}

/// A ticket in the queue of a primitive, as read by `inspect`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct WaiterState {
    /// The [`Client::id`](crate::Client::id) of the client that waits.
    pub client: Uuid,
    /// The [label](crate::ConfigBuilder::label) of that client, if it has one and it could be read.
    #[cfg_attr(feature = "serde", serde(default))]
    pub label: Option<String>,
    /// What the client waits for.
    pub waits_for: Access,
}

/// What a client holds or waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Access {
    /// All there is to hold: a lock, the leadership of an election, or a run.
    Lock,
    /// To read, under a read-write lock.
    Read,
    /// To read, and perhaps to write later, under a read-write lock.
    UpgradableRead,
    /// That the other readers release, to upgrade under a read-write lock.
    Upgrade,
    /// To write, under a read-write lock.
    Write,
    /// So many permits of a semaphore.
    Permits(u32),
    /// That a latch opens.
    Latch,
    /// That the other parties arrive at a barrier.
    Barrier,
}

impl Access {
    pub(crate) fn of(claim: Claim) -> Self {
        match claim {
            Claim::Tokens(_) => Self::Lock,
            Claim::Units { units: READ, limit: WRITE } => Self::Read,
            Claim::Units { units: UPGRADABLE, limit: WRITE } => Self::UpgradableRead,
            Claim::Units { units: UPGRADE, limit: WRITE } => Self::Upgrade,
            Claim::Units { limit: WRITE, .. } => Self::Write,
            Claim::Units { units, .. } => Self::Permits(units),
            Claim::Nothing => Self::Latch,
        }
    }
}

/// The labels of those who hold and wait.
#[derive(Default)]
pub(crate) struct Labels(BTreeMap<Uuid, String>);

impl Labels {
    /// Reads the labels of these clients, by calls that are not repeated. One call is enough for all that `inspect`
    /// finds of a name. Nothing depends on labels: without all answers within 3 s, there are none.
    pub(crate) async fn read(context: &Context, clients: Vec<Uuid>) -> Self {
        if clients.is_empty() {
            return Self::default();
        }
        let named = Named::labels(&context.config.prefix);
        let reading = async {
            let mut labels = Vec::with_capacity(clients.len());
            for clients in clients.chunks(MOST_LABELS) {
                labels.extend(context.scripts().labels(&named, clients).await?);
            }
            Ok::<_, Failure>(labels)
        };
        let labels = timeout(&context.executor, LABEL_WAIT, reading).await;
        Self::of(clients, labels.and_then(Result::ok).unwrap_or_default())
    }

    pub(crate) fn of(clients: Vec<Uuid>, labels: Vec<String>) -> Self {
        Self(clients.into_iter().zip(labels).filter(|(_, label)| !label.is_empty()).collect())
    }

    pub(crate) fn get(&self, client: Option<Uuid>) -> Option<String> {
        self.0.get(&client?).cloned()
    }

    pub(crate) fn queue(&self, tickets: Vec<Ticket>) -> Vec<WaiterState> {
        let waiter = |Ticket { id: AttemptId { client, .. }, claim, .. }| WaiterState {
            client,
            label: self.get(Some(client)),
            waits_for: Access::of(claim),
        };
        tickets.into_iter().map(waiter).collect()
    }

    /// Those who wait at a barrier. Their tickets say as little as those of a latch.
    pub(crate) fn parties(&self, tickets: Vec<Ticket>) -> Vec<WaiterState> {
        let party = |waiter| WaiterState { waits_for: Access::Barrier, ..waiter };
        self.queue(tickets).into_iter().map(party).collect()
    }
}

/// The clients of these holds and tickets, each once.
pub(crate) fn clients_of<'a>(holds: impl IntoIterator<Item = &'a str>, queue: &[Ticket]) -> Vec<Uuid> {
    let holders = holds.into_iter().filter_map(AttemptId::client_of);
    let clients: BTreeSet<Uuid> = holders.chain(queue.iter().map(|ticket| ticket.id.client)).collect();
    clients.into_iter().collect()
}
