//! One master: its client, whether it answers, and how long it has been up.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::connection::Topology;
use crate::context::Context;
use crate::error::ErrorKind;
use crate::hold::owner::HoldSource;
use crate::mutex::lock;
use crate::protocol::key::Keys;
use crate::protocol::vote::reply::Process;
use crate::red_lock::doubts::{Doubts, Why};
use crate::red_lock::standing::Standing;

pub(super) struct Master {
    pub(super) source: Arc<HoldSource>,
    state: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// Set if the master gave no usable answer, whatever the name. Acquisitions do not ask it until it has answered a
    /// probe.
    down: Option<Down>,
    /// Single names that the master does not serve.
    doubts: Doubts,
    /// Since when the master cannot be part of a majority, as far as that was noticed.
    unable: Option<Instant>,
    /// The last time at which the master answered.
    heard: Option<Instant>,
    /// When the last check of the master began, and whether it is under way.
    checked: Option<Instant>,
    is_checked: bool,
    standing: Standing,
}

#[derive(Default)]
struct Down {
    /// What the master has answered. `None`: nothing.
    why: Option<Why>,
}

impl Master {
    pub(super) fn new(source: Arc<HoldSource>) -> Self {
        Self { source, state: Mutex::default() }
    }

    pub(super) fn context(&self) -> &Arc<Context> {
        &self.source.context
    }

    /// Why the master is not asked: its client has not connected yet, or is connected to something else than a single
    /// server.
    pub(super) fn unusable(&self) -> Option<Why> {
        if let Some(why) = self.context().not_connected() {
            return Some((why.kind(), why.to_string()));
        }
        unsuitable(self.context().connection.topology()).map(|reason| (ErrorKind::InvalidInput, reason.to_owned()))
    }

    pub(super) fn is_up(&self) -> bool {
        lock(&self.state).down.is_none()
    }

    /// Whether acquisitions with these keys ask the master.
    pub(super) fn serves(&self, keys: &Keys, now: Instant) -> bool {
        let state = lock(&self.state);
        state.down.is_none() && state.doubts.about(keys, now).is_none()
    }

    /// Whether the master is up, and no doubt about these keys is remembered: it has served them lately, or was not
    /// asked.
    pub(super) fn may_serve(&self, keys: &Keys, now: Instant) -> bool {
        let state = lock(&self.state);
        state.down.is_none() && state.doubts.lately(keys, now).is_none()
    }

    /// Why the master does not serve these keys, by its own answer or by the error of its client.
    pub(super) fn refusal(&self, keys: &Keys, now: Instant) -> Option<Why> {
        if let Some(why) = self.unusable() {
            return Some(why);
        }
        let state = lock(&self.state);
        match &state.down {
            Some(down) => down.why.clone(),
            None => state.doubts.about(keys, now)?.why.clone(),
        }
    }

    /// Since when the master cannot be part of a majority for these keys. `None`: it can. `counts`: whether it has been
    /// up for long enough.
    pub(super) fn unable_since(&self, keys: &Keys, counts: bool, now: Instant) -> Option<Instant> {
        let mut state = lock(&self.state);
        if counts && state.down.is_none() {
            state.unable = None;
            return state.doubts.lately(keys, now).map(|doubt| doubt.since);
        }
        let unable = *state.unable.get_or_insert(now);
        let doubted = state.doubts.lately(keys, now).map_or(unable, |doubt| doubt.since);
        Some(unable.min(doubted))
    }

    /// Marks the master as down since then. `false`: it was down already. `counts`: whether it had been up for long
    /// enough.
    pub(super) fn set_down(&self, why: Option<Why>, counts: bool, since: Instant) -> bool {
        let mut state = lock(&self.state);
        if counts && state.down.is_none() {
            state.unable = None;
        }
        // Of several requests without an answer, the first one counts.
        let unable = state.unable.get_or_insert(since);
        *unable = since.min(*unable);
        if state.down.is_some() {
            return false;
        }
        state.down = Some(Down { why });
        true
    }

    /// Records the answer to a probe that shows that the master is still down.
    pub(super) fn set_refusal(&self, why: Option<Why>) {
        if let Some(down) = &mut lock(&self.state).down {
            down.why = why;
        }
    }

    pub(super) fn set_up(&self) {
        let mut state = lock(&self.state);
        (state.down, state.unable) = (None, None);
    }

    /// The master has not served these keys since then.
    pub(super) fn add_doubt(&self, keys: &Arc<Keys>, why: Option<Why>, times: (Instant, Instant, Instant)) {
        lock(&self.state).doubts.add(keys, why, times);
    }

    /// The master has served these keys.
    pub(super) fn served(&self, keys: &Keys) {
        lock(&self.state).doubts.served(keys);
    }

    /// The master has answered, and accepts writes.
    pub(super) fn set_heard(&self, now: Instant) {
        let mut state = lock(&self.state);
        state.heard = Some(now);
        state.doubts.answered();
    }

    /// Whether the master has answered after that.
    pub(super) fn is_heard_after(&self, time: Instant) -> bool {
        lock(&self.state).heard.is_some_and(|heard| heard > time)
    }

    /// Begins a check, unless one is under way or the last one began after `since`. The caller ends it.
    pub(super) fn begin_check(&self, since: Option<Instant>, now: Instant) -> bool {
        let mut state = lock(&self.state);
        let is_recent = since.is_some_and(|since| state.checked.is_some_and(|checked| checked > since));
        let begins = state.down.is_none() && !state.is_checked && !is_recent;
        if begins {
            (state.checked, state.is_checked) = (Some(now), true);
        }
        begins
    }

    pub(super) fn end_check(&self) {
        lock(&self.state).is_checked = false;
    }

    /// Records what an answer says about its process, and reads what is known of that process, in one step: the answer
    /// of another process may arrive at any time. `known`: what the request said of it.
    pub(super) fn learn<T>(
        &self,
        process: &Process,
        known: u64,
        times: (Instant, Instant),
        read: impl FnOnce(&Standing) -> T,
    ) -> T {
        let mut state = lock(&self.state);
        state.heard = Some(times.1);
        if state.standing.learn(process, known, times) {
            read(&state.standing)
        } else {
            read(&Standing::unknown(times.1))
        }
    }

    pub(super) fn run_id(&self) -> String {
        lock(&self.state).standing.run_id().to_owned()
    }

    /// Reads what is known of the server's process.
    pub(super) fn standing<T>(&self, read: impl FnOnce(&Standing) -> T) -> T {
        read(&lock(&self.state).standing)
    }
}

/// Why servers of this topology cannot be a master of a RedLock. `None`: it is a single server, as needed.
pub(super) fn unsuitable(topology: Topology) -> Option<&'static str> {
    if topology.one_name_per_call {
        Some("it is a cluster; a RedLock needs independent servers")
    } else if topology.fails_over {
        Some("it is behind a failover; a RedLock needs single servers")
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
