//! Pauses and limits that were chosen, each with its reason. Those that follow from other settings are where they are
//! used.

#![cfg_attr(not(feature = "_redis"), expect(dead_code, reason = "some are those of connections to servers"))]

use std::time::Duration;

use crate::backoff::Pauses;

const fn pauses(shortest: u64, longest: u64) -> Pauses {
    Pauses { shortest: Duration::from_millis(shortest), longest: Duration::from_millis(longest) }
}

/// Between requests to a server that gives no usable answer, or to a master of a `RedLock` that is down. The first is
/// short, because most refusals pass soon. The last one keeps the load of a server that is down low.
pub(crate) const REQUEST: Pauses = pauses(25, 1_000);

/// Between requests to store a label that fail. They grow, because nothing depends on the label, and a server that is
/// full may stay so.
pub(crate) const LABEL: Pauses = pauses(1_000, 60_000);

/// How long those who look at a name wait for the labels, on which nothing depends.
pub(crate) const LABEL_WAIT: Duration = Duration::from_secs(3);

/// A request to store a label is of no use after this time: the client may have removed the label since.
pub(crate) const LABEL_LATE: Duration = Duration::from_secs(10);

/// How many keys a server looks at for one page of names. It takes about half a millisecond, in which the server
/// answers no one else.
pub(crate) const KEYS_IN_A_PAGE: u32 = 250;

/// How many deadlocks a search returns.
pub(crate) const MOST_DEADLOCKS: usize = 100;

/// How many waiters of a name a search for deadlocks looks at.
pub(crate) const MOST_QUEUED: u32 = 1000;

/// How often servers may be replaced by others while names are listed.
pub(crate) const MOST_CHANGES: u32 = 16;

/// The most clients whose labels are read by one call. Lua passes a few thousand arguments to a command, and no more.
pub(crate) const MOST_LABELS: usize = 2000;

/// The most acquisitions of a client that ask at a time who is in their way. Thousands may time out together, when the
/// server has much to do.
pub(crate) const MOST_LOOKS: u32 = 16;

/// After a round of votes without a majority, unless a hold in the way ends before. Not doubled, but drawn at random in
/// between, so that programs that split the votes do not meet again. The longest is the delay of a hand-over between
/// programs whose turns are on different masters.
pub(crate) const VOTE: Pauses = pauses(50, 150);

/// Between heartbeats of a name without an answer. The shortest is the shortest time between any two heartbeats: less
/// would be polling. The longest still comes several times per lease.
pub(crate) const HEARTBEAT: Pauses = pauses(50, 3_200);

/// How often, and with which pause, an upgrade looks whether a hold that has no other guard is still looked at by
/// another task, which takes microseconds.
pub(crate) const LOOKED_AT: u32 = 10;
pub(crate) const LOOKS: Duration = Duration::from_millis(1);

/// Before a candidate campaigns again, or a stream of changes goes on, after an error that may pass. The request was
/// repeated for the client's retry timeout, but that may be zero.
pub(crate) const AGAIN: Duration = Duration::from_secs(1);

/// Between attempts to subscribe to the inbox of a slot. They are long, because an attempt takes up to the command
/// timeout, and heartbeats find a grant meanwhile.
pub(crate) const INBOX: Pauses = pauses(250, 5_000);

/// After the first round of votes in a turn that was contested. Most often the votes in the way are those of a claim
/// that was refused, or of the last hold, and they are released at this very moment.
pub(crate) const VOTE_AGAIN: Pauses = pauses(2, 6);

/// How long a name of a `RedLock` counts as contended after a claim was refused: acquisitions wait for their turn
/// before they ask for votes. A refused claim costs a request to each master, so there is one per client in this time.
pub(crate) const CONTENDED: Duration = Duration::from_secs(1);

/// How often a try that has the turn looks at votes that are taken before it gives up.
pub(crate) const TRY_LOOKS: u32 = 5;

/// How many holds of a `RedLock` may wait for late votes at the same time. A grant beyond that cancels the requests
/// that have no answer yet. It limits how many tasks wait for a master that has become silent, until that is known.
pub(crate) const MOST_LATE: usize = 64;

/// Before the next vote if the hold in the way is about to end.
pub(crate) const HOLD_ENDS: Duration = Duration::from_millis(10);

/// Between checks of a master of a `RedLock` while an acquisition waits for it, and of a client that has not connected
/// yet. A master that has denied a name is not asked for that name again within this time.
pub(crate) const MASTER_CHECK: Duration = Duration::from_secs(1);

/// Between attempts to dial. The first is short, because most connections are lost one at a time. The last is below a
/// second, because locks are lost while a client cannot reach its server.
pub(crate) const RECONNECT: Pauses = pauses(10, 800);

/// Before the dial of a server that was named during the dial of another one.
pub(crate) const RENAMED: Duration = Duration::from_millis(5);

