//! Deadlocks: programs that wait for each other's holds.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use uuid::Uuid;

use crate::context::Context;
use crate::error::{ErrorKind, Result};
use crate::hold::owner::HoldSource;
use crate::inspect::{Access, Labels};
use crate::names::look::look_at;
use crate::names::{NameInUse, Names};
use crate::protocol::names::PrimitiveKind;
use crate::protocol::token::Token;
use crate::runtime::Executor;
use crate::tuning::{MOST_DEADLOCKS, MOST_QUEUED};

use graph::{Edge, Looked, cycles};

mod graph;

/// A search for deadlocks, returned by [`Client::deadlocks`](crate::Client::deadlocks). Nothing is sent before it is
/// awaited, or before [`block`](Self::block) is called in blocking code.
///
/// It lists all names that somebody waits for, as [`Names`] does, and looks at each of them in one moment. If clients
/// wait for each other, it looks at these names again, and counts only holds and waiters that both looks have found.
/// All of these existed at the same time, between the two looks.
///
/// # Guarantees
/// It finds a deadlock of clients that lasts for the whole search, if each client holds nothing of the name that it
/// waits for, or waits to [upgrade](crate::UpgradableGuard::upgrade) there. No name in it may have more than 1,000
/// holds or 1,000 waiters. Of deadlocks that share clients, at least one is returned, and of many at most 100. When
/// these are ended, ask again: others may be left.
///
/// # Not guaranteed
/// - The search assumes that a client goes on only when it has all that it waits for. The server knows clients, and not
///   their tasks. So it also reports two clients of which one task holds what a task of the other one waits for,
///   although both tasks may go on.
/// - A deadlock that ends by itself is reported, too: one with a wait that has a timeout, a hold with a fixed lease, a
///   hold that was [kept](crate::LockGuard::keep), or a client that was killed. Set [`lasting`](Self::lasting) to more
///   than the longest lease, and to more than your work takes, to see only those that last.
/// - A client that waits for a name of which it holds a part does not count as waiting for it, unless it upgrades,
///   because another of its
///   tasks may be about to release that part. Two clients that each have one of two permits, and each want one more,
///   are therefore not reported.
/// - What clients wait for elsewhere is not known: other Redis servers, other prefixes, and a
///   [`RedLock`](crate::RedLock) on other masters.
/// - A name whose keys another program has written is left out.
///
/// # Errors
/// Those of [`Names`] and of [`Client::look`](crate::Client::look). Any other error of a single name is the error of
/// the search.
///
/// # Cancel safety
/// Reads only. Dropping the future changes nothing in Redis.
#[derive(Clone, Debug)]
#[must_use = "a search does nothing unless awaited"]
pub struct Deadlocks {
    names: Names,
    source: Arc<HoldSource>,
    lasting: Duration,
}

impl Deadlocks {
    pub(crate) fn new(source: &Arc<HoldSource>) -> Self {
        Self { names: Names::new(source).waited_for(), source: source.clone(), lasting: Duration::ZERO }
    }

    /// Searches only among names that begin with this text.
    pub fn starting_with(self, begins: &str) -> Self {
        Self { names: self.names.starting_with(begins), ..self }
    }

    /// How long to wait between the two looks, if clients wait for each other. By default, the second look follows the
    /// first one at once.
    pub fn lasting(self, time: Duration) -> Self {
        Self { lasting: time, ..self }
    }

    pub(crate) fn executor(&self) -> &Arc<dyn Executor> {
        &self.source.context.executor
    }

    async fn search(mut self) -> Result<Vec<Deadlock>> {
        const OPERATION: &str = "deadlocks";
        let names = self.names.all_for(OPERATION).await?;
        let context = &self.source.context;
        let first = looks(context, OPERATION, names).await?;
        let suspects: BTreeSet<NameInUse> = cycles(&first, MOST_DEADLOCKS)
            .into_iter()
            .flatten()
            .filter_map(|Edge { at, .. }| Some(first.get(at)?.name.clone()))
            .collect();
        if suspects.is_empty() {
            return Ok(Vec::new());
        }
        if !self.lasting.is_zero() {
            context.executor.sleep(self.lasting).await;
        }
        let mut second = looks(context, OPERATION, suspects.into_iter().collect()).await?;
        let first: BTreeMap<&NameInUse, &Looked> = first.iter().map(|look| (&look.name, look)).collect();
        for look in &mut second {
            if let Some(before) = first.get(&look.name) {
                look.keep_what_was_in(before);
            }
        }
        let found = cycles(&second, MOST_DEADLOCKS);
        let clients: BTreeSet<Uuid> = found.iter().flatten().map(|edge| edge.waiter).collect();
        let labels = Labels::read(context, clients.into_iter().collect()).await;
        Ok(found.iter().map(|cycle| Deadlock::of(cycle, &second, &labels)).collect())
    }
}

