//! Every operation of a latch, dropped half way: others wait for it and count it down.

use std::time::Duration;

use bowline::ErrorKind;
use bowline::wire::{PREFIX, Resource};
use bowline_testkit::memory::is_memory;

use super::NAME;
use super::afterwards::bound;
use super::operation::{Operation, PLAIN, drops, shared};
use super::polled::{Ended, Then};
use super::rivals::Rivals;
use super::scene::{Fault, LONGEST, Scene};
use crate::world::MS;

/// What the others have done to the latch when the operation begins, or do soon after.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Standing {
    None,
    /// Another client waits for it.
    Closed,
    /// And another client opens it meanwhile.
    Opened,
}

pub const STANDINGS: [Standing; 3] = [Standing::None, Standing::Closed, Standing::Opened];

/// Longer than anything that happens to a latch.
const TTL: Duration = Duration::from_secs(60);

/// What the operation may set is over before anybody looks.
const SHORT: Duration = Duration::from_secs(2);

/// As long as calls are remembered: the retry timeout of a client, and a command.
const REMEMBERED: Duration = Duration::from_millis(10_000 + 3_200);

pub const OPERATIONS: &[Operation] = &[
    Operation {
        name: "try_set",
        start: |s| shared(s, |client| drops(async move { client.latch(NAME).try_set(2, SHORT).await })),
        ..PLAIN
    },
    Operation {
        name: "count_down",
        start: |s| shared(s, |client| drops(async move { client.latch(NAME).count_down().await })),
        ..PLAIN
    },
    Operation {
        name: "wait",
        start: |s| shared(s, |client| drops(async move { client.latch(NAME).wait().await })),
        ..PLAIN
    },
    Operation {
        name: "wait, timeout",
        start: |s| shared(s, |client| drops(async move { client.latch(NAME).wait().timeout(1000 * MS).await })),
        fails: &[ErrorKind::TimedOut],
        ..PLAIN
    },
    Operation {
        name: "wait, timeout within a round trip",
        start: |s| shared(s, |client| drops(async move { client.latch(NAME).wait().timeout(MS).await })),
        fails: &[ErrorKind::TimedOut],
        ..PLAIN
    },
    Operation {
        name: "count",
        start: |s| shared(s, |client| drops(async move { client.latch(NAME).count().await })),
        ..PLAIN
    },
    Operation {
        name: "inspect of a latch",
        start: |s| shared(s, |client| drops(async move { client.latch(NAME).inspect().await })),
        ..PLAIN
    },
    Operation {
        name: "delete",
        start: |s| shared(s, |client| drops(async move { client.latch(NAME).delete().await })),
        robs: true,
        ..PLAIN
    },
];

impl Scene {
    /// As [`drop_after`](Self::drop_after), with what others do to the latch.
    pub fn drop_beside_latch(
        &mut self,
        operation: &Operation,
        (standing, fault): (Standing, Fault),
        polls: usize,
        then: Then,
    ) -> Ended {
        let (mut subject, idle, tasks_before) = self.idle_subject(operation);
        let rivals = Rivals::new(&self.world);
        let latch = self.other.latch(NAME);
        if standing != Standing::None {
            let set = self.run("set", {
                let latch = latch.clone();
                async move { latch.try_set(2, TTL).await }
            });
            self.must(set.unwrap(), "the latch is set");
            rivals.spawn("the waiter", Duration::ZERO, {
                let latch = latch.clone();
                async move { latch.wait().await }
            });
            self.within(4 * LONGEST, "it waits", || self.tickets());
        }
        if standing == Standing::Opened {
            let latch = latch.clone();
            rivals.spawn("who counts", self.draw(5 * MS), async move {
                latch.count_down().await?;
                latch.count_down().await.map(drop)
            });
        }
        self.inflict(fault, &subject);
        let ended = self.poll(operation, &mut subject, polls, then);
        // Checked now, because the call that opens the latch removes all tickets.
        self.within(bound(fault, 4 * LONGEST), "only the waiter waits", || self.server.living().len() <= 1);
        rivals.spawn("who counts the rest", Duration::ZERO, {
            let latch = latch.clone();
            async move {
                while latch.count_down().await? > 0 {}
                Ok(())
            }
        });
        self.others_are_served(operation, fault, &rivals, &ended, operation.robs);
        self.run("delete", async move { latch.delete().await }).unwrap();
        self.nothing_is_left(operation, fault, &subject, idle);
        self.pass(REMEMBERED);
        let mut keys = self.server.keys();
        keys.retain(|key| !is_memory(key));
        self.must(keys.is_empty(), &format!("in the end: {keys:?}"));
        self.idle = Some((subject, idle, tasks_before));
        ended
    }

    /// Whether a ticket waits for the latch.
    fn tickets(&self) -> bool {
        let [_, tickets, ..] = &Resource::latch(PREFIX, NAME).unwrap().keys()[..] else {
            panic!("a latch has tickets")
        };
        self.server.keys().contains(tickets)
    }
}
