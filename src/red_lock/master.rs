//! One master: its client, whether it answers, and how long it has been up.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::connection::Topology;
use crate::context::Context;
use crate::error::ErrorKind;
use crate::mutex::lock;
use crate::owned::HoldSource;
use crate::protocol::vote::reply::Process;
use crate::red_lock::standing::Standing;

pub(super) struct Master {
    pub(super) source: Arc<HoldSource>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Whether the master gave no usable answer. Acquisitions do not ask it until it has answered a probe.
    is_down: bool,
    /// The last time at which the master answered.
    heard: Option<Instant>,
    standing: Standing,
}

impl Master {
    pub(super) fn new(source: Arc<HoldSource>) -> Self {
        Self { source, state: Mutex::default() }
    }

    pub(super) fn context(&self) -> &Arc<Context> {
        &self.source.context
    }

    /// Why it is not asked, if that is for its client to say: it has not connected yet, or to something else than a single server.
    pub(super) fn unusable(&self) -> Option<(ErrorKind, String)> {
        if let Some(why) = self.context().not_connected() {
            return Some((why.kind(), why.to_string()));
        }
        unsuitable(self.context().connection.topology()).map(|reason| (ErrorKind::InvalidInput, reason.to_owned()))
    }

    pub(super) fn is_up(&self) -> bool {
        !lock(&self.state).is_down
    }

    /// Marks the master as down. `false`: it was down already.
    pub(super) fn set_down(&self) -> bool {
        !std::mem::replace(&mut lock(&self.state).is_down, true)
    }

    pub(super) fn set_up(&self) {
        lock(&self.state).is_down = false;
    }

    pub(super) fn set_heard(&self, now: Instant) {
        lock(&self.state).heard = Some(now);
    }

    /// Whether the master has answered since.
    pub(super) fn is_heard_since(&self, since: Instant) -> bool {
        lock(&self.state).heard.is_some_and(|heard| heard >= since)
    }

    /// Returns the same as [`counts_from`](Self::counts_from), for the process that has given this answer. The answer of another one may
    /// arrive at any time.
    pub(super) fn learn(&self, process: &Process, now: Instant, longest: Duration) -> Option<Instant> {
        let mut state = lock(&self.state);
        state.heard = Some(now);
        state.standing.learn(&process.run_id, process.uptime, now);
        state.standing.counts_from(longest)
    }

    pub(super) fn run_id(&self) -> String {
        lock(&self.state).standing.run_id().to_owned()
    }

    /// See [`Standing::counts_from`].
    pub(super) fn counts_from(&self, longest: Duration) -> Option<Instant> {
        lock(&self.state).standing.counts_from(longest)
    }
}

/// Why what a client is connected to is no master of a RedLock.
pub(super) fn unsuitable(topology: Topology) -> Option<&'static str> {
    if topology.one_name_per_call {
        Some("it is a cluster; a RedLock needs independent servers")
    } else if topology.fails_over {
        Some("it is behind a failover; a RedLock needs single servers")
    } else {
        None
    }
}
