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

    /// Records what the answer says about its process, and reads what is known of that process, in one step: the answer
    /// of another process may arrive at any time.
    pub(super) fn learn<T>(&self, process: &Process, now: Instant, read: impl FnOnce(&Standing) -> T) -> T {
        let mut state = lock(&self.state);
        state.heard = Some(now);
        state.standing.learn(&process.run_id, process.uptime, now);
        read(&state.standing)
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
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::context::tests::{Setup, setup};
    use crate::runtime::Executor;

    #[test]
    fn of_several_requests_without_an_answer_the_first_one_counts() {
        let Setup { context, executor, keys, .. } = setup();
        let master = Master::new(HoldSource::new(context));
        let [first, second, now] = [1, 2, 3].map(|secs| executor.now() + Duration::from_secs(secs));
        assert_eq!(master.unable_since(&keys, true, now), None);
        assert!(master.set_down(None, true, second));
        assert!(!master.set_down(None, true, first), "it is down already");
        assert_eq!(master.unable_since(&keys, true, now), Some(first));
        master.set_down(None, true, now);
        assert_eq!(master.unable_since(&keys, true, now), Some(first));
        master.set_up();
        assert_eq!(master.unable_since(&keys, true, now), None);
        assert_eq!(master.unable_since(&keys, false, second), Some(second), "it has not been up for long enough");
        master.set_down(None, false, now);
        assert_eq!(master.unable_since(&keys, false, now), Some(second));
        master.set_up();
        master.unable_since(&keys, false, first);
        master.set_down(None, true, second);
        assert_eq!(master.unable_since(&keys, true, now), Some(second), "it has been able in between");
    }

    /// A master that has not been up for long enough does not serve the keys either.
    #[test]
    fn a_doubt_counts_from_when_it_began() {
        let Setup { context, executor, keys, .. } = setup();
        let master = Master::new(HoldSource::new(context));
        let [first, second, now] = [1, 2, 3].map(|secs| executor.now() + Duration::from_secs(secs));
        let until = now + Duration::from_secs(9);
        master.unable_since(&keys, false, second);
        master.add_doubt(&keys, None, (first, now, until));
        assert_eq!(master.unable_since(&keys, false, now), Some(first));
        assert_eq!(master.unable_since(&keys, true, now), Some(first));
        assert_eq!(master.unable_since(&keys, true, now), Some(first));
    }
    #[test]
    fn a_master_is_asked_unless_it_is_down_or_in_doubt() {
        let Setup { context, executor, keys, .. } = setup();
        let master = Master::new(HoldSource::new(context));
        let [now, until, then] = [0, 1, 2].map(|secs| executor.now() + Duration::from_secs(secs));
        let asked = |now| (master.serves(&keys, now), master.may_serve(&keys, now));
        let why = Some((ErrorKind::Denied, "by the test".to_owned()));
        assert_eq!(asked(now), (true, true));
        master.add_doubt(&keys, why.clone(), (now, now, until));
        assert_eq!((asked(now), master.refusal(&keys, now)), ((false, false), why.clone()));
        assert_eq!((asked(then), master.refusal(&keys, then)), ((true, false), None), "the doubt is remembered");
        master.set_heard(now);
        assert_eq!(asked(then), (true, false), "it may still deny the name");
        master.served(&keys);
        assert_eq!(asked(then), (true, true));
        master.add_doubt(&keys, None, (now, now, until));
        master.set_heard(now);
        assert_eq!(asked(now), (true, true), "it is not silent");
        master.set_refusal(why.clone());
        assert_eq!((asked(now), master.refusal(&keys, now)), ((true, true), None), "it is up");
        master.set_down(None, true, now);
        assert_eq!((asked(now), master.refusal(&keys, now)), ((false, false), None));
        master.set_refusal(why.clone());
        assert_eq!(master.refusal(&keys, now), why);
        master.set_up();
        assert_eq!(asked(now), (true, true));
    }

    #[test]
    fn a_master_is_a_single_server() {
        assert_eq!(unsuitable(Topology::single_server()), None);
        assert!(unsuitable(Topology::cluster()).is_some_and(|why| why.contains("cluster")));
        let behind = Topology { fails_over: true, ..Topology::single_server() };
        assert!(unsuitable(behind).is_some_and(|why| why.contains("failover")));
    }

    #[test]
    fn one_check_is_under_way_and_the_next_one_is_not_too_soon() {
        let Setup { context, executor, .. } = setup();
        let master = Master::new(HoldSource::new(context));
        let [before, now, after] = [1, 2, 3].map(|secs| executor.now() + Duration::from_secs(secs));
        assert!(master.begin_check(Some(before), now), "the first one");
        assert!(!master.begin_check(None, after), "it is under way");
        master.end_check();
        assert!(!master.begin_check(Some(before), after), "the last one is recent");
        for since in [Some(now), Some(after), None] {
            assert!(master.begin_check(since, now));
            master.end_check();
        }
        master.set_down(None, true, now);
        assert!(!master.begin_check(None, after), "a master that is down is probed");
        assert!(!master.is_heard_after(before));
        master.set_heard(now);
        assert_eq!([before, now, after].map(|time| master.is_heard_after(time)), [true, false, false]);
    }
}
