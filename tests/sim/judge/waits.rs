//! I3 and I7 while time passes: how long a client that can be reached may leave something undone.
//!
//! All bounds count from when its link, its process and the server were last disturbed.

use std::time::Duration;

use super::view::{Hold, Ticket};
use crate::world::MS;

/// What is known of a attempt id. Times are the machine's.
#[derive(Clone, Debug, Default)]
pub struct Attempt {
    /// When it came into the queue, or got the lock without having been there.
    pub appeared: Duration,
    /// When a script about it was last executed whose answer somebody waited for.
    pub asked: Duration,
    /// When the last such script was executed before one whose answer has reached the client.
    pub learned: Duration,
    /// It was granted in the reply to a late copy of a request, which nobody reads.
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
    /// The client has the guard.
    pub delivered: bool,
    /// How many tokens its grant reserves: so many guards may have it, one after the other.
    pub span: u64,
    /// When the first of them got it, by the clock of a process that stood still at times.
    pub first_delivered: Option<Duration>,
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
    /// The longest wait between two heartbeats. It grows where they got no answer, and is no longer than a sixth of a ticket's time
    /// to live.
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
}

/// The longest wait between two tries against a server that gives no answer, and the shortest between two heartbeats.
pub const BACKOFF: Duration = Duration::from_millis(1250);
pub const PAUSE: Duration = Duration::from_millis(75);
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
        // Messages may have been missed until it listened again. One heartbeat may be under way by then; the next counts.
        if attempt.appeared < client.listens && attempt.asked < client.listens {
            let since = client.listens.max(client.calm);
            // A heartbeat that was lost with its connection is sent again.
            let lost = if client.calm > client.listens { client.pause(ticket.lease) } else { Duration::ZERO };
            if let Some(waited) = self.over(since, lost + self.messages(5)) {
                return Some(format!("I3 {id} was not heartbeat_reply for {waited:?} after its client listens again"));
            }
        }
        let since = [fits?, client.calm, client.listens, attempt.told?].into_iter().max()?;
        // Who has asked since the lock was taken, and was not held up on the way to the answer, knows when that lease
        // ends. Another lease may have begun and ended since, which the next heartbeat finds out; even in the same moment.
        let knows = foreseen && attempt.learned > self.held_since && attempt.learned >= client.calm;
        let heartbeat = if knows { Duration::ZERO } else { ticket.lease.min(LONGEST_TICKET) / 3 };
        let bound =
            heartbeat + client.pause(ticket.lease) + self.messages(6) + ticket.lease.max(Duration::from_secs(30)) / 500;
        let waited = self.over(since, bound).filter(|_| ticket.lives(self.server))?;
        Some(format!("I3 there is room, and {id} waits for {waited:?}, longer than {bound:?}"))
    }

    /// The hold, if it has not expired.
    pub fn hold(&self, hold: &Hold, attempt: &Attempt, client: Option<Client>) -> Option<String> {
        if let Some(undone) = self.undone(&hold.id, attempt, client) {
            return Some(undone);
        }
        // Whoever was told to wait learns of the grant, and if it is old by then asks again.
        let told = attempt.told.filter(|told| *told >= attempt.appeared);
        let client = client.filter(|_| attempt.decided.is_none() && !attempt.delivered && told.is_some())?;
        let since = [attempt.granted, self.damaged, client.calm, client.listens].into_iter().max()?;
        let asks_again = if attempt.waits() { Duration::ZERO } else { BACKOFF };
        let heartbeat = if attempt.granted_unheard { attempt.lease.min(LONGEST_TICKET) / 3 } else { Duration::ZERO };
        let waited = self.over(since, client.pause(attempt.lease) + self.messages(8) + asks_again + heartbeat)?;
        Some(format!("I3 {} is held for {waited:?} and its client does not know", hold.id))
    }

    /// What its client has given up is cleaned up, tried for as long as its lease: a server whose clock was set back
    /// keeps it longer. A late copy that comes after that may bring it back: then it goes with its own expiry.
    fn undone(&self, id: &str, attempt: &Attempt, client: Option<Client>) -> Option<String> {
        let decided = attempt.decided.filter(|_| !attempt.ghost)?;
        if self.now > decided + attempt.lease - attempt.lease / 500 {
            return None;
        }
        let waited = self.over(decided.max(client?.calm), BACKOFF + PAUSE + self.messages(6))?;
        Some(format!("I7 {id} was given up {waited:?} ago, and is still there"))
    }
}
