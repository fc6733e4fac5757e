//! What a member of a cohort gets when it has its turn.
//!
//! | turn | given when | the member |
//! |---|---|---|
//! | lead | the cohort has nothing to expect a turn from | asks the server |
//! | held | a member is done with a hold, or the hold was idle | holds it, with a token of its own |
//! | attempt | the hand-off budget of the hold is spent | releases the hold and queues up, in one request |
//! | attempt | a member gave up while its request was under way | continues it |
//! | attempt | a ticket of the cohort is decided | continues it |
//! | failure | a member failed, and waiting members would fail for the same reason | fails, or asks the server |
//!
//! Also why no attempt is started, so that there is no turn.

use std::sync::Arc;
use std::time::Instant;

use crate::cohort::budget::HandoffBudget;
use crate::engine::lease::Hold;
use crate::error::Error;
use crate::protocol::attempt_id::AttemptId;

#[derive(Debug)]
pub(crate) enum Turn {
    Lead {
        /// Since when there has been no usable answer, as far as that counts for the member. `None`: it does not.
        since: Option<Instant>,
    },
    Held {
        hold: Arc<Hold>,
        budget: HandoffBudget,
        /// Whether the hold was idle, and not handed off by another member.
        was_idle: bool,
    },
    Attempt(AttemptHandoff),
}

/// The failure of a member. It applies to every other member that waited when this one began to ask, too.
#[derive(Clone, Debug)]
pub(crate) struct SharedFailure {
    pub(crate) error: Error,
    pub(crate) reach: Reach,
}

/// Which members waited when the one that has failed began to ask.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reach {
    /// The server gives no usable answer. For those that have joined since then, there has been none for less time.
    JoinedBy(Instant),
    /// The server has answered. This was the last member that had joined.
    Last(u64),
}

/// What a cohort gives to a member as its turn.
pub(super) type Given = Result<Turn, SharedFailure>;

/// What the owner of an open attempt knows about it, so that another member can continue.
#[derive(Clone, Debug)]
pub(crate) struct AttemptHandoff {
    pub(crate) id: AttemptId,
    pub(crate) amount: u32,
    /// The hold that the first request releases. `None` after the server has answered that request.
    pub(crate) before: Option<Arc<Hold>>,
    /// The number of requests about the attempt that may have been sent.
    pub(crate) asked: u32,
    /// Whether the attempt has waited and the engine knows its outcome.
    pub(crate) is_decided: bool,
    /// Since when there has been no usable answer to a request. `None`: no request is under way.
    pub(crate) since: Option<Instant>,
}

impl AttemptHandoff {
    /// An attempt whose first request has not been sent yet.
    pub(crate) fn new(id: AttemptId, amount: u32) -> Self {
        Self { id, amount, before: None, asked: 0, is_decided: false, since: None }
    }
}

/// The client was closed.
#[derive(Debug)]
pub(crate) struct Closed;

/// Why an acquisition cannot join its cohort.
pub(crate) enum CannotJoin {
    Closed,
    Full,
    /// It does not wait, and another member asks or holds.
    Busy,
}