/// Between attempts to renew the login of a connection. They grow, because the service that gives tokens is shared, and
/// each connection asks it.
pub(crate) const RENEWAL: Pauses = pauses(250, 10_000);

/// Before a login is renewed at the earliest, however soon it is said to end: less would be a loop without pauses.
pub(crate) const SHORTEST_LOGIN: Duration = Duration::from_millis(100);

/// Before a call is sent again to a node that has said `TRYAGAIN`. They stay short, because the keys of one slot move
/// in milliseconds.
pub(crate) const SLOT_MOVES: Pauses = pauses(10, 50);

/// Before a call is sent again to a node that accepts no calls. They grow, because all clients of the cluster wait
/// then.
pub(crate) const CLUSTER_DOWN: Pauses = pauses(10, 500);

/// Before a channel that a node did not subscribe is tried there again: the slot may be on its way to another node.
pub(crate) const CHANNEL: Pauses = pauses(20, 1_000);

/// Between two readings of the map of a cluster. Doubled by each reading that changed nothing. They stay short, because
/// a client that does not know of a failover sends calls to the old master, which may execute them later and lose the
/// writes.
pub(crate) const READING: Pauses = pauses(100, 250);

/// The same while no node accepts calls. They grow, because all clients of the cluster read then, and the nodes are
/// busy with their election.
pub(crate) const READING_DOWN: Pauses = pauses(100, 4_000);

/// Between questions to the other nodes while a slow node gives no answer, unless the map may be read again before.
pub(crate) const SLOW_NODE: Duration = Duration::from_millis(100);

/// After a link was closed under a call. Without a pause, the call would never yield to a runtime that is shut down and
/// closes every new link.
pub(crate) const LINK_CLOSED: Duration = Duration::from_millis(10);

/// From one look at a name that is watched to the next one. A name that changes all the time is not looked at all the
/// time.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The channel of a lock that others announce to be free is subscribed for so long after its last wait. Under
/// contention, a client waits again after each hand-off budget, and a subscription to one server takes a connection.
pub(crate) const CHANNEL_IDLE: Duration = Duration::from_secs(1);

/// After a hand-off budget, for how long a cohort waits for its own message that the lock is free, as others do. The
/// message takes about a round trip.
pub(crate) const OWN_MESSAGE: Duration = Duration::from_millis(50);

/// How long a cohort that has used up a hand-off budget leaves the lock to others after each message that it is free. A
/// thread of Java that is woken needs some milliseconds, and would lose every race against a client that does not
/// sleep.
pub(crate) const LEFT_TO_OTHERS: Duration = Duration::from_millis(10);

/// The most holds, calls or channels in one write or script. The server spends about a microsecond on each, and
/// answers no one else meanwhile.
pub(crate) const BATCH: usize = 256;

/// The most calls of one kind, heartbeats or clean-ups, that are under way at a time. A server that has just come back
/// must not be asked about tens of thousands of names at once.
pub(crate) const MOST_CALLS: usize = 256;

/// The same for the clean-ups of parties that the server has not answered for longer than their leases.
pub(crate) const MOST_OVERDUE_CALLS: usize = 16;

/// The most of these that a client keeps. The next party of a name beyond that does not wait for its former one.
pub(crate) const MOST_OVERDUE: usize = 10_000;

/// An acquisition fails after this many grants that expired before they became known: the answers take too long for its
/// lease.
pub(crate) const MOST_EXPIRED: u32 = 3;

/// The longest wait for replicas within the request of an acquisition. The answer may be that the attempt is queued or
/// that others hold the lock, and must not come later than this.
pub(crate) const REPLICAS_WAIT: Duration = Duration::from_secs(1);

/// How long a try waits for a hold that another client keeps idle, unless the caller chooses: one message, one release
/// and one more message, with room for a slow network.
pub(crate) const FOR_RETAINED: Duration = Duration::from_millis(50);

/// How often a vote is sent again that the server found too late, by its own clock. Each answer corrects the estimate
/// of that clock.
pub(crate) const MOST_STALE: u32 = 2;

/// How often the votes of a hold are counted per lease. They are renewed three times per lease.
pub(crate) const VOTE_COUNTS: u32 = 6;

/// A doubt about a master is remembered for this long after its end, unless an answer confirms or refutes it before.
pub(crate) const DOUBT_REMEMBERED: Duration = Duration::from_secs(10);

/// Redirections in a row, before a pause. Nodes that disagree about a slot send calls to each other.
pub(crate) const MOST_MOVES: u32 = 5;

/// The link to a node that is not a master in the map is closed this long after its last use.
pub(crate) const NODE_IDLE: Duration = Duration::from_secs(10);

/// A connection for calls that wait for replicas is ended when no call has needed it for this long.
pub(crate) const REPLICA_LINK_IDLE: Duration = Duration::from_secs(60);
