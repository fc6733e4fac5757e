//! The properties of the two resources of a RedLock.

use crate::protocol::facts::Facts;
use crate::protocol::mutex::facts::LOCK;

/// The queue of a RedLock: an ordinary lock on one master.
pub(in crate::protocol) const TURN: Facts = Facts { word: "turn", ..LOCK };

/// The vote of a master. Its queue stays empty.
pub(in crate::protocol) const VOTE: Facts = Facts { word: "vote", ..LOCK };
