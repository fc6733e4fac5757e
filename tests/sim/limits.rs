//! What operators do to semaphores, and what that does to requests for more.

use std::time::Duration;

use crate::actor::Actor;
use crate::judge::view::permits;
use crate::world::MS;

impl Actor {
    /// Up, down, or back to what the call sites say.
    pub async fn set_limit(&mut self, name: &str) {
        let usual = permits(name);
        let other = 1 + self.random.below(2 * u64::from(usual)) as u32;
        let limit = *self.random.pick(&[usual, other]);
        let gives_up = self.maybe_gives_up(6, 5 * MS);
        let awake = self.world.machine.awake(self.process);
        let semaphore = self.client.semaphore(name, usual);
        let done = self.or_give_up(semaphore.set_limit(limit), gives_up).await;
        self.in_time(name, awake, Some(self.world.longest_try()));
        match done {
            Some(Ok(())) => self.world.log(format!("{} {name} limit {limit}", self.name)),
            Some(Err(error)) => self.failed(name, &error),
            None => self.world.log(format!("{} {name} limit {limit} dropped", self.name)),
        }
    }

    /// An acquisition has ended: only if it asked for more than the limit is it told so, and then soon.
    pub fn over_limit(&self, key: &str, units: u64, started: Duration, told: bool) {
        let (judge, now) = (&self.world.server.judge, self.world.machine.now());
        let right = !told || judge.was_less(key, units, started);
        self.world.must(right, || format!("I5 {} is told that {units} are over the limit of {key}", self.name));
        // Three messages: that the ticket is gone, the question why, and the answer.
        let bound = 3 * self.world.longest_delay + MS;
        let late = judge.less_for(key, units).map(|since| since.min(now - started)).filter(|since| *since > bound);
        self.world.must(late.is_none() || self.world.faults.any(), || {
            format!("I3 {} waits for {units}, more than the limit of {key} for {late:?}", self.name)
        });
    }
}
