//! Ten thousand waiters: many calls, none of them long.

use std::collections::BTreeSet;

use super::lab::{LEASES, PERMITS, Permits, writer};
use crate::lab::{Acquired, Attempt, RELEASED, Released, attempt};

const WAITERS: u32 = 10_000;

/// What the longest call of the script took in the server.
fn slowest_us(lab: &mut Permits) -> u64 {
    let slow: Vec<Vec<redis::Value>> = redis::cmd("SLOWLOG").arg("GET").arg(-1).query(&mut lab.connection).unwrap();
    let took = |entry: &Vec<redis::Value>| redis::from_redis_value::<u64>(entry[2].clone()).unwrap();
    slow.iter().map(took).max().unwrap_or(0)
}

fn queue_all(lab: &mut Permits) -> Vec<Attempt> {
    let waiters: Vec<_> = (0..WAITERS).map(|i| attempt(10 + i % 100, u64::from(i)).patient()).collect();
    lab.checked = false;
    for waiter in &waiters {
        assert!(matches!(lab.acquire(waiter), Acquired::Queued { .. }));
    }
    waiters
}

/// How many waiters one call may grant to.
const GRANTS: u32 = 128;

/// The writer's release wakes them all, so many a call.
#[test]
fn ten_thousand_readers() {
    let mut lab = Permits::read_write();
    let w = writer(1, 1).patient();
    lab.hold(&[&w]);
    let waiters = queue_all(&mut lab);
    let inboxes: Vec<_> = (10..110).map(|client| lab.listen(client)).collect();
    lab.raw(&["CONFIG", "SET", "slowlog-log-slower-than", "0"]);
    lab.raw(&["CONFIG", "SET", "slowlog-max-len", "1000"]);
    lab.raw(&["SLOWLOG", "RESET"]);
    assert_eq!(lab.release(&w), Released::Released { more: true });
    assert_eq!(lab.waiters().len(), (WAITERS - GRANTS) as usize);
    let mut calls = 1;
    while lab.heartbeat(&[]).more {
        calls += 1;
    }
    assert_eq!(calls, WAITERS / GRANTS);
    println!("the slowest of {calls} calls took {} us", slowest_us(&mut lab));
    lab.assert_queue(&[]);
    assert_eq!(lab.raw_used(), u64::from(WAITERS));
    let mut told = BTreeSet::new();
    for inbox in &inboxes {
        for message in lab.read(inbox) {
            assert!(told.insert(message.rsplit(' ').next().unwrap().to_owned()), "told twice: {message}");
        }
    }
    assert_eq!(told.len(), WAITERS as usize);
    // All of them are removed, in the order of their arrival.
    for waiter in &waiters {
        assert_eq!(lab.release(waiter), RELEASED);
    }
    lab.checked = true;
    lab.hold(&[&writer(1, 2)]);
}

/// All readers crash: their leases are purged 256 a call.
#[test]
fn ten_thousand_expired_readers() {
    let mut lab = Permits::read_write();
    let w = writer(1, 1).patient();
    lab.hold(&[&w]);
    let waiters = queue_all(&mut lab);
    let _inboxes: Vec<_> = (10..110).map(|client| lab.listen(client)).collect();
    lab.release(&w);
    while lab.heartbeat(&[]).more {}
    for waiter in &waiters {
        lab.expire_hold(waiter);
    }
    let next = writer(1, 2);
    let mut calls = 1;
    while let Acquired::Busy { more: true, .. } = lab.try_acquire(&next) {
        calls += 1;
        assert!(calls < 100);
    }
    assert_eq!(calls, WAITERS.div_ceil(256));
    lab.checked = true;
    lab.assert_held(&[&next]);
}

/// All holders crash, and with the last lease its key is gone; that of the stored limit stays.
#[test]
fn ten_thousand_holders_that_a_stored_limit_outlives() {
    let mut lab = Permits::semaphore(2 * WAITERS);
    lab.set_limit(WAITERS);
    lab.checked = false;
    for n in 0..u64::from(WAITERS) {
        lab.acquire(&attempt(1, n).patient()).granted();
    }
    lab.del(LEASES);
    lab.count_commands();
    let next = attempt(2, 1);
    assert!(matches!(lab.try_acquire(&next), Acquired::Granted(_)));
    for command in ["hdel", "zscore", "hgetall"] {
        let calls = lab.executed(command);
        assert!(calls < 10, "{calls} times {command}");
    }
    lab.checked = true;
    assert_eq!(lab.inspect().limit, WAITERS);
    lab.assert_held(&[&next]);
    assert!(lab.ttl(PERMITS) > 80_000_000);
}
