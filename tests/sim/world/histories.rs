//! The history of each lock, which a checker from elsewhere looks at: stateright's.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bowline_model::history::{Hold, check};

use super::guards::{Got, Seen};
use super::{State, World};
use crate::guard::{Guard, What};
use crate::judge::Known;

/// A hold, and when it was valid. A guard is kept alive by its task only, which releases it.
pub struct Past {
    guard: Weak<Guard>,
    client: String,
    units: u64,
    token: u64,
    asked: Duration,
    granted: Duration,
    valid: Duration,
    gone: Option<Duration>,
}

impl State {
    /// A guard is given out. The guards before it are looked at: those that are no longer valid ended since they were seen last.
    pub(super) fn remember(&mut self, key: &str, seen: &Seen, now: Duration) {
        let past = self.histories.entry(key.to_owned()).or_default();
        past.iter_mut().for_each(|past| past.look(now));
        let is_alone = matches!(seen.guard.what(), What::Lock | What::Write);
        // A guard that comes too late has never been valid.
        if is_alone && seen.got == Got::Granted && seen.guard.is_valid() {
            past.push(Past {
                guard: Arc::downgrade(&seen.guard),
                client: seen.client.clone(),
                units: seen.guard.units(),
                token: seen.guard.token(),
                asked: seen.started,
                granted: now,
                valid: now,
                gone: None,
            });
        }
    }

    /// A guard goes.
    pub(super) fn ends(&mut self, key: &str, guard: &Arc<Guard>, now: Duration) {
        let past = self.histories.get_mut(key).into_iter().flatten();
        for past in past.filter(|past| past.guard.as_ptr() == Arc::as_ptr(guard)) {
            past.look(now);
            past.gone.get_or_insert(now);
        }
    }
}

impl Past {
    fn look(&mut self, now: Duration) {
        let Some(guard) = self.guard.upgrade().filter(|_| self.gone.is_none()) else { return };
        if guard.is_valid() {
            self.valid = now;
        } else {
            self.gone = Some(now);
        }
    }
}

impl World {
    /// Every history is linearizable, but for the holds that may overlap others.
    pub(super) fn linearizable(&self) {
        let (histories, lost_at) = {
            let mut state = self.state.lock().unwrap();
            (std::mem::take(&mut state.histories), state.lost_at)
        };
        for (key, past) in histories {
            let nanos = |at: Duration| u64::try_from(at.as_nanos()).unwrap();
            let waived = |past: &Past| {
                let Past { client, units, token, .. } = past;
                let known = Known { key: &key, client, units: *units, token: *token, is_new: true };
                self.waives_hold(past.asked, &known, lost_at)
            };
            let past = past.iter().filter(|past| !waived(past));
            let holds: Vec<Hold> = past
                .map(|past| Hold {
                    asked: nanos(past.asked),
                    granted: nanos(past.granted),
                    token: past.token,
                    ended: past.gone.map(|gone| (nanos(past.valid), nanos(gone))),
                })
                .collect();
            if let Err(error) = check(&holds) {
                self.must(false, || format!("I15 {key}: {error}"));
            }
        }
    }
}
