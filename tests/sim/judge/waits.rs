//! I3 and I7 while time passes: how long a client that can be reached may leave something undone.
//!
//! All bounds count from when its link, its process and the server were last disturbed.

use std::collections::BTreeMap;
use std::time::Duration;

use super::view::{Hold, Ticket};
use crate::world::MS;

/// What is known of a attempt id. Times are the machine's.
#[derive(Clone, Debug, Default)]
pub struct Attempt {
    /// When it came into the queue, or got the lock without having been there.
    pub appeared: Duration,
    /// When a script about it was last executed whose answer was awaited.
    pub asked: Duration,
    /// When the last such script was executed before one whose answer has reached the client.
    pub learned: Duration,
    /// It was granted in the reply to a late copy of a request, which is not read.
    pub granted_unheard: bool,
    /// The last script about it left nothing of it.
    pub gone: bool,
    /// A late copy of a request came when nothing of it was left, and may have brought it back.
    pub ghost: bool,
    /// When the client first asked for the lock, and when it last did.
    pub first_asking: Option<Duration>,
    pub asking: Duration,
    /// When it got what it holds.
    pub granted: Duration,
    /// What it asks for.
    pub lease: Duration,
    /// When the client was last told that it waits.
    pub told: Option<Duration>,
    /// When the client began to release or cancel it.
    pub decided: Option<Duration>,
    /// The client is about to change it, and renews it no more unless that fails.
    pub changing: bool,
    /// The client has the guard, or waits for the replicas.
    pub delivered: bool,
    /// A failover has lost something about it: what its client does and what the server has need not agree.
    pub astray: bool,
    /// How many tokens its grant reserves: so many guards may have it, one after the other.
    pub span: u64,
    /// When the first of them got it, by the clock of a process that stood still at times: for each budget, by its
    /// first token.
    pub first_delivered: BTreeMap<u64, Duration>,
}

/// As long as a ticket lives without a heartbeat, if its lease is not shorter.
const LONGEST_TICKET: Duration = Duration::from_secs(1800);

impl Attempt {
    /// The client knows that it waits, so it keeps its ticket.
    fn waits(&self) -> bool {
        self.decided.is_none() && self.told.is_some_and(|told| told >= self.appeared && told >= self.asking)
    }
}

/// A client, as far as the server can reach it.
#[derive(Clone, Copy)]
pub struct Client {
    /// Since when link, process and server are undisturbed.
    pub calm: Duration,
    /// When its subscription was made.
    pub listens: Duration,
}

impl Client {
    /// The longest wait between two heartbeats. It grows where they got no answer, and is no longer than a sixth of a
    /// ticket's time to live.
    fn pause(&self, lease: Duration) -> Duration {
        if self.calm.is_zero() { PAUSE } else { (lease.min(LONGEST_TICKET) / 6).clamp(PAUSE, LONGEST_PAUSE) }
    }
}

/// A name at one moment.
#[derive(Clone, Copy)]
pub struct Moment {
    pub now: Duration,
    pub server: Duration,
    pub longest_delay: Duration,
    /// When the last hold began.
    pub held_since: Duration,
    /// When something was done to the data.
    pub damaged: Duration,
    /// How long a grant waits until it is its turn to be acknowledged, and an answer behind a `WAIT`.
    pub replicas: Duration,
}

/// The longest wait between two tries against a server that gives no answer, and the shortest between two heartbeats.
pub const BACKOFF: Duration = Duration::from_millis(1250);
pub const PAUSE: Duration = Duration::from_millis(75);
/// How many messages it takes until the inbox of a slot is open, one after the other: a socket is dialled, logged in
/// and looked at, the node is asked whether it belongs to the cluster, and subscribes the channel.
pub const OPENING: u32 = 10;
/// The longest wait between two tries to open the inbox of a slot, and the last try; and the same of one that was open
/// before, which the connection opens again.
const OPENED: Duration = Duration::from_secs(9);
const REOPENED: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(4);

impl Moment {
    /// So many messages one after the other, by clocks that differ.
    pub fn messages(&self, n: u32) -> Duration {
        n * self.longest_delay + 2 * MS
    }

    pub fn over(&self, since: Duration, bound: Duration) -> Option<Duration> {
        let waited = self.now.saturating_sub(since);
        (waited > bound).then_some(waited)
    }

