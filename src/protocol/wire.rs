//! The calls of the protocol, for tests and benches that send them themselves. They have the same keys, tickets and
//! argument orders as those of the library.

use std::slice::from_ref;
use std::time::Duration;

use uuid::Uuid;

use super::call::{ScriptCall, Site};
use super::election::{self, Announcement, What};
use super::key::{self, Keys, inbox_prefix};
use super::kind::Kind;
use super::latch::Latch;
use super::once::RunEnd;
use super::permits::Permits;
use super::resource::{AcquireArgs, TicketArgs};
use super::ticket::Ticket;
use super::token::Token;
use super::{client, mutex, once};
use crate::error::Result;

mod ahead;
mod attempt;
mod barrier;
mod change;
mod inspect;
mod labels;
mod limiter;
mod listing;
mod others;
mod renewal;
mod reply;
mod request;
mod shared;
mod shared_counter;
mod shared_lock;
mod timed_permits;
mod votes;

use self::attempt::id;
pub use attempt::{Attempt, Copy};
pub use labels::{read_labels, store_label};
pub use limiter::Limiter;
pub use listing::name_page;
pub use renewal::{renew, renew_short};
pub use reply::in_full;
pub use request::Request;
pub use shared::{PREFIX, client, inbox};
pub use shared_counter::SharedCounter;

/// A resource as its clients address it.
#[derive(Debug)]
pub struct Resource {
    keys: Keys,
    inbox_prefix: String,
    sharded: bool,
    counts_everyone: bool,
    listens: bool,
}

