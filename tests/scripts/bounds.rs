//! Ten thousand waiters.

use std::collections::BTreeSet;

use crate::lab::{Acquired, Attempt, CANCELLED, Lab, RELEASED, State, attempt};

const WAITERS: u32 = 10_000;

#[track_caller]
fn assert_list_is_zset(lab: &mut Lab, length: usize) {
    let list: BTreeSet<String> = lab.waiters().into_iter().collect();
    let key = lab.keys[2].clone();
    let zset: BTreeSet<String> = redis::cmd("ZRANGE").arg(key).arg(0).arg(-1).query(&mut lab.connection).unwrap();
    assert_eq!(list.len(), length);
    assert_eq!(list, zset);
}

#[test]
fn ten_thousand_tickets() {
    let mut lab = Lab::new();
    lab.checked = false;
    let a = attempt(1, 1).patient();
    lab.acquire(&a).token();
    let waiters: Vec<Attempt> = (0..WAITERS).map(|i| attempt(10 + i % 100, u64::from(i)).patient()).collect();
    for waiter in &waiters {
        lab.acquire(waiter);
    }
    assert_list_is_zset(&mut lab, 10_000);
    for (i, waiter) in waiters.iter().enumerate().rev().take(50) {
        assert_eq!(lab.cancel_ticket(&waiter.ticket(), i % 2 == 0), Ok(CANCELLED));
    }
    for (i, waiter) in waiters.iter().enumerate().skip(1).take(50) {
        assert_eq!(lab.cancel_ticket(&waiter.ticket(), i % 2 == 0), Ok(CANCELLED));
    }
    assert_list_is_zset(&mut lab, 9_900);
    let _inboxes: Vec<_> = (10..110).map(|client| lab.listen(client)).collect();
    lab.release(&a);
    lab.assert_holder(&waiters[0]);
    let mut holder = &waiters[0];
    for next in &waiters[51..151] {
        assert_eq!(lab.release(holder), RELEASED);
        lab.assert_holder(next);
        holder = next;
    }
    assert_list_is_zset(&mut lab, 9_799);
    let last = lab.waiters().pop().unwrap();
    assert_eq!(last, waiters[9_949].ticket());
    assert_eq!(lab.state(&waiters[9_949]), State::Waiting);
    lab.checked = true;
    assert_eq!(lab.cancel_ticket(&last, true), Ok(CANCELLED));
}

/// All of them crash: the queue does not stand in anybody's way.
#[test]
fn ten_thousand_dead_tickets() {
    let (mut lab, a, _) = Lab::held();
    lab.checked = false;
    let (queue, tickets, past) = (lab.keys[1].clone(), lab.keys[2].clone(), lab.past());
    let mut pipeline = redis::pipe();
    pipeline.atomic();
    for i in 0..WAITERS {
        let ticket = attempt(2, u64::from(i)).ticket();
        pipeline.cmd("RPUSH").arg(&queue).arg(&ticket).cmd("ZADD").arg(&tickets).arg(past).arg(&ticket);
    }
    pipeline.cmd("PEXPIRE").arg(&queue).arg(60_000).cmd("PEXPIRE").arg(&tickets).arg(60_000);
    pipeline.exec(&mut lab.connection).unwrap();
    let live = attempt(3, 1);
    lab.acquire(&live);
    let inbox = lab.listen(3);
    lab.release(&a);
    let mut calls = 1;
    while lab.heartbeat(&[]).more {
        calls += 1;
    }
    assert_eq!(calls, WAITERS / 64);
    lab.assert_holder(&live);
    lab.assert_queue(&[]);
    assert_eq!(lab.read(&inbox).len(), 1);
}

/// `dead` of many tickets, at these places in the queue.
fn crowd(lab: &mut Lab, dead: std::ops::Range<u32>) {
    lab.checked = false;
    lab.acquire(&attempt(1, 1).patient()).token();
    // The keys keep their times to live. The other tickets are added behind, in the form that the script writes.
    lab.acquire(&attempt(9, 0).patient());
    let (queue, tickets) = (lab.keys[1].clone(), lab.keys[2].clone());
    let (now, mut list, mut zset) = (lab.now(), redis::cmd("RPUSH"), redis::cmd("ZADD"));
    list.arg(queue);
    zset.arg(tickets);
    for n in 1..WAITERS {
        let ticket = attempt(9, u64::from(n)).patient().ticket();
        list.arg(&ticket);
        zset.arg(if dead.contains(&n) { now - 1 } else { now + 600_000 }).arg(&ticket);
    }
    let () = list.query(&mut lab.connection).unwrap();
    let () = zset.query(&mut lab.connection).unwrap();
}

#[test]
fn a_full_queue_is_not_searched_for_the_dead() {
    let mut lab = Lab::new();
    crowd(&mut lab, 5000..5100);
    lab.count_commands();
    assert_eq!(lab.acquire(&attempt(2, 1).max_waiters(9000)), Acquired::Full(9900));
    assert_eq!(lab.executed("lrem"), 0, "it walks through the list to each of them");
    for command in ["zrangebyscore", "zrem"] {
        assert_eq!(lab.executed(command), 0, "{command}");
    }
    for command in ["zscore", "lindex", "zcount"] {
        assert!(lab.executed(command) <= 4, "{command}: {}", lab.executed(command));
    }
    assert_list_is_zset(&mut lab, 10_000);
}

#[test]
fn the_dead_at_the_ends_of_a_full_queue_are_dropped_a_few_a_call() {
    for dead in [0..100, 9_950..10_000] {
        let mut lab = Lab::new();
        crowd(&mut lab, dead.clone());
        if dead.contains(&0) {
            lab.expire_ticket(&attempt(9, 0).patient());
        }
        let left = WAITERS - dead.len() as u32;
        let mut calls = 0;
        while lab.waiters().len() > left as usize {
            lab.count_commands();
            assert_eq!(lab.acquire(&attempt(2, 1).max_waiters(9000)), Acquired::Full(left.into()));
            assert!((1..=16).contains(&lab.executed("lrem")));
            calls += 1;
        }
        assert_eq!(calls, dead.len().div_ceil(16));
        assert_list_is_zset(&mut lab, left as usize);
    }
}