async fn looks(context: &Context, operation: &'static str, names: Vec<NameInUse>) -> Result<Vec<Looked>> {
    let seen = look_at(context, operation, &names, MOST_QUEUED).await;
    let looked = names.into_iter().zip(seen).filter_map(|(name, seen)| match seen {
        // All scripts refuse a key of a wrong type, so no client holds the name or waits for it.
        Err(error) if error.kind() == ErrorKind::WrongType => None,
        seen => Some(seen.map(|seen| Looked::new(name, seen))),
    });
    looked.collect()
}

impl IntoFuture for Deadlocks {
    type Output = Result<Vec<Deadlock>>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.search())
    }
}

/// Clients that wait for each other, as found by [`Client::deadlocks`](crate::Client::deadlocks).
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Deadlock {
    /// Each of the clients, with the name that it waits for. The next client is in its way, and the first client is in
    /// the way of the last one.
    pub waits: Vec<DeadlockedWait>,
    /// A way out. `None` if no operator can take any of the holds: it is the leadership of an election, or a part of a
    /// `RedLock`.
    pub way_out: Option<WayOut>,
}

/// A client in a [`Deadlock`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct DeadlockedWait {
    /// The [`Client::id`](crate::Client::id) of the client.
    pub client: Uuid,
    /// The [label](crate::ConfigBuilder::label) of the client, if it has one and it could be read.
    pub label: Option<String>,
    /// What it waits for.
    pub name: NameInUse,
    /// The access to that name for which it waits.
    pub waits_for: Access,
    /// Whether the next client holds the name. Otherwise the next client waits for it too, and is before this one in
    /// the queue.
    pub is_held: bool,
}

/// The hold that ends a [`Deadlock`] if an operator takes it, with `force_release` of the primitive. Its client is told
/// that it has lost the hold. Of the holds in the deadlock it is the one with the largest token: the one that was
/// granted last, if all names are on one server. Permits of a semaphore have no token, so they are chosen only if there
/// is nothing else.
///
/// The deadlock may have ended since. `force_release` of a lock takes it from the client that holds it then, so look at
/// the name again before you call it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct WayOut {
    /// The name of the hold.
    pub name: NameInUse,
    /// The client that has the hold.
    pub client: Uuid,
    /// The fencing token of the hold. Permits of a semaphore have none.
    pub token: Option<Token>,
}

impl Deadlock {
    fn of(cycle: &[Edge], looked: &[Looked], labels: &Labels) -> Self {
        let name = |edge: &Edge| looked.get(edge.at).map(|look| look.name.clone());
        let way_out = cycle.iter().filter_map(|edge| {
            let (token, name) = (edge.hold?, name(edge)?);
            let can_be_taken =
                [PrimitiveKind::Lock, PrimitiveKind::RwLock, PrimitiveKind::Semaphore].contains(&name.kind);
            let token = Some(token).filter(|token| *token != Token::NONE);
            can_be_taken.then_some(WayOut { name, client: edge.blocker, token })
        });
        let wait = |edge: &Edge| {
            Some(DeadlockedWait {
                client: edge.waiter,
                label: labels.get(Some(edge.waiter)),
                name: name(edge)?,
                waits_for: Access::of(edge.claim),
                is_held: edge.hold.is_some(),
            })
        };
        Self { way_out: way_out.max_by_key(|way_out| way_out.token), waits: cycle.iter().filter_map(wait).collect() }
    }
}

/// Shows each wait, and the way out: `"web-1" waits for lock "b", which "web-2" holds; ...`.
impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let next = self.waits.iter().cycle().skip(1);
        for (n, (wait, next)) in self.waits.iter().zip(next).enumerate() {
            let how = if wait.is_held { "holds" } else { "waits for before it" };
            let between = if n == 0 { "" } else { "; " };
            write!(f, "{between}{} waits for {}, which {} {how}", wait.shown(), wait.name, next.shown())?;
        }
        let Some(WayOut { name, client, .. }) = &self.way_out else { return Ok(()) };
        let victim = self.waits.iter().find(|wait| wait.client == *client);
        let victim = victim.map_or_else(|| format!("client {client}"), DeadlockedWait::shown);
        write!(f, "; it ends if {victim} loses {name}")
    }
}

impl DeadlockedWait {
    fn shown(&self) -> String {
        match &self.label {
            Some(label) => format!("{label:?}"),
            None => format!("client {}", self.client),
        }
    }
}