    /// A ticket in the queue; since when there has been room for it, and whether its client could know when.
    pub fn ticket(
        &self,
        ticket: &Ticket,
        fits: Option<Duration>,
        foreseen: bool,
        attempt: &Attempt,
        client: Option<Client>,
    ) -> Option<String> {
        if let Some(undone) = self.undone(&ticket.id, attempt, client).filter(|_| ticket.lives(self.server)) {
            return Some(undone);
        }
        let client = client.filter(|_| attempt.waits())?;
        let id = &ticket.id;
        // Messages may have been missed until the client listened again. One heartbeat may be under way by then, so
        // only the next one counts.
        if attempt.appeared < client.listens && attempt.asked < client.listens {
            // A request that itself waits for replicas is answered only after that wait.
            let since = client.listens.max(client.calm).max(attempt.told.unwrap_or(self.now));
            // A heartbeat that was lost with its connection is sent again.
            let lost = if client.calm > client.listens { client.pause(ticket.lease) } else { Duration::ZERO };
            if let Some(waited) = self.over(since, lost + self.messages(5) + self.replicas) {
                return Some(format!("I3 {id} was not heartbeat_reply for {waited:?} after its client listens again"));
            }
        }
        let since = [fits?, client.calm, client.listens, attempt.told?].into_iter().max()?;
        // A client that has asked since the lock was taken, and got its answer without delay, knows when that lease
        // ends. Another lease may have begun and ended since, even in the same moment. The next heartbeat finds that
        // out.
        let knows = foreseen && attempt.learned > self.held_since && attempt.learned >= client.calm;
        let heartbeat = if knows { Duration::ZERO } else { ticket.lease.min(LONGEST_TICKET) / 3 };
        let bound =
            heartbeat + client.pause(ticket.lease) + self.messages(6) + ticket.lease.max(Duration::from_secs(30)) / 500;
        let bound = bound + self.replicas;
        let waited = self.over(since, bound).filter(|_| ticket.lives(self.server))?;
        Some(format!("I3 there is room, and {id} waits for {waited:?}, longer than {bound:?}"))
    }

    /// A ticket whose client has no inbox in the slot of the name, since when; and since when it can be reached.
    pub fn deaf(&self, ticket: &Ticket, attempt: &Attempt, calm: Duration, silent_since: Duration) -> Option<String> {
        let told = attempt.told.filter(|_| attempt.waits() && ticket.lives(self.server))?;
        let again = match (calm.is_zero(), silent_since.is_zero()) {
            (true, _) => Duration::ZERO,
            // The client may have been told that it could not be opened.
            (false, true) => OPENED,
            (false, false) => REOPENED,
        };
        let waited = self.over(told.max(calm).max(silent_since), self.messages(OPENING) + again)?;
        Some(format!("I3 {} waits, and for {waited:?} its client has not listened where it is granted", ticket.id))
    }

    /// The hold, if it has not expired.
    pub fn hold(&self, hold: &Hold, attempt: &Attempt, client: Option<Client>) -> Option<String> {
        if let Some(undone) = self.undone(&hold.id, attempt, client) {
            return Some(undone);
        }
        // A waiter that was told to wait learns of the grant. If the grant is old by then, it asks again.
        let told = attempt.told.filter(|told| *told >= attempt.appeared);
        let client = client.filter(|_| attempt.decided.is_none() && !attempt.delivered && told.is_some())?;
        let since = [attempt.granted, self.damaged, client.calm, client.listens].into_iter().max()?;
        let asks_again = if attempt.waits() { Duration::ZERO } else { BACKOFF };
        let heartbeat = if attempt.granted_unheard { attempt.lease.min(LONGEST_TICKET) / 3 } else { Duration::ZERO };
        let waited =
            self.over(since, client.pause(attempt.lease) + self.messages(8) + asks_again + heartbeat + self.replicas)?;
        Some(format!("I3 {} is held for {waited:?} and its client does not know", hold.id))
    }

    /// What its client has given up is cleaned up, tried for as long as its lease: a server whose clock was set back
    /// keeps it longer. A late copy that comes after that may bring it back: then it goes with its own expiry.
    fn undone(&self, id: &str, attempt: &Attempt, client: Option<Client>) -> Option<String> {
        let decided = attempt.decided.filter(|_| !attempt.ghost)?;
        if self.now > decided + attempt.lease - attempt.lease / 500 {
            return None;
        }
        // With acknowledgement, what cleans up stands behind calls that wait for replicas.
        let waited = self.over(decided.max(client?.calm), BACKOFF + PAUSE + self.messages(6) + self.replicas)?;
        Some(format!("I7 {id} was given up {waited:?} ago, and is still there"))
    }
}
