//! The clocks of the servers. They differ as far as the documentation allows without an effect on leases: what all of
//! them have in common and the largest difference of two are within the margin by which a client counts less than its
//! lease.

use std::time::Duration;

use super::{Nodes, Place, State};
use crate::executor::{Machine, Process};
use crate::random::Random;

/// What the clocks of servers show before any time has passed.
pub(super) const START: Duration = Duration::from_secs(1_800_000_000);

/// By how many microseconds each is ahead of the slowest one.
const AHEAD: [u64; 4] = [0, 100, 300, 600];

/// By how many millionths all of them go wrong, and each by itself.
const RATES: [i64; 5] = [-100, -50, 0, 50, 100];
const OWN_RATES: [i64; 3] = [-1, 0, 1];

/// How the clocks of the servers differ.
pub(super) struct Clocks {
    random: Random,
    rate: i64,
}

impl State {
    /// Another server, with a clock of its own.
    pub(super) fn place(&mut self, machine: &std::sync::Arc<Machine>) -> Place {
        let now = self.places[0].server.now();
        match &mut self.clocks {
            None => Place::new(machine, now, 0),
            Some(Clocks { random, rate }) => {
                let ahead = Duration::from_micros(*random.pick(&AHEAD));
                Place::new(machine, now + ahead, *rate + *random.pick(&OWN_RATES))
            }
        }
    }
}

impl Nodes {
    /// From now on the clocks of the servers differ. The first one is the slowest.
    pub fn clocks_differ(&self, seed: u64) {
        let mut random = Random::new(seed ^ 0x00c1_0c45);
        let mut state = self.lock();
        let rate = *random.pick(&RATES);
        self.machine.set_rate(state.places[0].clock, rate);
        state.clocks = Some(Clocks { random, rate });
    }

    /// Moves the clocks, forward or back.
    pub fn move_clocks(&self, by: Duration, forward: bool) {
        for place in &self.lock().places {
            let now = place.server.now();
            place.server.set_clock(if forward { now + by } else { now - by });
        }
    }

    /// What the clock of the master shows that has the key.
    pub fn now_of(&self, key: &str) -> Duration {
        let state = self.lock();
        state.places[state.master_with(key)].server.now()
    }

    /// The clock of the master that has the key.
    pub fn clock_of(&self, key: &str) -> Process {
        let state = self.lock();
        state.places[state.master_with(key)].clock
    }
}
