//! The names that are in use, and what is stored of them.
//!
//! Names are kept nowhere in one place, because each acquisition would then have to write there. They are found by
//! `SCAN` on every server, in a script that returns the names among a page of keys. A cursor is of use on one server
//! only, so each page says which server has answered ([`tour`]).

use std::collections::BTreeSet;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;

use crate::context::Context;
use crate::error::{Error, ErrorKind, Result};
use crate::hold::owner::HoldSource;
use crate::protocol::key::{Named, decode, encode_start};
use crate::protocol::names::{Page, PageRead, PrimitiveKind, Wanted};
use crate::protocol::slot::SLOTS;
use crate::tuning::{KEYS_IN_A_PAGE, MOST_CHANGES};

use tour::Tour;

pub(crate) mod changes;
pub(crate) mod look;
mod tour;

/// A name, and what it is the name of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct NameInUse {
    /// What it is the name of. Primitives of different kinds may have the same name.
    pub kind: PrimitiveKind,
    /// The name.
    pub name: String,
}

impl NameInUse {
    /// A name to [look](crate::Client::look) at.
    pub fn new(kind: PrimitiveKind, name: impl Into<String>) -> Self {
        Self { kind, name: name.into() }
    }
}

/// Shows, for example, `lock "orders:42"`.
impl fmt::Display for NameInUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.kind, self.name)
    }
}

/// The names that are in use, page by page. Returned by [`Client::names`](crate::Client::names).
///
/// A name is in use while it is held or waited for. A latch is in use until its time to live ends, a semaphore also
/// while a [limit](crate::Semaphore::set_limit) is stored, a run while the server remembers it, and a rate limiter
/// until its burst is whole again.
///
/// # Guarantees
/// - A name that is in use from the first page to the last one is listed.
/// - No request writes, and none takes the server longer than it needs to look at 250 keys.
///
/// # Not guaranteed
/// - A name that is in use for a part of that time may or may not be listed.
/// - A name may be on more than one page, and for up to an hour after its last waiter was killed.
/// - In a cluster, names whose slots move to another master meanwhile may be missing. After a failover, those that the
///   new master does not know are missing.
/// - All keys of the server are looked at, also those of other programs. With 1,000,000 keys that is 4,000 requests.
///
/// # Errors
/// - [`Unsupported`](ErrorKind::Unsupported): the connection does not say which servers a cluster has. Clients that
///   bowline connects do, and a connection of the application over a cluster does not.
/// - [`Denied`](ErrorKind::Denied): the user may not run `SCAN` or `INFO`.
/// - [`InvalidInput`](ErrorKind::InvalidInput): [`starting_with`](Self::starting_with) is longer than any name.
/// - [`Unavailable`](ErrorKind::Unavailable) also if servers were replaced by others 16 times during the
///   list, or if one of them hands all calls to another one because its slots move.
/// - The errors of a server that does not answer or refuses, and [`Closed`](ErrorKind::Closed).
///
/// # Cancel safety
/// The future of a page may be dropped. The next call reads the same page again.
#[derive(Clone, Debug)]
#[must_use = "nothing is asked before a page is read"]
pub struct Names {
    source: Arc<HoldSource>,
    kind: Option<PrimitiveKind>,
    /// How the names begin, encoded.
    begins: Result<String>,
    waited_for: bool,
    tour: Tour,
}

impl Names {
    pub(crate) fn new(source: &Arc<HoldSource>) -> Self {
        let tour = Tour::default();
        Self { source: source.clone(), kind: None, begins: Ok(String::new()), waited_for: false, tour }
    }

    /// Lists only names that begin with this text.
    pub fn starting_with(self, begins: &str) -> Self {
        Self { begins: encode_start(begins), ..self }
    }

    /// Lists only names of this kind.
    pub fn of_kind(self, kind: PrimitiveKind) -> Self {
        Self { kind: Some(kind), ..self }
    }

    /// Lists only names with a queue of waiters. A latch and a barrier have no queue.
    pub(crate) fn waited_for(self) -> Self {
        Self { waited_for: true, ..self }
    }

    /// Reads the next page: some names, each once and in their order. `None`: there are no more.
    ///
    /// # Errors
    /// Those of [`Names`]. The next call reads the same page again.
    pub async fn next_page(&mut self) -> Result<Option<Vec<NameInUse>>> {
        self.page_for("names").await
    }

