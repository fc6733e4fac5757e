//! The calls of the protocol for tests and benches that speak to a server themselves: the same keys, tickets and orders of
//! arguments that the library sends.

use std::time::Duration;

use uuid::Uuid;

use super::attempt_id::AttemptId;
use super::call::{ScriptCall, Site, Word};
use super::key::{Keys, inbox_prefix};
use super::kind::Kind;
use super::latch::{Latch, LatchCall};
use super::permits::{ChangeArgs, Permits};
use super::resource::{AcquireArgs, TicketArgs};
use super::script::Script;
use super::ticket::Ticket;
use super::{client, mutex};
use crate::error::Result;

/// A script with its keys and arguments, as they are sent.
#[derive(Clone, Debug)]
pub struct Sent {
    /// What is run.
    pub script: &'static Script,
    /// `KEYS`.
    pub keys: Vec<String>,
    /// `ARGV`.
    pub args: Vec<String>,
}

/// An acquisition attempt.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// The client's id.
    pub client: Uuid,
    /// The attempt's number.
    pub n: u64,
    /// The lease of its hold.
    pub lease: Duration,
    /// Tokens of a lock, units of permits.
    pub amount: u32,
    /// The time its ticket lives.
    pub ticket_ttl: Duration,
    /// 0 is no limit.
    pub max_waiters: u32,
    /// By the server's clock, in ms; 0 is no limit.
    pub not_after: u64,
}

/// One copy of a call that changes a latch.
#[derive(Clone, Copy, Debug)]
pub struct Copy {
    /// The client's id.
    pub client: Uuid,
    /// The call's number.
    pub n: u64,
    /// This copy is refused later.
    pub not_after: u64,
    /// No copy is executed later.
    pub known_until: u64,
    /// Another copy may have been executed.
    pub resent: bool,
}

