//! A process sleeps or is killed, and the next waiter is granted its hold.

use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::process::Process;
use super::registers::Registers;
use super::{PERMITS, ms};
use crate::support::adapters::bounded;
use crate::support::server::Server;

/// What a busy machine may take on top of any time that a test asserts.
const SLACK: Duration = Duration::from_secs(3);

#[test]
fn a_holder_that_sleeps_through_its_lease_is_told_and_its_write_is_refused() {
    bounded(|| {
        let server = Server::start();
        let mut registers = Registers::open(&server.url());
        let lease = ms(1500);
        let sleeper = Process::with(&server, "sleeper", lease);
        let first = sleeper.hear_token();
        until("its first write", || !registers.unguarded().is_empty());
        sleeper.signal(Signal::STOP);
        let stopped = Instant::now();

        let mut successor = Process::with(&server, "holder", ms(30_000));
        let second = successor.hear_token();
        assert!(stopped.elapsed() < lease + SLACK);
        assert!(second > first);
        assert!(registers.write(second));
        // Longer than the lease, by the process's own clock as well.
        thread::sleep((lease + ms(100)).saturating_sub(stopped.elapsed()));
        sleeper.signal(Signal::CONT);
        assert_eq!(sleeper.hear("valid"), "false");
        assert_eq!(sleeper.hear("accepted"), "false");
        assert_eq!(sleeper.hear("lost"), "Expired");
        assert_eq!(registers.guarded(), second);
        assert_eq!(registers.unguarded(), [first, second, first], "without the token, the late write destroys");
        successor.tell("release");
        successor.hear("released");
        sleeper.finish();
        successor.finish();
    });
}

#[test]
fn a_holder_that_is_killed_is_succeeded_after_its_lease() {
    bounded(|| {
        let server = Server::start();
        let lease = ms(1000);
        let mut holder = Process::with(&server, "holder", lease);
        let first = holder.hear_token();
        let mut next = Process::with(&server, "holder", lease);
        until_waiting(&server, 1);
        holder.kill();
        let killed = Instant::now();
        let second = next.hear_token();
        assert!(killed.elapsed() < lease + SLACK, "{:?}", killed.elapsed());
        assert!(second > first);
        next.tell("release");
        next.hear("released");
        next.finish();
    });
}

#[test]
fn what_a_killed_process_held_comes_back_after_its_lease_and_not_before() {
    bounded(|| {
        let server = Server::start();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let looks = runtime.block_on(bowline::tokio::connect(&server.url())).unwrap();
        for (held, kind, next) in [
            ("reader", "rw", "writer"),
            ("writer", "rw", "reader"),
            ("writer", "rw", "writer"),
            ("permits", "sem", "permits"),
        ] {
            // The next holder has a longer lease. Because it is not renewed meanwhile, the rest of it shows when it
            // began.
            let (lease, long) = (ms(1000), ms(60_000));
            let mut holder = Process::with(&server, held, lease);
            holder.hear("holds");
            let [first] = leases(&server, kind)[..] else { panic!("{held} holds") };
            // By a third of the lease.
            until("renewed", || leases(&server, kind)[0] > first + 100);
            let mut waiter = Process::with(&server, next, long);
            until_queued(&server, &format!("bowline:{kind}:{{a}}:queue"), 1);
            holder.kill();
            let [ends] = leases(&server, kind)[..] else { panic!("{held} is the only holder") };
            // Another client tries all the time, and would get the lock if it came back too early.
            until("the next one holds", || {
                let busy = runtime.block_on(async {
                    match kind {
                        "rw" => looks.rw_lock("a").try_write().await.unwrap().is_none(),
                        _ => looks.semaphore("a", PERMITS).try_acquire_many(2).await.unwrap().is_none(),
                    }
                });
                assert!(busy, "a waiter is in the queue");
                waiter.lines.try_recv().is_ok_and(|line| line.trim() == "holds")
            });
            let [granted_until] = leases(&server, kind)[..] else { panic!("{next} is the only holder") };
            // The time of the grant, by the server's clock.
            let granted = granted_until - 60_000;
            assert!(granted >= ends, "{next} after {held}: {} ms early", ends - granted);
            assert!(granted < ends + SLACK.as_millis() as u64, "{next} after {held}: {} ms late", granted - ends);
            waiter.tell("go");
            waiter.finish();
            until("free", || leases(&server, kind).is_empty());
        }
    });
}

/// When the leases of `a` end, by the server's clock. That of a sole hold is the life of the hash, and may seem to end
/// a millisecond earlier or later.
fn leases(server: &Server, kind: &str) -> Vec<u64> {
    const ENDS: &str = "local ends = redis.call('ZRANGE', KEYS[1] .. ':leases', 0, -1, 'WITHSCORES')
        local left, time = redis.call('PTTL', KEYS[1]), redis.call('TIME')
        if #ends == 0 and left > 0 then ends = {'', time[1] * 1000 + math.floor(time[2] / 1000) + left} end
        return ends";
    let leases: Vec<(String, u64)> =
        redis::cmd("EVAL").arg(ENDS).arg(1).arg(format!("bowline:{kind}:{{a}}")).query(&mut server.client()).unwrap();
    leases.into_iter().map(|(_, ends)| ends).collect()
}

#[test]
fn waiters_that_are_killed_at_the_head_and_in_the_middle_are_skipped() {
    bounded(|| {
        let server = Server::start();
        // Longer than the test may take, so that nothing is granted because of an expiry.
        let lease = ms(120_000);
        let mut holder = Process::with(&server, "holder", lease);
        let mut last = holder.hear_token();
        let mut waiters: Vec<Process> = (1..=4)
            .map(|n| {
                let waiter = Process::with(&server, "holder", lease);
                until_waiting(&server, n);
                waiter
            })
            .collect();
        for n in [0, 2] {
            waiters[n].kill();
        }
        until_subscribed(&server, 3);
        for n in [1, 3] {
            let released = Instant::now();
            holder.tell("release");
            holder.hear("released");
            let token = waiters[n].hear_token();
            assert!(released.elapsed() < SLACK, "{:?}", released.elapsed());
            assert!(token > last);
            last = token;
            std::mem::swap(&mut holder, &mut waiters[n]);
        }
        holder.tell("release");
        holder.hear("released");
    });
}

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < ms(20_000), "never: {what}");
        thread::sleep(ms(5));
    }
}

fn until_waiting(server: &Server, n: u64) {
    until_queued(server, "bowline:lock:{a}:queue", n);
}

fn until_queued(server: &Server, queue: &str, n: u64) {
    let mut redis = server.client();
    until(&format!("{n} wait"), || redis::cmd("LLEN").arg(queue).query::<u64>(&mut redis).unwrap() == n);
}

/// The server has noticed which processes are gone.
fn until_subscribed(server: &Server, n: usize) {
    let mut redis = server.client();
    until(&format!("{n} inboxes"), || {
        let channels: Vec<String> =
            redis::cmd("PUBSUB").arg("CHANNELS").arg("bowline:inbox:*").query(&mut redis).unwrap();
        // Each inbox has the probe of its socket beside it.
        channels.iter().filter(|channel| !channel.trim_start_matches("bowline:inbox:").contains(':')).count() == n
    });
}
