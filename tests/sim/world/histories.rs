//! The history of each lock.

use std::sync::Arc;
use std::time::Duration;

use super::guards::Seen;
use super::{State, World};
use crate::guard::{Guard, What};
use crate::histories::{Histories, Past};
use crate::judge::Known;

/// Whose hold it is.
pub struct Owner {
    client: String,
    units: u64,
}

impl State {
    /// A guard is given out.
    pub(super) fn remember(&mut self, key: &str, seen: &Seen, now: Duration) {
        let is_alone = matches!(seen.guard.what(), What::Lock | What::Write);
        if is_alone && seen.got.is_new() {
            let owner = Owner { client: seen.client.clone(), units: seen.guard.units() };
            self.histories.remember(key, &seen.guard, owner, seen.started, now);
        } else {
            self.histories.look(key, now);
        }
    }

    /// A guard goes.
    pub(super) fn ends(&mut self, key: &str, guard: &Arc<Guard>, now: Duration) {
        self.histories.ends(key, guard, now);
    }
}

impl World {
    /// Every history is linearizable, but for the holds that may overlap others.
    pub(super) fn linearizable(&self) {
        let (histories, lost_at): (Histories<_, _>, _) = {
            let mut state = self.state.lock().unwrap();
            (std::mem::take(&mut state.histories), state.lost_at)
        };
        let waived = |key: &str, past: &Past<Guard, Owner>| {
            let Past { who: Owner { client, units }, token, asked, .. } = past;
            let known = Known { key, client, units: *units, token: *token, is_new: true };
            self.waives_hold(*asked, &known, lost_at)
        };
        if let Err(error) = histories.check(waived) {
            self.must(false, || error);
        }
    }
}
