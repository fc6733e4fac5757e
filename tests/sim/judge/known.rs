//! The guards that processes have, against the holds that the server knows.

use std::collections::BTreeSet;
use std::time::Duration;

use bowline::Call;

use super::grants::{arg, kept};
use super::view::{self, View, WRITE, client_of};
use super::{Judge, State};

/// What a guard tells of its hold: the key of the name, and whose it is. Several may be the same.
pub struct Known<'a> {
    pub key: &'a str,
    pub client: &'a str,
    pub units: u64,
    pub token: u64,
    /// No other guard had this guard's token before.
    pub is_new: bool,
}

/// A hold may be passed on for as long after its first guard was given out, by clocks that differ, and in time: a
/// process that stands still may do it a moment after it looked at the clock.
const LINE_TIME: Duration = Duration::from_millis(101);

impl Known<'_> {
    /// No other guard has anything of the name.
    fn is_alone(&self) -> bool {
        self.key.contains(":lock:") || self.units == WRITE
    }

    /// It may have been handed off in its client's cohort, with the other tokens that were reserved for it.
    fn holds<'n>(&self, state: &'n State) -> impl Iterator<Item = &'n view::Hold> {
        let holds = state.names.get(self.key).into_iter().flat_map(|name| &name.view.holds);
        holds.filter(|hold| {
            let span = state.attempts.get(&hold.id).map_or(1, |attempt| attempt.span.max(1));
            // The tokens of a budget that was asked for ahead do not continue those of the budget before.
            let first = self.budget(state).filter(|(_, id)| **id == hold.id).map_or(hold.token, |(first, _)| first);
            client_of(&hold.id) == self.client
                && hold.units == self.units
                // A grant that was lost may be made again, under the same attempt id and with another token.
                && ((first..first + span).contains(&self.token) || state.forsaken.has_token(self.key, self.token, false))
        })
    }

    /// The grant or budget that the token is of, if the hold is alone: its first token, and whose it is.
    pub(super) fn budget<'n>(&self, state: &'n State) -> Option<(u64, &'n String)> {
        let name = state.names.get(self.key).filter(|_| self.is_alone())?;
        name.granted.range(..=self.token).next_back().map(|(first, id)| (*first, id))
    }
}

impl State {
    /// I2: who gives a hold up for a smaller one keeps a token that its guard may have: the one that is stored, or
    /// another one of a budget of that hold.
    pub(super) fn never_had(&self, key: &str, call: &Call<'_>, before: &View) -> Option<String> {
        let (token, old) = (kept(call)?, before.hold(arg(call, 0))?);
        let (name, attempt) = (self.names.get(key)?, self.attempts.get(&old.id)?);
        let budget = name.granted.range(..=token).next_back();
        let is_its_own = budget.is_some_and(|(first, id)| *id == old.id && token < first + attempt.span.max(1));
        let right = token == old.token || is_its_own || attempt.astray;
        (!right).then(|| format!("I2 {} keeps the token {token}, which its guard never had", old.id))
    }
}

impl Judge {
    /// A process has the guard.
    pub fn delivered(&self, known: &Known<'_>) {
        let awake = self.clients.lock().unwrap().get(known.client).map(|(process, _)| self.machine.awake(*process));
        let mut state = self.lock();
        let ids: Vec<String> = known.holds(&state).map(|hold| hold.id.clone()).collect();
        let first = known.budget(&state).map_or(known.token, |(first, _)| first);
        let mut late = None;
        for id in ids {
            let attempt = state.attempts.entry(id).or_default();
            attempt.delivered = true;
            let awake = awake.expect("a client that was introduced");
            let since = awake - *attempt.first_delivered.entry(first).or_insert(awake);
            // An attempt that is astray may have been granted again, under the same attempt id.
            late = late.or((since > LINE_TIME && !attempt.astray).then_some(since));
        }
        // A replaced master has granted this token, so the budget found above is not the token's own.
        let is_forsaken = state.forsaken.has_token(known.key, known.token, false);
        // A hold that its client keeps idle lasts for as long as nobody else wants it.
        let is_retained = known.budget(&state).is_some_and(|(_, id)| id.ends_with('r'));
        if let Some(since) = late.filter(|_| known.is_new && known.is_alone() && !is_forsaken && !is_retained) {
            let Known { key, token, .. } = known;
            state.violation.get_or_insert(format!("I4 {key}: token {token} was passed on after {since:?}"));
        }
    }

    /// When it was asked for under the attempt id that the guard has it by: in a cohort, that may be long before the
    /// call that asked for the guard. Of permits, the first time that is possible.
    pub fn asked(&self, known: &Known<'_>) -> Option<Duration> {
        let state = self.lock();
        let name = state.names.get(known.key)?;
        if known.is_alone() {
            let (first, id) = known.budget(&state)?;
            let attempt = state.attempts.get(id)?;
            return attempt.first_asking.filter(|_| known.token < first + attempt.span);
        }
        let holds = name.permits.iter().filter(|(id, units)| client_of(id) == known.client && *units == known.units);
        let attempts = holds.filter_map(|(id, _)| state.attempts.get(id));
        attempts.filter(|attempt| attempt.decided.is_none()).filter_map(|attempt| attempt.first_asking).min()
    }

    /// Whether the client may have another hold of the name with as many units. Of two such holds, none can say which
    /// one is a guard's. A hold that the client gives up at this moment still counts.
    pub fn is_ambiguous(&self, known: &Known<'_>) -> bool {
        let (state, now) = (self.lock(), self.machine.now());
        let Some(name) = state.names.get(known.key).filter(|_| !known.is_alone()) else { return false };
        let holds = name.permits.iter().filter(|(id, units)| client_of(id) == known.client && *units == known.units);
        let ids: BTreeSet<&String> = holds.map(|(id, _)| id).collect();
        let attempts = ids.into_iter().filter_map(|id| state.attempts.get(id));
        attempts.filter(|attempt| attempt.decided.is_none_or(|decided| decided >= now)).count() > 1
    }

    /// Whether a replaced master that did not know it was asked about the hold.
    pub fn is_astray(&self, known: &Known<'_>) -> bool {
        let state = self.lock();
        known.holds(&state).any(|hold| state.attempts.get(&hold.id).is_some_and(|attempt| attempt.astray))
    }

    /// What is left of the lease, for the server; of the longest, if there are several.
    pub fn left(&self, known: &Known<'_>, server: Duration) -> Duration {
        let state = self.lock();
        let left = known.holds(&state).map(|hold| hold.ends.saturating_sub(server)).max();
        left.unwrap_or_default()
    }
}
