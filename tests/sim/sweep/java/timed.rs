//! Every operation of permits with leases, dropped half way: all come back long before a lease ends.

use std::time::Duration;

use bowline::ErrorKind;

use super::super::operation::{Operation, PLAIN, drops, shared};
use super::{Ended, Fault, LATE, MS, NAME, PERMITS, QUIET, Rivals, Scene, Taken, Then};

pub const OPERATIONS: &[Operation] = &[
    Operation {
        name: "java acquire, with a lease",
        start: |s| shared(s, |client| drops(async move { client.redisson().permit_semaphore(NAME).acquire().await })),
        ..PLAIN
    },
    Operation {
        name: "java acquire, with a lease, timeout within a round trip",
        start: |s| {
            shared(s, |client| {
                drops(async move { client.redisson().permit_semaphore(NAME).acquire().timeout(MS).await })
            })
        },
        fails: &[ErrorKind::TimedOut],
        ..PLAIN
    },
    Operation {
        name: "java try_acquire, with a lease",
        start: |s| {
            shared(s, |client| drops(async move { client.redisson().permit_semaphore(NAME).try_acquire().await }))
        },
        ..PLAIN
    },
    Operation {
        name: "a section with a java permit that has a lease",
        start: |s| {
            shared(s, |client| {
                drops(async move { client.redisson().permit_semaphore(NAME).acquire().await?.release().await })
            })
        },
        ..PLAIN
    },
];

impl Scene {
    /// As [`drop_beside_java`](Self::drop_beside_java), with permits that have leases.
    pub fn drop_beside_leases(
        &mut self,
        operation: &Operation,
        (taken, fault): (Taken, Fault),
        polls: usize,
        then: Then,
    ) -> Ended {
        self.server.unwatched();
        let (mut subject, idle, tasks_before) = self.idle_subject(operation);
        let (rivals, tasks) = (Rivals::new(&self.world), self.machine.live().0);
        let semaphore = self.other.redisson().permit_semaphore(NAME);
        let (of_other, is_taken) = (semaphore.clone(), taken != Taken::None);
        let held = self.run("take", async move {
            of_other.try_set_permits(PERMITS).await.unwrap();
            if !is_taken {
                return None;
            }
            Some([of_other.acquire().await.unwrap(), of_other.acquire().await.unwrap()])
        });
        let mut give = held.map(|[one, other]| async move {
            one.release().await?;
            other.release().await
        });
        if taken == Taken::Given {
            rivals.spawn("who gives", self.draw(5 * MS), give.take().unwrap());
        }
        self.inflict(fault, &subject);
        let ended = self.poll(operation, &mut subject, polls, then);
        if let Some(give) = give {
            rivals.spawn("who gives", Duration::ZERO, give);
        }
        let one = semaphore.clone();
        rivals.spawn("who takes one", Duration::ZERO, async move { one.acquire().await?.release().await });
        self.others_are_served(operation, fault, &rivals, &ended, operation.robs);
        // No copy comes later.
        self.pass(QUIET.max(LATE));
        let there = self.run("look", async move { semaphore.inspect().await.unwrap() });
        self.must((there.available, there.acquired) == (PERMITS.into(), 0), &format!("{there:?}"));
        let deleted = self.server.nodes.server().eval("return redis.call('DEL', KEYS[1])", &[NAME.as_bytes()], &[]);
        self.must(deleted.is_ok(), "the semaphore is deleted");
        self.nothing_is_left(operation, fault, &subject, idle);
        // The simulated network keeps the reader of a channel until its link changes, and the other client's does not.
        let readers = self.machine.live().0.saturating_sub(tasks);
        self.idle = Some((subject, idle, tasks_before + readers));
        ended
    }
}
