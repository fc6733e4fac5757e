//! What a failover loses, and what a replaced master does that does not know of it. Neither is a violation, unless all
//! replicas had to acknowledge it. Even then a failover can lose a hold whose slot has moved, because not all of its
//! keys may have arrived at the replica that is promoted.

use std::collections::{BTreeSet, HashMap};

use bowline::Call;

use super::grants::subjects;
use super::view::{Dump, Hold, View, client_of, is_used, locks, view};
use super::{Judge, Known};
use crate::nodes::{Fork, slot};

/// What is lost of each name, by its key.
#[derive(Default)]
pub struct Forsaken {
    /// Holds that the new master does not have, or not for as long.
    holds: HashMap<String, Vec<Lost<Hold>>>,
    /// The counters of tokens: that of the new master, and that of the old one.
    counters: HashMap<String, Vec<Lost<(u64, u64)>>>,
    /// The limits that were in force at a master that was replaced and did not know it.
    limits: HashMap<String, BTreeSet<u64>>,
}

struct Lost<T> {
    what: T,
    /// Its slot had moved to the old master, and not all of its keys had arrived at the new one.
    moved: bool,
}

impl<T> Lost<T> {
    /// With acknowledgement by all replicas only what had moved, else everything.
    fn among(lost: Option<&Vec<Self>>, acknowledged: bool) -> impl Iterator<Item = &T> {
        lost.into_iter().flatten().filter(move |lost| lost.moved || !acknowledged).map(|lost| &lost.what)
    }
}

/// Attempt ids that the two do not know as the same.
fn differing(one: &View, other: &View) -> BTreeSet<String> {
    let holds = |view: &View| -> Vec<_> {
        view.holds.iter().map(|hold| (hold.id.clone(), hold.units, hold.token, hold.ends)).collect()
    };
    let (ours, theirs) = (holds(one), holds(other));
    let held =
        ours.iter().filter(|hold| !theirs.contains(hold)).chain(theirs.iter().filter(|hold| !ours.contains(hold)));
    let tickets = |view: &View| -> Vec<_> { view.queue.iter().map(|ticket| ticket.id.clone()).collect() };
    let (ours, theirs) = (tickets(one), tickets(other));
    let queued = ours.iter().filter(|id| !theirs.contains(id)).chain(theirs.iter().filter(|id| !ours.contains(id)));
    held.map(|(id, ..)| id).chain(queued).cloned().collect()
}

impl Forsaken {
    /// Whether so many units were more than the limit at a master that was replaced.
    pub fn was_less(&self, key: &str, units: u64) -> bool {
        self.limits.get(key).into_iter().flatten().any(|limit| *limit < units)
    }

    /// Whether it is lost that the token was reserved.
    pub fn has_token(&self, key: &str, token: u64, acknowledged: bool) -> bool {
        Lost::among(self.counters.get(key), acknowledged).any(|(has, had)| (has + 1..=*had).contains(&token))
    }
}

impl Judge {
    /// A failover: what the old master had, and what the new one has.
    pub fn forked(&self, fork: &Fork) {
        let Fork { had, has, moved, .. } = fork;
        let names: BTreeSet<String> = locks(had).into_iter().chain(locks(has)).collect();
        for name in names {
            self.parted(&name, &view(had, &name), &view(has, &name), moved.contains(slot(&name)));
        }
    }

    /// A master that was replaced has executed this.
    pub fn executed_astray(&self, call: Call<'_>, before: &Dump, after: &Dump) {
        for name in call.keys.iter().filter(|key| is_used(key)) {
            let after = view(after, name);
            self.parted(name, &after, &view(before, name), false);
            self.lock().forsaken.limits.entry((*name).to_owned()).or_default().insert(after.limit);
        }
        let mut state = self.lock();
        for id in subjects(&call) {
            state.attempts.entry(id.to_owned()).or_default().astray = true;
        }
    }

    /// What only `lost` has goes; what `kept` has beside it, no client may know of.
    fn parted(&self, name: &str, lost: &View, kept: &View, moved: bool) {
        let mut state = self.lock();
        for id in differing(lost, kept) {
            state.attempts.entry(id).or_default().astray = true;
        }
        let shorter =
            |hold: &&Hold| kept.hold(&hold.id).is_none_or(|kept| kept.ends < hold.ends || kept.units != hold.units);
        let holds = lost.holds.iter().filter(shorter).map(|hold| Lost { what: hold.clone(), moved });
        state.forsaken.holds.entry(name.to_owned()).or_default().extend(holds);
        let (has, had) = (kept.fence.unwrap_or(0), lost.fence.unwrap_or(0));
        let counters = (has < had).then_some(Lost { what: (has, had), moved });
        state.forsaken.counters.entry(name.to_owned()).or_default().extend(counters);
    }

    /// Whether a failover has lost that the token was reserved. `acknowledged`: all replicas had to know it.
    pub fn is_token_forsaken(&self, key: &str, token: u64, acknowledged: bool) -> bool {
        self.lock().forsaken.has_token(key, token, acknowledged)
    }

    /// Whether a failover has lost the hold of the guard, or its last renewal. `acknowledged`: all replicas had to know
    /// it.
    pub fn is_forsaken(&self, known: &Known<'_>, acknowledged: bool) -> bool {
        let state = self.lock();
        let id = known.budget(&state).map(|(_, id)| id);
        Lost::among(state.forsaken.holds.get(known.key), acknowledged).any(|hold| {
            let span = state.attempts.get(&hold.id).map_or(1, |attempt| attempt.span.max(1));
            client_of(&hold.id) == known.client
                && hold.units == known.units
                && ((hold.token..hold.token + span).contains(&known.token) || id == Some(&hold.id))
        })
    }
}
