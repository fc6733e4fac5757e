//! What must hold of the guards that processes have.

use std::sync::Arc;
use std::time::Duration;

use super::{MS, State, Workload, World};
use bowline::Loss;

use crate::actor::Actor;
use crate::executor::Process;
use crate::guard::{Guard, What};
use crate::judge::view::WRITE;
use crate::judge::{Known, OPENING, PAUSE};

/// A guard and its owner.
#[derive(Clone)]
pub struct Seen {
    pub process: Process,
    pub client: String,
    pub started: Duration,
    pub guard: Arc<Guard>,
    pub got: Got,
}

/// How an actor came to a guard.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Got {
    Granted,
    /// An upgradable reader with that token has become the writer.
    Upgraded {
        from: u64,
    },
    /// A writer that goes on as a reader, or what could not be changed.
    Kept,
    /// The hold, with that many units, is another guard's too.
    Entered {
        units: u64,
    },
}

impl World {
    /// A guard was given out.
    pub fn acquired(&self, actor: &Actor, name: &str, started: Duration, guard: &Arc<Guard>, got: Got) {
        let now = self.machine.now();
        let key = guard.what().key(name);
        let client = actor.client.id().to_string();
        let mut seen = Seen { process: actor.process, client: client.clone(), started, guard: guard.clone(), got };
        // Readers form no cohort. Readers inside a writer's holder are an exception.
        let known = seen.known(&key);
        let is_reader = matches!(guard.what(), What::Read | What::Upgradable);
        let asked = self.server.judge.asked(&known).filter(|_| !is_reader || known.units == WRITE);
        let started = asked.map_or(started, |asked| asked.min(started));
        seen.started = started;
        self.server.judge.delivered(&seen.known(&key));
        self.backed(&key, &seen);
        let most = self.server.judge.most(&key, started);
        let broken = {
            let mut state = self.state.lock().unwrap();
            state.acquired += 1;
            let waived = |seen: &Seen, lost_at| self.waives(&key, seen, lost_at);
            let forsaken = |token| self.server.judge.is_token_forsaken(&key, token, self.replicas > 0);
            let highest =
                state.tokens.get(&key).and_then(|tokens| tokens.iter().rev().find(|token| !forsaken(**token)));
            let highest = highest.copied().unwrap_or(0);
            let broken = state.overlaps(&key, &seen, most, waived);
            let overlaps = state.overlaps(&key, &seen, most, |_, _| false).is_some();
            state.waived += u64::from(broken.is_none() && overlaps);
            let broken = broken.or_else(|| state.token(&key, &seen, highest, waived));
            let broken = broken.or_else(|| state.between(&key, &seen, waived));
            state.remember(&key, &seen, now);
            state.guards.entry(key.clone()).or_default().push(seen);
            let released = if got.is_new() { state.released_at.remove(&key) } else { None };
            let messages = match self.workload {
                // The client asks once more after the message.
                _ if matches!(got, Got::Upgraded { .. }) => 4,
                // If half of a short lease is over when the grant arrives, the client asks again.
                Workload::Leases => 4,
                // The guard may go before the client learns that another one wants the lock.
                Workload::Retained => 3,
                Workload::Locks | Workload::Permits | Workload::Latches => 2,
            };
            let bound = messages * self.longest_delay + MS / 10;
            // The inbox of the slot may have been opened meanwhile. The gap behind that is followed by a heartbeat.
            let bound = if self.faults.sharded { bound + (OPENING + 2) * self.longest_delay + PAUSE } else { bound };
            let late = released.map(|released| now - released).filter(|took| *took > bound);
            broken.or_else(|| Some(format!("I3 {key}: handed over after {:?}, not {bound:?}", late?)))
        };
        if let Some(broken) = broken {
            self.must(false, || broken);
        }
    }

    /// I1, whether anybody else comes or not: a guard never counts on more than the server has left of its lease.
    fn backed(&self, key: &str, seen: &Seen) {
        let Seen { process, guard, .. } = seen;
        let lost_at = self.state.lock().unwrap().lost_at;
        if self.waives(key, seen, lost_at) {
            return;
        }
        let counted = self.machine.takes(*process, guard.remaining());
        let left = self.server.left(&seen.known(key));
        // A key still exists in its last millisecond.
        let backed = counted.is_zero() || counted <= left + MS;
        self.must(backed, || format!("I1 {key}: process {process} counts on {counted:?}, and the server on {left:?}"));
    }

    /// The holder is told that its lease is lost: it ran out by the client's count, or the server has it no more.
    pub fn lost(&self, name: &str, guard: &Arc<Guard>, loss: Loss) {
        let key = guard.what().key(name);
        let left = {
            let state = self.state.lock().unwrap();
            let seen = state.guards.get(&key).into_iter().flatten().find(|seen| Arc::ptr_eq(&seen.guard, guard));
            let seen = seen.filter(|seen| !self.waives(&key, seen, state.lost_at));
            // Two readers of one client have the same token, and one of them can be lost.
            let seen = seen.filter(|seen| !self.server.judge.is_ambiguous(&seen.known(&key)));
            // A replaced master knows nothing of what the new one grants.
            let seen = seen.filter(|seen| !self.server.judge.is_astray(&seen.known(&key)));
            seen.map(|seen| self.server.left(&seen.known(&key))).unwrap_or_default()
        };
        self.must(loss != Loss::Gone || left.is_zero(), || {
            format!("a lease is lost of {key}, and the server has {left:?} of it")
        });
    }