    /// Reads all pages that are left, and returns their names: each once and in their order. They take memory, so read
    /// page by page where there may be very many.
    ///
    /// # Errors
    /// Those of [`Names`].
    pub async fn all(mut self) -> Result<Vec<NameInUse>> {
        self.all_for("names").await
    }

    pub(crate) async fn all_for(&mut self, operation: &'static str) -> Result<Vec<NameInUse>> {
        let mut all = BTreeSet::new();
        while let Some(page) = self.page_for(operation).await? {
            all.extend(page);
        }
        Ok(all.into_iter().collect())
    }

    async fn page_for(&mut self, operation: &'static str) -> Result<Option<Vec<NameInUse>>> {
        let Self { source, kind, begins, waited_for, tour } = self;
        let begins = begins.as_ref().map_err(|error| error.clone().during(operation))?;
        let wanted = Wanted { kind: *kind, waited_for: *waited_for, begins };
        let context = &source.context;
        let prefix = &context.config.prefix;
        let anywhere = Named::listing(prefix, 0);
        let mut retry = context.retry(operation, &anywhere);
        loop {
            if context.engine.is_closed() {
                return Err(context.closed(operation, &anywhere));
            }
            let sent = retry.begin().await?;
            let first = if tour.asks_for_servers() { servers(context, operation)? } else { Vec::new() };
            let next = tour.next(|nth| nth_slots(context, &first, nth)).map_err(|_| {
                let reason = format!("the servers changed {MOST_CHANGES} times, or not all of them answered");
                Error::because(ErrorKind::Unavailable, operation, reason)
            })?;
            let Some((slot, cursor)) = next else { return Ok(None) };
            let at = Named::listing(prefix, slot);
            let page = Page { cursor: &cursor, count: KEYS_IN_A_PAGE };
            let call = pin!(context.scripts().names(&at, prefix, page, wanted));
            match retry.bounded(sent, call).await {
                Ok(page) if tour.has_read(&page) => {
                    let names = names(page);
                    if !names.is_empty() {
                        return Ok(Some(names));
                    }
                    retry.gets_on();
                }
                Ok(_) => retry.gets_on(),
                Err(failure) => retry.again_after(failure).await.map_err(explained)?,
            }
        }
    }
}

/// Says which right is missing: connecting does not find out, because no other operation needs it.
fn explained(error: Error) -> Error {
    if error.kind() == ErrorKind::Denied {
        return error.with_reason("a list of names needs the rights +scan and +info; docs/acl.md lists all rights");
    }
    error
}

/// One slot of each server, with the number of that server.
fn servers(context: &Context, operation: &'static str) -> Result<Vec<(u16, u64)>> {
    let Some(slots) = context.connection.slot_of_each_server() else {
        let reason = "this connection does not say which servers there are";
        return Err(Error::because(ErrorKind::Unsupported, operation, reason));
    };
    if slots.is_empty() {
        let reason = "no server of the cluster is known";
        return Err(Error::because(ErrorKind::Unavailable, operation, reason));
    }
    Ok(slots.into_iter().map(|slot| (slot, number_of(context, slot))).collect())
}

/// The number of the server that has the slot.
fn number_of(context: &Context, slot: u16) -> u64 {
    context.connection.node_of(Named::listing(&context.config.prefix, slot).main())
}

/// The n-th slot of each server that follows its first one, or the first one if there are not as many.
fn nth_slots(context: &Context, first: &[(u16, u64)], nth: usize) -> Vec<(u16, u64)> {
    let slot = |(slot, of): &(u16, u64)| {
        let later = (*slot..SLOTS).filter(|later| nth == 0 || number_of(context, *later) == *of).nth(nth);
        (later.unwrap_or(*slot), *of)
    };
    first.iter().map(slot).collect()
}

/// The names of a page. A key that bowline did not write may have none.
fn names(page: PageRead) -> Vec<NameInUse> {
    let name = |(kind, encoded): (PrimitiveKind, Box<str>)| Some(NameInUse { kind, name: decode(&encoded)? });
    let names: BTreeSet<_> = page.names.into_iter().filter_map(name).collect();
    names.into_iter().collect()
}
