//! The histories of locks, which a checker from elsewhere looks at: stateright's.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bowline::LockGuard;
use bowline_model::history::{Hold, check};

use crate::guard::Guard;

/// What a hold's owner has in hand.
pub trait Held {
    fn is_valid(&self) -> bool;
    fn token(&self) -> u64;
}

impl Held for Guard {
    fn is_valid(&self) -> bool {
        self.is_valid()
    }

    fn token(&self) -> u64 {
        self.token()
    }
}

impl Held for LockGuard {
    fn is_valid(&self) -> bool {
        self.is_valid()
    }

    fn token(&self) -> u64 {
        self.token().get()
    }
}

/// A mistake in a history, made on purpose: the checker must find it.
#[derive(Clone, Copy, Debug)]
pub enum Planted {
    /// The hold before is still valid when the next one is granted.
    Overlap,
    /// The later of two holds has the smaller token.
    StaleToken,
}

/// A hold, and when it was valid. A guard is kept alive by its task only, which releases it.
pub struct Past<G, W> {
    guard: Weak<G>,
    /// Who has it.
    pub who: W,
    pub token: u64,
    pub asked: Duration,
    granted: Duration,
    valid: Duration,
    gone: Option<Duration>,
}

/// Every hold of each lock, by key.
pub struct Histories<G, W> {
    past: BTreeMap<String, Vec<Past<G, W>>>,
    planted: Option<Planted>,
}

impl<G, W> Default for Histories<G, W> {
    fn default() -> Self {
        Self { past: BTreeMap::new(), planted: None }
    }
}

impl<G: Held, W> Histories<G, W> {
    /// Makes the mistake in everything that is remembered from now on.
    pub fn plant(&mut self, mistake: Option<Planted>) {
        self.planted = mistake;
    }

    /// Guards that are no longer valid ended since they were seen last. To be called whenever a guard of the lock is
    /// given out.
    pub fn look(&mut self, key: &str, now: Duration) {
        self.past.get_mut(key).into_iter().flatten().for_each(|past| past.look(now));
    }

    /// A guard that was asked for at that time is given out.
    pub fn remember(&mut self, key: &str, guard: &Arc<G>, who: W, asked: Duration, now: Duration) {
        self.look(key, now);
        // A guard that comes too late has never been valid.
        if !guard.is_valid() {
            return;
        }
        let (guard, token) = (Arc::downgrade(guard), guard.token());
        let mut new = Past { guard, who, token, asked, granted: now, valid: now, gone: None };
        let past = self.past.entry(key.to_owned()).or_default();
        if let (Some(planted), Some(last)) = (self.planted, past.last_mut()) {
            match planted {
                Planted::Overlap => (last.valid, last.gone) = (now + NANO, Some(now + NANO)),
                Planted::StaleToken => std::mem::swap(&mut last.token, &mut new.token),
            }
        }
        past.push(new);
    }

    /// A guard goes.
    pub fn ends(&mut self, key: &str, guard: &Arc<G>, now: Duration) {
        let past = self.past.get_mut(key).into_iter().flatten();
        for past in past.filter(|past| past.guard.as_ptr() == Arc::as_ptr(guard)) {
            past.look(now);
            past.gone.get_or_insert(now);
        }
    }

    /// Every history is linearizable, but for the holds that may overlap others.
    pub fn check(&self, waived: impl Fn(&str, &Past<G, W>) -> bool) -> Result<(), String> {
        for (key, past) in &self.past {
            let holds = past.iter().filter(|past| !waived(key, past));
            let holds: Vec<Hold> = holds.map(Past::hold).collect();
            check(&holds).map_err(|error| format!("I15 {key}: {error}"))?;
        }
        Ok(())
    }
}

const NANO: Duration = Duration::from_nanos(1);

impl<G: Held, W> Past<G, W> {
    fn look(&mut self, now: Duration) {
        let Some(guard) = self.guard.upgrade().filter(|_| self.gone.is_none()) else { return };
        if guard.is_valid() {
            self.valid = now;
        } else {
            self.gone = Some(now);
        }
    }

    fn hold(&self) -> Hold {
        let nanos = |at: Duration| u64::try_from(at.as_nanos()).unwrap();
        Hold {
            asked: nanos(self.asked),
            granted: nanos(self.granted),
            token: self.token,
            ended: self.gone.map(|gone| (nanos(self.valid), nanos(gone))),
        }
    }
}
