//! What a connection knows of its servers.

use std::fmt;
use std::time::Duration;

/// The properties of a server's topology that scripts depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Topology {
    /// Whether a script can count all subscribers of an inbox. If it can, scripts skip waiters whose inbox has none.
    /// `PUBSUB NUMSUB` counts all on a single server. In a cluster a node counts only its own, but `PUBSUB SHARDNUMSUB`
    /// counts all subscribers of a shard channel.
    pub publish_counts_everyone: bool,
    /// The keys of a call must belong to one name. Holds are renewed by one call each, all of them in one
    /// [`run_batch`](crate::Connection::run_batch). False for one server, where one call renews many holds.
    pub one_name_per_call: bool,
    /// Whether waiters are notified through shard channels, which have a slot as keys have. Scripts then publish by
    /// `SPUBLISH`, and [`subscribe`](crate::Connection::subscribe) uses `SSUBSCRIBE` for a channel with a hash tag. A
    /// client has an inbox in each slot in which it waits, beside the one without a slot.
    pub sharded_messages: bool,
    /// Whether calls can reach another server after a failover, which may lack the last writes of the one before. A
    /// [`RedLock`](crate::RedLock) refuses such a connection.
    pub fails_over: bool,
}

impl Topology {
    /// A single server.
    pub const fn single_server() -> Self {
        Self { publish_counts_everyone: true, one_name_per_call: false, sharded_messages: false, fails_over: false }
    }

    /// A cluster, whose nodes know only their own subscribers.
    pub const fn cluster() -> Self {
        Self { publish_counts_everyone: false, one_name_per_call: true, sharded_messages: false, fails_over: true }
    }

    /// A cluster of servers that have shard channels: Redis 7.0 or newer, or Valkey.
    pub const fn sharded_cluster() -> Self {
        Self { publish_counts_everyone: true, sharded_messages: true, ..Self::cluster() }
    }
}

/// A problem of the setup that endangers locks but does not prevent them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// `maxmemory-policy` is not `noeviction`, so the server may evict the keys of held locks when its memory is full.
    Eviction {
        /// The configured policy.
        policy: String,
    },
    /// [`command_timeout`](crate::ConfigBuilder::command_timeout) is longer than half of the
    /// [`lease`](crate::ConfigBuilder::lease), so a lease can expire while the client waits for an answer.
    SlowTimeout {
        /// The longest wait for the answer to one command.
        command_timeout: Duration,
        /// The lease of holds that set none of their own.
        lease: Duration,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Eviction { policy } => {
                write!(
                    f,
                    "maxmemory-policy is {policy}, so the server may evict the keys of held locks; set noeviction"
                )
            }
            Self::SlowTimeout { command_timeout, lease } => {
                write!(f, "command_timeout is {command_timeout:?}, which is more than half of the lease of {lease:?}")
            }
        }
    }
}