/// A resource as its clients address it.
#[derive(Debug)]
pub struct Resource {
    keys: Keys,
    inbox_prefix: String,
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
        /// A semaphore, at a call site with that limit.
        semaphore(limit) = Kind::Semaphore { limit };
        /// A read-write lock.
        read_write() = Kind::ReadWrite;
        /// A latch.
        latch() = Kind::Latch;
    }

    fn new(prefix: &str, name: &str, kind: Kind) -> Result<Self> {
        let (keys, inbox_prefix) = (Keys::new(prefix, kind, name)?, inbox_prefix(prefix));
        Ok(Self { keys, inbox_prefix, counts_everyone: true, listens: false })
    }

    /// Whether the server counts every subscriber; it does if this is not called.
    #[must_use]
    pub fn counts_everyone(self, counts_everyone: bool) -> Self {
        Self { counts_everyone, ..self }
    }

    /// Whether callers look in the replies of releases for messages; they do not if this is not called.
    #[must_use]
    pub fn listens(self, listens: bool) -> Self {
        Self { listens, ..self }
    }

    /// In the order of the scripts' `KEYS`.
    pub fn keys(&self) -> Vec<String> {
        self.keys.all().map(str::to_owned).collect()
    }

    /// What the inbox channels of all clients start with.
    pub fn inbox_prefix(&self) -> &str {
        &self.inbox_prefix
    }

    /// The ticket of an attempt.
    pub fn ticket(&self, attempt: Attempt) -> String {
        self.ticket_of(attempt).text()
    }

    /// Asks for the resource; with `wait`, also for a place in the queue.
    pub fn acquire(&self, attempt: Attempt, wait: bool) -> Sent {
        let Attempt { ticket_ttl, max_waiters, not_after, .. } = attempt;
        let args = AcquireArgs { ticket: self.ticket_of(attempt), ticket_ttl, wait, max_waiters, not_after };
        sent(self.keys.kind.with(|resource| resource.acquire(&self.keys, self.site(), args)))
    }

    /// Releases a hold, and queues up for the next; `None` for a latch, which is never held.
    pub fn release(&self, attempt: Attempt, next: Option<Attempt>) -> Option<Sent> {
        let next = next.map(|next| self.with_ttl(next));
        self.keys.kind.with(|resource| {
            let held = resource.held()?;
            Some(match next {
                Some(next) => sent(held.requeue(&self.keys, self.site(), id(attempt), next)),
                None => sent(held.release(&self.keys, self.site(), id(attempt))),
            })
        })
    }

    /// Gives an attempt up.
    pub fn cancel(&self, attempt: Attempt, from_tail: bool) -> Sent {
        let ticket = self.ticket_of(attempt);
        sent(self.keys.kind.with(|resource| resource.cancel(&self.keys, self.site(), ticket, from_tail)))
    }

    /// Keeps tickets alive.
    pub fn heartbeat(&self, attempts: &[Attempt]) -> Sent {
        let tickets: Vec<TicketArgs> = attempts.iter().map(|attempt| self.with_ttl(*attempt)).collect();
        sent(self.keys.kind.with(|resource| resource.heartbeat(&self.keys, self.site(), &tickets)))
    }

    /// Takes the lock from a holder.
    pub fn force_release(&self, holder: &str) -> Sent {
        sent(mutex::force_release(&self.keys, self.site(), holder))
    }

    /// Looks at what there is.
    pub fn inspect(&self) -> Sent {
        match self.keys.kind {
            Kind::Lock => sent(mutex::inspect(&self.keys)),
            Kind::Semaphore { limit } => sent(Permits { limit }.inspect(&self.keys)),
            Kind::ReadWrite => sent(Permits::READ_WRITE.inspect(&self.keys)),
            Kind::Latch => sent(Latch.inspect(&self.keys)),
        }
    }

    /// Turns a hold of permits into another.
    pub fn change(&self, old: Attempt, new: Attempt) -> Sent {
        let Attempt { amount: units, lease, not_after, .. } = new;
        let args = ChangeArgs { old: id(old), new: id(new), units, lease, not_after };
        sent(self.permits().change(&self.keys, self.site(), args))
    }

    /// Stores the limit.
    pub fn store_limit(&self, not_after: u64) -> Sent {
        sent(self.permits().store(&self.keys, self.site(), not_after))
    }

    /// Sets the count of a latch.
    pub fn set(&self, copy: Copy, count: u32, ttl: Duration) -> Sent {
        sent(Latch.set(&self.keys, self.site(), copy.call(), count, ttl))
    }

    /// Counts a latch down.
    pub fn count_down(&self, copy: Copy) -> Sent {
        sent(Latch.count_down(&self.keys, self.site(), copy.call()))
    }

    /// Deletes a latch.
    pub fn delete(&self, copy: Copy) -> Sent {
        sent(Latch.delete(&self.keys, self.site(), copy.call()))
    }

    /// Counts the subscribers to an inbox.
    pub fn listeners(&self, inbox: &str) -> Sent {
        sent(client::listeners(self.keys.main(), inbox))
    }

    fn permits(&self) -> Permits {
        match self.keys.kind {
            Kind::Semaphore { limit } => Permits { limit },
            Kind::Lock | Kind::ReadWrite | Kind::Latch => Permits::READ_WRITE,
        }
    }

    fn site(&self) -> Site<'_> {
        let Self { counts_everyone, listens, .. } = *self;
        Site { inbox_prefix: &self.inbox_prefix, counts_everyone, listens }
    }

    fn ticket_of(&self, attempt: Attempt) -> Ticket {
        self.keys.kind.ticket(id(attempt), attempt.lease, attempt.amount)
    }

    fn with_ttl(&self, attempt: Attempt) -> TicketArgs {
        (self.ticket_of(attempt), attempt.ticket_ttl)
    }
}

impl Copy {
    fn call(self) -> LatchCall {
        let Self { client, n, not_after, known_until, resent } = self;
        LatchCall { id: AttemptId { client, n }, not_after, known_until, resent }
    }
}

/// Renews holds, each of a resource and with the lease of its attempt. `None` if they cannot be renewed in one call.
pub fn renew(holds: &[(&Resource, Attempt)]) -> Option<Sent> {
    let (first, _) = holds.first()?;
    let renewal = first.keys.kind.renewal()?;
    if holds.iter().any(|(resource, _)| resource.keys.kind.renewal() != Some(renewal)) {
        return None;
    }
    let holds: Vec<_> = holds.iter().map(|(resource, attempt)| (&resource.keys, id(*attempt), attempt.lease)).collect();
    first.keys.kind.with(|resource| resource.held().map(|held| sent(held.renew(&holds))))
}

fn id(attempt: Attempt) -> AttemptId {
    AttemptId { client: attempt.client, n: attempt.n }
}

fn sent<T>(call: ScriptCall<'_, T>) -> Sent {
    let args = call.args.iter().map(|word| match word {
        Word::Text(text) => (*text).to_owned(),
        Word::Spelled(text) => text.clone(),
        Word::Number(number) => number.to_string(),
    });
    Sent { script: call.script, args: args.collect(), keys: call.keys.iter().map(|key| (*key).to_owned()).collect() }
}
