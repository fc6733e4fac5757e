//! Every operation of a semaphore and a latch that Java shares, dropped half way: all permits come back.

use std::time::Duration;

use bowline::ErrorKind;

use super::NAME;
use super::afterwards::LATE;
use super::operation::{Operation, PLAIN, drops, shared};
use super::polled::{Ended, Then};
use super::rivals::Rivals;
use super::scene::{Fault, Scene};
use crate::world::MS;

pub mod timed;

/// What the other client has when the operation begins, of both permits and of a latch of 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Taken {
    /// Nothing.
    None,
    /// All of them, until the operation is dropped.
    All,
    /// All of them, which are given meanwhile.
    Given,
}

pub const SITUATIONS: [Taken; 3] = [Taken::None, Taken::All, Taken::Given];

const PERMITS: u32 = 2;

/// As long as a copy of a request may come, a background task may go on, and a channel is subscribed.
const QUIET: Duration = Duration::from_millis(10_000 + 3_200 + 3_000);

pub const OPERATIONS: &[Operation] = &[
    Operation {
        name: "java acquire",
        start: |s| shared(s, |client| drops(async move { client.redisson().semaphore(NAME).acquire().await })),
        ..PLAIN
    },
    Operation {
        name: "java acquire, timeout within a round trip",
        start: |s| {
            shared(s, |client| drops(async move { client.redisson().semaphore(NAME).acquire().timeout(MS).await }))
        },
        fails: &[ErrorKind::TimedOut],
        ..PLAIN
    },
    Operation {
        name: "java try_acquire",
        start: |s| {
            shared(s, |client| drops(async move { client.redisson().semaphore(NAME).try_acquire_many(2).await }))
        },
        ..PLAIN
    },
    Operation {
        name: "java drain",
        start: |s| shared(s, |client| drops(async move { client.redisson().semaphore(NAME).drain().await })),
        ..PLAIN
    },
    Operation {
        name: "a section with java permits",
        start: |s| {
            shared(s, |client| {
                drops(async move { client.redisson().semaphore(NAME).acquire_many(2).await?.release().await })
            })
        },
        ..PLAIN
    },
    Operation {
        name: "java wait",
        start: |s| shared(s, |client| drops(async move { client.redisson().count_down_latch("latch").wait().await })),
        ..PLAIN
    },
];

impl Scene {
    /// As [`drop_after`](Self::drop_after), with permits and a latch that the other client has.
    pub fn drop_beside_java(
        &mut self,
        operation: &Operation,
        (taken, fault): (Taken, Fault),
        polls: usize,
        then: Then,
    ) -> Ended {
        self.server.unwatched();
        let (mut subject, idle, tasks_before) = self.idle_subject(operation);
        let (rivals, tasks) = (Rivals::new(&self.world), self.machine.live().0);
        let (semaphore, latch) =
            (self.other.redisson().semaphore(NAME), self.other.redisson().count_down_latch("latch"));
        let (of_both, is_taken) = ((semaphore.clone(), latch.clone()), taken != Taken::None);
        let held = self.run("take", async move {
            let (semaphore, latch) = of_both;
            semaphore.try_set_permits(PERMITS).await.unwrap();
            if !is_taken {
                return None;
            }
            latch.try_set_count(1).await.unwrap();
            Some(semaphore.acquire_many(PERMITS).await.unwrap())
        });
        let mut give = held.map(|held| {
            let latch = latch.clone();
            async move {
                latch.count_down().await?;
                held.release().await
            }
        });
        if taken == Taken::Given {
            rivals.spawn("who gives", self.draw(5 * MS), give.take().unwrap());
        }
        self.inflict(fault, &subject);
        let ended = self.poll(operation, &mut subject, polls, then);
        if let Some(give) = give {
            rivals.spawn("who gives", Duration::ZERO, give);
        }
        let all = semaphore.clone();
        rivals.spawn("who takes all", Duration::ZERO, async move { all.acquire_many(PERMITS).await?.release().await });
        self.others_are_served(operation, fault, &rivals, &ended, operation.robs);
        // No copy comes later.
        self.pass(QUIET.max(LATE));
        let there = self.run("look", async move { semaphore.available().await.unwrap() });
        self.must(there == u64::from(PERMITS), &format!("{there} permits are there"));
        let deleted = self.server.nodes.server().eval("return redis.call('DEL', KEYS[1])", &[NAME.as_bytes()], &[]);
        self.must(deleted.is_ok(), "the semaphore is deleted");
        self.nothing_is_left(operation, fault, &subject, idle);
        // The simulated network keeps the reader of a channel until its link changes, and the other client's does not.
        let readers = self.machine.live().0.saturating_sub(tasks);
        self.idle = Some((subject, idle, tasks_before + readers));
        ended
    }
}
