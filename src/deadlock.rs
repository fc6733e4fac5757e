//! Deadlocks: programs that wait for each other's holds.

use std::collections::BTreeSet;
use std::fmt;
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use uuid::Uuid;

use crate::context::Context;
use crate::error::Result;
use crate::hold::owner::HoldSource;
use crate::inspect::{Access, Labels};
use crate::names::look::look_at;
use crate::names::{NameInUse, Names};
use crate::runtime::Executor;
use crate::tuning::MOST_QUEUED;

use graph::{Edge, Looked, cycles};

mod graph;

/// A search for deadlocks, returned by [`Client::deadlocks`](crate::Client::deadlocks). Nothing is sent before it is
/// awaited, or before [`block`](Self::block) is called in blocking code.
///
/// It lists all names that somebody waits for, as [`Names`] does, and looks at each of them in one moment. If clients
/// wait for each other, it looks at these names again, and counts only holds and waiters that were there both times.
/// All of them were therefore there at the same time, between the two looks.
///
/// # Guarantees
/// A deadlock is found if it exists during the whole search, its programs use one client each, and none of them is
/// behind more than 1,000 others in a queue.
///
/// # Not guaranteed
/// - The server knows clients, and not their tasks. A client is taken to wait until all that it waits for is there. Two
///   clients are therefore reported also if one task of each holds what a task of the other waits for, and both go on.
///   Such a report goes away by itself: set [`lasting`](Self::lasting) to more than your work takes.
/// - A client that waits for a name of which it holds a part does not count as waiting for it, because another of its
///   tasks may be about to release that part. A client that waits for its own hold is therefore not reported.
/// - What clients wait for elsewhere is not known: other Redis servers, other prefixes, and a
///   [`RedLock`](crate::RedLock) on other masters.
///
/// # Errors
/// Those of [`Names`] and of [`Client::look`](crate::Client::look). An error of a single name is the error of the
/// search.
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
        let suspects: BTreeSet<NameInUse> =
            cycles(&first).into_iter().flatten().map(|Edge { at, .. }| first[at].name.clone()).collect();
        if suspects.is_empty() {
            return Ok(Vec::new());
        }
        if !self.lasting.is_zero() {
            context.executor.sleep(self.lasting).await;
        }
        let mut second = looks(context, OPERATION, suspects.into_iter().collect()).await?;
        for look in &mut second {
            let before = first.iter().find(|before| before.name == look.name);
            before.map(|before| look.keep_what_was_in(before)).unwrap_or_default();
        }
        let found = cycles(&second);
        let clients: BTreeSet<Uuid> = found.iter().flatten().map(|edge| edge.waiter).collect();
        let labels = Labels::read(context, clients.into_iter().collect()).await;
        Ok(found.into_iter().filter_map(|cycle| Deadlock::of(cycle, &second, &labels)).collect())
    }
}

async fn looks(context: &Context, operation: &'static str, names: Vec<NameInUse>) -> Result<Vec<Looked>> {
    let seen = look_at(context, operation, &names, MOST_QUEUED).await;
    names.into_iter().zip(seen).map(|(name, seen)| Ok(Looked::new(name, seen?))).collect()
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
    /// A way out.
    pub way_out: WayOut,
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
    /// How it wants that name.
    pub waits_for: Access,
    /// Whether the next client holds the name. Otherwise the next client waits for it too, and is before this one in
    /// the queue.
    pub is_held: bool,
}

/// The hold that ends a [`Deadlock`] if an operator takes it, with `force_release` of the primitive. The client that
/// has it is told, and then fails to write what the [token](crate::Token) protects. Of the holds in the deadlock it is
/// the one with the largest token: the one that was granted last, if all names are on one server. Permits of a
/// semaphore have no token, so they are taken only if there is nothing else.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct WayOut {
    /// What to take.
    pub name: NameInUse,
    /// From which client.
    pub client: Uuid,
}

impl Deadlock {
    fn of(cycle: Vec<Edge>, looked: &[Looked], labels: &Labels) -> Option<Self> {
        let (_, edge) = cycle.iter().filter_map(|edge| Some((edge.hold?, edge))).max_by_key(|(token, _)| *token)?;
        let way_out = WayOut { name: looked.get(edge.at)?.name.clone(), client: edge.blocker };
        let wait = |edge: &Edge| {
            Some(DeadlockedWait {
                client: edge.waiter,
                label: labels.get(Some(edge.waiter)),
                name: looked.get(edge.at)?.name.clone(),
                waits_for: Access::of(edge.claim),
                is_held: edge.hold.is_some(),
            })
        };
        Some(Self { waits: cycle.iter().filter_map(wait).collect(), way_out })
    }
}

/// Shows each wait, and the way out: `"web-1" waits for lock "b", which "web-2" holds; ...`.
impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let next = self.waits.iter().cycle().skip(1);
        for (wait, next) in self.waits.iter().zip(next) {
            let how = if wait.is_held { "holds" } else { "waits for before it" };
            write!(f, "{} waits for {}, which {} {how}; ", wait.shown(), wait.name, next.shown())?;
        }
        let victim = self.waits.iter().find(|wait| wait.client == self.way_out.client);
        let victim = victim.map_or_else(|| self.way_out.client.to_string(), DeadlockedWait::shown);
        write!(f, "it ends if {victim} loses {}", self.way_out.name)
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
