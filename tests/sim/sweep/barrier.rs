//! Every operation of a barrier, dropped half way: others wait at it, and complete the generation.

use std::time::Duration;

use bowline::wire::{PREFIX, Resource};
use bowline::{Barrier, ErrorKind, Result};

use super::NAME;
use super::afterwards::bound;
use super::operation::{Operation, PLAIN, drops, shared};
use super::polled::{Ended, Then};
use super::rivals::Rivals;
use super::scene::{Fault, LONGEST, Scene};
use crate::world::MS;

/// The others that are at the barrier when the operation begins, or come soon after.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Company {
    None,
    /// One waits.
    One,
    /// One waits, and another one arrives meanwhile: with the operation, all are there.
    All,
}

pub const COMPANIES: [Company; 3] = [Company::None, Company::One, Company::All];

const PARTIES: u32 = 3;

pub const OPERATIONS: &[Operation] = &[
    Operation {
        name: "wait at a barrier",
        start: |s| shared(s, |client| drops(async move { client.barrier(NAME, PARTIES).wait().await })),
        fails: &[ErrorKind::Broken],
        ..PLAIN
    },
    Operation {
        name: "wait at a barrier, timeout",
        start: |s| {
            shared(s, |client| drops(async move { client.barrier(NAME, PARTIES).wait().timeout(1000 * MS).await }))
        },
        fails: &[ErrorKind::Broken, ErrorKind::TimedOut],
        ..PLAIN
    },
    Operation {
        name: "wait at a barrier, timeout within a round trip",
        start: |s| shared(s, |client| drops(async move { client.barrier(NAME, PARTIES).wait().timeout(MS).await })),
        fails: &[ErrorKind::Broken, ErrorKind::TimedOut],
        ..PLAIN
    },
    Operation {
        name: "wait at a barrier of one",
        start: |s| shared(s, |client| drops(async move { client.barrier("of one", 1).wait().await })),
        ..PLAIN
    },
    Operation {
        name: "reset of a barrier",
        start: |s| shared(s, |client| drops(async move { client.barrier(NAME, PARTIES).reset().await })),
        ..PLAIN
    },
    Operation {
        name: "inspect of a barrier",
        start: |s| shared(s, |client| drops(async move { client.barrier(NAME, PARTIES).inspect().await })),
        ..PLAIN
    },
];

/// When another party comes, at the latest.
const COMES: Duration = Duration::from_millis(5);

/// A party that comes back when its generation is broken, at most so often.
async fn passes(barrier: Barrier) -> Result<()> {
    for _ in 0..5 {
        match barrier.wait().await {
            Err(error) if error.kind() == ErrorKind::Broken => {}
            told => return told.map(drop),
        }
    }
    barrier.wait().await.map(drop)
}

impl Scene {
    /// As [`drop_after`](Self::drop_after), with others at the barrier.
    pub fn drop_at_barrier(
        &mut self,
        operation: &Operation,
        (company, fault): (Company, Fault),
        polls: usize,
        then: Then,
    ) -> Ended {
        let (mut subject, idle, tasks_before) = self.idle_subject(operation);
        let rivals = Rivals::new(&self.world);
        let barrier = self.other.barrier(NAME, PARTIES);
        if company != Company::None {
            rivals.spawn("the one that waits", Duration::ZERO, passes(barrier.clone()));
            self.within(4 * LONGEST, "it waits", || self.parties() == 1);
        }
        if company == Company::All {
            rivals.spawn("the one that comes", self.draw(COMES), passes(barrier.clone()));
        }
        self.inflict(fault, &subject);
        let ended = self.poll(operation, &mut subject, polls, then);
        // An operation that is not polled has let no time pass.
        self.within(COMES + bound(fault, 4 * LONGEST), "those that come have come", || rivals.have_begun());
        // If the operation has passed, so have the others. Else they wait, or are about to come back.
        let waiting = usize::from(company != Company::None) + usize::from(company == Company::All);
        let only_they = || rivals.have_ended() && self.parties() == 0 || self.parties() == waiting;
        self.within(bound(fault, 8 * LONGEST), "only the others wait", only_they);
        // A request of the operation may still be under way.
        self.pass(bound(fault, 4 * LONGEST));
        if !rivals.have_ended() {
            self.within(bound(fault, 8 * LONGEST), "only the others wait", || self.parties() == waiting);
        }
        let missing = if rivals.have_ended() { PARTIES as usize } else { PARTIES as usize - waiting };
        for _ in 0..missing {
            rivals.spawn("one that was missing", Duration::ZERO, passes(barrier.clone()));
        }
        self.others_are_served(operation, fault, &rivals, &ended, operation.robs);
        self.nothing_is_left(operation, fault, &subject, idle);
        self.idle = Some((subject, idle, tasks_before));
        ended
    }

    /// How many wait.
    fn parties(&self) -> usize {
        let [_, tickets, _] = &Resource::barrier(PREFIX, NAME, PARTIES, Duration::ZERO).unwrap().keys()[..] else {
            panic!("a barrier has tickets")
        };
        self.server.members(tickets)
    }
}
