//! The pauses between attempts, all in one place.

use std::time::Duration;

use super::Pauses;

const fn pauses(shortest: u64, longest: u64) -> Pauses {
    Pauses { shortest: Duration::from_millis(shortest), longest: Duration::from_millis(longest) }
}

/// Between requests to a server that gives no usable answer, or to a master of a `RedLock` that is down. The first is
/// short, because most refusals pass soon. The last one keeps the load of a server that is down low.
pub(crate) const REQUEST: Pauses = pauses(25, 1_000);

/// After a round of votes without a majority, unless a hold in the way ends before. Not doubled, but drawn at random in
/// between, so that programs that split the votes do not meet again. The longest is the delay of a hand-over between
/// programs whose turns are on different masters.
pub(crate) const VOTE: Pauses = pauses(50, 150);

/// Between heartbeats of a name without an answer. The shortest is the shortest time between any two heartbeats: less
/// would be polling. The longest still comes several times per lease.
pub(crate) const HEARTBEAT: Pauses = pauses(50, 3_200);

/// Between attempts to subscribe to the inbox of a slot. They are long, because an attempt takes up to the command
/// timeout, and heartbeats find a grant meanwhile.
pub(crate) const INBOX: Pauses = pauses(250, 5_000);

/// Between attempts to dial. The first is short, because most connections are lost one at a time. The last is below a
/// second, because locks are lost while a client cannot reach its server.
#[cfg(feature = "_redis")]
pub(crate) const RECONNECT: Pauses = pauses(10, 800);

/// Before a call is sent again to a node that has said `TRYAGAIN`. They stay short, because the keys of one slot move
/// in milliseconds.
#[cfg(feature = "_redis")]
pub(crate) const SLOT_MOVES: Pauses = pauses(10, 50);

/// Before a call is sent again to a node that accepts no calls. They grow, because all clients of the cluster wait
/// then.
#[cfg(feature = "_redis")]
pub(crate) const CLUSTER_DOWN: Pauses = pauses(10, 500);

/// Before a channel that a node did not subscribe is tried there again: the slot may be on its way to another node.
#[cfg(feature = "_redis")]
pub(crate) const CHANNEL: Pauses = pauses(20, 1_000);
