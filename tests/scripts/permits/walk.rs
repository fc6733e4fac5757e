//! Random calls: after each of them no more is held than there is, and no ticket waits that could be served.

use super::lab::{ALL, Permits};
use crate::lab::{Attempt, attempt};

const CLIENTS: u64 = 4;

/// Splitmix64: the same walk for the same seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
    fn one<'a>(&mut self, of: &'a [Attempt]) -> Option<&'a Attempt> {
        of.get(usize::try_from(self.below(of.len().max(1) as u64)).unwrap())
    }
}

#[track_caller]
fn assert_served(lab: &mut Permits, listening: bool) {
    let inspected = lab.inspect();
    assert!(inspected.used <= lab.limit, "{inspected:?}");
    let writers = inspected.holds.iter().filter(|hold| hold.1 == ALL).count();
    assert!(writers == 0 || inspected.holds.len() == 1, "a writer is not alone: {inspected:?}");
    if listening && let Some(head) = lab.waiters().first() {
        let units: u32 = head.rsplit('/').next().unwrap().parse().unwrap();
        assert!(inspected.used + units > lab.limit, "{head} could have been served: {inspected:?}");
    }
}

fn walk(mut lab: Permits, listening: bool, seed: u64) {
    let mut chance = Chance(seed);
    let _inboxes: Vec<_> = (0..if listening { CLIENTS } else { 2 }).map(|c| lab.listen(c as u32)).collect();
    let mut known: Vec<Attempt> = Vec::new();
    for n in 0..200 {
        let client = u32::try_from(chance.below(CLIENTS)).unwrap();
        let units = match lab.limit {
            ALL if chance.below(3) == 0 => ALL,
            ALL => 1,
            limit => 1 + u32::try_from(chance.below(limit.into())).unwrap(),
        };
        let fresh = attempt(client, n).units(units);
        let old = chance.one(&known).cloned().unwrap_or_else(|| fresh.clone());
        match chance.below(12) {
            0..=3 => {
                lab.acquire_as(if chance.below(4) == 0 { "try" } else { "wait" }, &fresh).unwrap();
                known.push(fresh);
            }
            4 | 5 => drop(lab.release(&old)),
            6 => drop(lab.cancel_ticket(&lab.ticket(&old), chance.below(2) == 0)),
            7 => drop(lab.heartbeat(&[&old])),
            8 => {
                lab.change(&old, &fresh);
                known.push(fresh);
            }
            9 => {
                lab.expire_hold(&old);
                lab.heartbeat(&[]);
            }
            10 => {
                lab.expire_ticket(&old);
                lab.heartbeat(&[]);
            }
            _ => {
                lab.acquire_as("wait", &old).unwrap();
                known.push(old);
            }
        }
        assert_served(&mut lab, listening);
    }
    // All attempts end, and only the counter remains.
    for attempt in &known {
        lab.cancel(attempt);
    }
    let keys = lab.server.keys();
    assert!(keys.iter().all(|key| key.ends_with(":fence")), "{keys:?}");
}

#[test]
fn semaphores() {
    for seed in 0..2 {
        walk(Permits::semaphore(4), true, seed);
        walk(Permits::semaphore(3), false, 100 + seed);
    }
}

#[test]
fn read_write_locks() {
    for seed in 0..2 {
        walk(Permits::read_write(), true, seed);
        walk(Permits::read_write(), false, 100 + seed);
    }
}