    /// The guard is still there, and counts on no more of its lease than the server has.
    pub fn keeps(&self, name: &str, guard: &Arc<Guard>) {
        let key = guard.what().key(name);
        let seen = {
            let state = self.state.lock().unwrap();
            let seen = state.guards.get(&key).into_iter().flatten().find(|seen| Arc::ptr_eq(&seen.guard, guard));
            seen.cloned()
        };
        if let Some(seen) = seen {
            self.backed(&key, &seen);
        }
    }

    /// What the server has left of the hold.
    pub fn left(&self, actor: &Actor, name: &str, guard: &Guard) -> Duration {
        let (key, client) = (guard.what().key(name), actor.client.id().to_string());
        let (units, token) = (guard.units(), guard.token());
        self.server.left(&Known { key: &key, client: &client, units, token, is_new: false })
    }

    /// The last guard of a hold goes: the first waiter gets the lock within two messages. So it is with permits if
    /// no other holder has any.
    pub fn handing_over(&self, key: &str) {
        if self.calm && self.server.queued(key) > 0 {
            let mut state = self.state.lock().unwrap();
            if state.guards.get(key).is_none_or(Vec::is_empty) {
                state.released_at.insert(key.to_owned(), self.machine.now());
            }
        }
    }

    /// The guard goes.
    pub fn gone(&self, name: &str, guard: &Arc<Guard>) {
        let key = guard.what().key(name);
        let gone = {
            let mut state = self.state.lock().unwrap();
            let seen = state.guards.entry(key.clone()).or_default();
            let seen = seen.iter().position(|seen| Arc::ptr_eq(&seen.guard, guard)).map(|at| seen.remove(at));
            state.ends(&key, guard, self.machine.now());
            seen
        };
        if let Some(seen) = gone {
            self.backed(&key, &seen);
        }
    }
}

impl World {
    /// A hold may overlap with others if it was requested before a loss of data, or if a failover has lost it. If all
    /// replicas had to acknowledge it, a failover may lose it only if its slot had moved and not all keys had arrived
    /// at the promoted replica.
    fn waives(&self, key: &str, seen: &Seen, lost_at: Option<Duration>) -> bool {
        self.waives_hold(seen.started, &seen.known(key), lost_at)
    }

    pub(super) fn waives_hold(&self, started: Duration, known: &Known<'_>, lost_at: Option<Duration>) -> bool {
        let forsaken = || self.server.judge.is_forsaken(known, self.replicas > 0);
        lost_at.is_some_and(|lost| started <= lost) || (self.faults.forks && forsaken())
    }
}

type LostAt = Option<Duration>;

impl State {
    /// I1, I5, I6: valid guards have no more together than there was at most since the last of them was asked for.
    fn overlaps(&self, key: &str, new: &Seen, most: u64, waived: impl Fn(&Seen, LostAt) -> bool) -> Option<String> {
        if !new.guard.is_valid() || matches!(new.got, Got::Entered { .. }) || waived(new, self.lost_at) {
            return None;
        }
        let others = self.guards.get(key).into_iter().flatten();
        let counts = |seen: &&Seen| seen.guard.is_valid() && !matches!(seen.got, Got::Entered { .. });
        let others: Vec<&Seen> = others.filter(counts).filter(|seen| !waived(seen, self.lost_at)).collect();
        let used: u64 = others.iter().map(|seen| seen.guard.units()).sum();
        if used + new.guard.units() <= most {
            return None;
        }
        let invariant = match new.guard.what() {
            What::Lock => "I1",
            What::Read | What::Upgradable | What::Write => "I6",
            What::Permits(_) => "I5",
        };
        let others: Vec<_> = others.iter().map(|seen| seen.tell()).collect();
        Some(format!("{invariant} {key}: {}, and {others:?} are valid", new.tell()))
    }

    /// I2. Readers share the token of the last writer.
    fn token(&mut self, key: &str, new: &Seen, highest: u64, waived: impl Fn(&Seen, LostAt) -> bool) -> Option<String> {
        let token = new.guard.token();
        if !new.got.is_new() || matches!(new.guard.what(), What::Permits(_)) {
            return None;
        }
        let reads = matches!(new.guard.what(), What::Read | What::Upgradable);
        if waived(new, self.lost_at) {
            return None;
        }
        if !reads {
            self.tokens.entry(key.to_owned()).or_default().insert(token);
        }
        let right = if reads { token >= highest } else { token > highest };
        (!right).then(|| format!("I2 {key}: token {token} after {highest}"))
    }

    /// I6: nobody has written between what an upgradable reader has read and what it writes.
    fn between(&self, key: &str, new: &Seen, waived: impl Fn(&Seen, LostAt) -> bool) -> Option<String> {
        let Got::Upgraded { from } = new.got else { return None };
        let to = new.guard.token();
        let between = self.tokens.get(key)?.range(from + 1..to).next().filter(|_| !waived(new, self.lost_at))?;
        Some(format!("I6 {key}: {between} wrote between {from} and its upgrade to {to}"))
    }
}

impl Got {
    /// No other guard had the hold before.
    pub fn is_new(self) -> bool {
        matches!(self, Self::Granted | Self::Upgraded { .. })
    }
}

impl Seen {
    fn known<'a>(&'a self, key: &'a str) -> Known<'a> {
        let units = match self.got {
            Got::Entered { units } => units,
            Got::Granted | Got::Upgraded { .. } | Got::Kept => self.guard.units(),
        };
        let (client, token) = (&*self.client, self.guard.token());
        Known { key, client, units, token, is_new: self.got.is_new() }
    }

    fn tell(&self) -> String {
        let Self { process, guard, .. } = self;
        format!("process {process} has {:?} token {} until +{:?}", guard.what(), guard.token(), guard.remaining())
    }
}