macro_rules! constructors {
    ($($(#[$doc:meta])* $name:ident($($limit:ident)?) = $kind:expr;)+) => {
        $($(#[$doc])*
        pub fn $name(prefix: &str, name: &str $(, $limit: u32)?) -> Result<Self> {
            Self::new(prefix, name, $kind)
        })+
    };
}

impl Resource {
    constructors! {
        /// A lock.
        lock() = Kind::Lock;
        /// A semaphore at a call site with this limit.
        semaphore(limit) = Kind::Semaphore { limit };
        /// A read-write lock.
        read_write() = Kind::ReadWrite;
        /// A latch.
        latch() = Kind::Latch;
        /// The queue of a RedLock.
        turn() = Kind::Turn;
        /// The vote of a master of a RedLock.
        vote() = Kind::Vote;
        /// The leadership of an election.
        election() = Kind::Election;
    }

    /// A wait for a change of an election after the revision `known`, in the term `leads`, or 0.
    pub fn watch(prefix: &str, name: &str, known: u64, leads: u64) -> Result<Self> {
        Self::new(prefix, name, Kind::Watch { known, leads: (leads > 0).then_some(Token::new(leads)) })
    }

    /// The runs of a name, once in each period of so many milliseconds, or only in the period that begins at `first`.
    pub fn runs(prefix: &str, name: &str, (first, period): (u64, u64), retries: bool) -> Result<Self> {
        Self::new(prefix, name, Kind::Once { first, period, retries })
    }

    fn new(prefix: &str, name: &str, kind: Kind) -> Result<Self> {
        let (keys, inbox_prefix) = (Keys::new(prefix, kind, name)?, inbox_prefix(prefix));
        Ok(Self { keys, inbox_prefix, sharded: false, counts_everyone: true, listens: false })
    }

    /// Whether the server can count every subscriber of an inbox. The default is `true`.
    #[must_use]
    pub fn counts_everyone(self, counts_everyone: bool) -> Self {
        Self { counts_everyone, ..self }
    }

    /// Whether messages go through shard channels. The default is `false`.
    #[must_use]
    pub fn sharded(self, sharded: bool) -> Self {
        Self { sharded, ..self }
    }

    /// Whether callers read messages in the replies of releases. The default is `false`.
    #[must_use]
    pub fn listens(self, listens: bool) -> Self {
        Self { listens, ..self }
    }

    /// The main key: it stores the holder, or the count of a latch.
    pub fn main(&self) -> &str {
        self.keys.main()
    }

    /// All keys, in the order of the scripts' `KEYS`.
    pub fn keys(&self) -> Vec<String> {
        self.keys.all().map(str::to_owned).collect()
    }

    /// The common prefix of all clients' inboxes.
    pub fn inbox_prefix(&self) -> &str {
        &self.inbox_prefix
    }

    /// The inbox in which a client receives messages about the resource.
    pub fn inbox(&self, client: Uuid) -> String {
        key::inbox(&self.inbox_prefix, self.slot(), client)
    }

    /// The ticket of an attempt.
    pub fn ticket(&self, attempt: Attempt) -> String {
        self.ticket_of(attempt).text()
    }

    /// Acquires the resource. With `wait`, queues up if it is not free.
    pub fn acquire(&self, attempt: Attempt, wait: bool) -> Request {
        let (Attempt { ticket_ttl, max_waiters, not_after, .. }, ticket) = (attempt, self.ticket_of(attempt));
        let args = AcquireArgs { ticket, ticket_ttl, wait, max_waiters, not_after, tries_channel: false };
        sent(self.keys.kind.with(|resource| resource.acquire(&self.keys, self.site(), args)))
    }

    /// Releases a hold, and queues up `next` if there is one. `None` for a latch, which is never held.
    pub fn release(&self, attempt: Attempt, next: Option<Attempt>) -> Option<Request> {
        let next = next.map(|next| self.with_ttl(next));
        self.keys.kind.with(|resource| {
            let held = resource.held()?;
            Some(match next {
                Some(next) => sent(held.requeue(&self.keys, self.site(), id(attempt), next)),
                None => sent(held.release(&self.keys, self.site(), id(attempt), false)),
            })
        })
    }

    /// Gives an attempt up.
    pub fn cancel(&self, attempt: Attempt, from_tail: bool) -> Request {
        let ticket = self.ticket_of(attempt);
        sent(self.keys.kind.with(|resource| resource.cancel(&self.keys, self.site(), ticket, from_tail)))
    }

    /// Keeps tickets alive, if there is a queue.
    pub fn heartbeat(&self, attempts: &[Attempt]) -> Option<Request> {
        let tickets: Vec<TicketArgs> = attempts.iter().map(|attempt| self.with_ttl(*attempt)).collect();
        self.keys.kind.with(|resource| resource.heartbeat(&self.keys, self.site(), &tickets).map(sent))
    }

    /// Releases the lock of a holder by force.
    pub fn force_release(&self, holder: &str) -> Request {
        sent(mutex::force_release(&self.keys, self.site(), holder))
    }

    /// Takes permits, readers and writers away by force.
    pub fn force_release_permits(&self, holders: &[String]) -> Request {
        sent(self.permits().force_release(&self.keys, self.site(), holders))
    }

    /// Takes all permits that are free.
    pub fn drain(&self, attempt: Attempt) -> Request {
        sent(self.permits().drain(&self.keys, self.site(), (self.ticket_of(attempt), attempt.not_after)))
    }

    /// Gives permits of a hold back, so that `rest` are left.
    pub fn give_back(&self, attempt: Attempt, rest: u32) -> Request {
        let ticket = self.ticket_of(attempt).keeping(rest);
        sent(self.keys.kind.with(|resource| resource.cancel(&self.keys, self.site(), ticket, false)))
    }

    /// Stores the limit.
    pub fn store_limit(&self, not_after: u64) -> Request {
        sent(self.permits().store(&self.keys, self.site(), not_after))
    }

    /// Sets the count of a latch.
    pub fn set(&self, copy: Copy, count: u32, ttl: Duration) -> Request {
        sent(Latch.set(&self.keys, self.site(), copy.call(), count, ttl))
    }

    /// Counts a latch down.
    pub fn count_down(&self, copy: Copy) -> Request {
        sent(Latch.count_down(&self.keys, self.site(), copy.call()))
    }

    /// Deletes a latch.
    pub fn delete(&self, copy: Copy) -> Request {
        sent(Latch.delete(&self.keys, self.site(), copy.call()))
    }

    /// Ends a run. `None` for what has no runs.
    pub fn end_run(&self, attempt: Attempt, is_done: bool, least: Duration) -> Option<Request> {
        let Kind::Once { period, .. } = self.keys.kind else { return None };
        let (lease, period) = (attempt.lease, Duration::from_millis(period));
        Some(sent(once::end(&self.keys, id(attempt), RunEnd { lease, period, is_done, least })))
    }

    /// Reads what is known of the last run.
    pub fn inspect_run(&self) -> Request {
        sent(once::inspect(&self.keys))
    }

    /// Notes that a term of an election has begun.
    pub fn led(&self, attempt: Attempt, term: u64, label: &str) -> Request {
        self.announce(attempt, Announcement { term: Token::new(term), what: What::Led, number: 1, label, value: "" })
    }

    /// Publishes a value of a leader.
    pub fn said(&self, attempt: Attempt, term: u64, number: u64, label: &str, value: &str) -> Request {
        self.announce(attempt, Announcement { term: Token::new(term), what: What::Said, number, label, value })
    }

    fn announce(&self, attempt: Attempt, said: Announcement<'_>) -> Request {
        sent(election::announce(&self.keys, self.site(), id(attempt), said))
    }

    /// Reads the leader of an election and the changes after the revision `known`.
    pub fn look_at_election(&self, known: u64, most: u32) -> Request {
        sent(election::look(&self.keys, known, most))
    }

    /// Counts the subscribers to an inbox.
    pub fn listeners(&self, inbox: &str) -> Request {
        sent(client::listeners(self.keys.main(), inbox))
    }

    /// Issues every command on the keys of the resource, which must not exist, and on the channel.
    pub fn rights(&self, channel: &str) -> Request {
        sent(client::rights(from_ref(&self.keys), channel))
    }

    fn permits(&self) -> Permits {
        if let Kind::Semaphore { limit } = self.keys.kind { Permits { limit } } else { Permits::READ_WRITE }
    }

    fn site(&self) -> Site<'_> {
        let Self { counts_everyone, listens, .. } = *self;
        Site { inbox_prefix: &self.inbox_prefix, slot: self.slot(), counts_everyone, listens }
    }

    fn slot(&self) -> Option<u16> {
        self.sharded.then(|| self.keys.slot())
    }

    fn ticket_of(&self, attempt: Attempt) -> Ticket {
        self.keys.kind.ticket(id(attempt), attempt.lease, attempt.amount)
    }

    fn with_ttl(&self, attempt: Attempt) -> TicketArgs {
        (self.ticket_of(attempt), attempt.ticket_ttl)
    }
}

fn sent<T>(call: ScriptCall<'_, T>) -> Request {
    Request::of(&call)
}
