use super::*;
use crate::runtime::an_instant;

mod changed;
mod server;
mod shapes;

const LEASE: Duration = Duration::from_secs(30);
const INTERVAL: Duration = Duration::from_secs(10);

fn schedule() -> (Schedule, Instant) {
    (Schedule::new(Jitter::new(1)), an_instant())
}

/// Lets time pass to `until` and answers every renewal at once. Returns the batches with their times.
fn run(schedule: &mut Schedule, until: Instant) -> Vec<(Instant, Vec<u64>)> {
    let mut batches = Vec::new();
    while let Some(now) = schedule.next().filter(|at| *at <= until) {
        let due = schedule.due(now);
        assert_eq!(due.expired, [], "a lease ended although every renewal was answered");
        if !due.renew.is_empty() {
            schedule.renewed(due.renew.iter().map(|id| (*id, now + LEASE)), now);
            batches.push((now, due.renew));
        }
    }
    batches
}

#[test]
fn a_renewed_hold_is_renewed_every_interval_until_removed() {
    let (mut schedule, start) = schedule();
    schedule.insert(1, start, start + LEASE, Some(INTERVAL));
    let batches = run(&mut schedule, start + INTERVAL * 10);
    assert!((10..=11).contains(&batches.len()), "{}", batches.len());
    schedule.remove(1);
    assert_eq!(schedule.next(), None);
    schedule.renewed([(1, start + LEASE * 99)], start);
    schedule.unanswered(&[1], start);
    assert_eq!(schedule.next(), None, "an answer after the release brought it back");
}

#[test]
fn a_fixed_hold_only_expires() {
    let (mut schedule, start) = schedule();
    schedule.insert(1, start, start + LEASE, None);
    assert_eq!(schedule.next(), Some(start + LEASE));
    assert_eq!(schedule.due(start + LEASE), Due { expired: vec![1], renew: vec![] });
    assert_eq!(schedule.next(), None);
}

#[test]
fn a_thousand_holds_cost_at_most_five_calls_an_interval() {
    let (mut schedule, start) = schedule();
    for id in 0..1000 {
        let acquired = start + Duration::from_millis(id * 3);
        schedule.insert(id, acquired, acquired + LEASE, Some(INTERVAL));
    }
    let batches = run(&mut schedule, start + INTERVAL * 20);
    for round in 1..20 {
        let (from, to) = (start + INTERVAL * round, start + INTERVAL * (round + 1));
        let calls = batches.iter().filter(|(at, _)| (from..to).contains(at)).count();
        assert!(calls <= 5, "{calls} calls in round {round}");
    }
    assert!(batches.iter().all(|(_, batch)| batch.len() <= BATCH));
}

#[test]
fn simultaneous_batches_are_spread_over_the_interval() {
    let (mut schedule, start) = schedule();
    for id in 0..100_000 {
        schedule.insert(id, start, start + LEASE, Some(INTERVAL));
    }
    let batches = run(&mut schedule, start + INTERVAL * 3);
    let second: Vec<_> = batches.iter().filter(|(at, _)| *at > start + INTERVAL).collect();
    let busiest = second
        .iter()
        .map(|(at, _)| second.iter().filter(|(b, _)| *b >= *at && *b < *at + Duration::from_secs(1)).count())
        .max();
    assert!(busiest.is_some_and(|calls| calls < 120), "{busiest:?} of 391 calls in one second");
}

#[test]
fn without_answers_it_retries_and_then_expires_on_time() {
    let (mut schedule, start) = schedule();
    schedule.insert(1, start, start + LEASE, Some(INTERVAL));
    let mut retry = 0;
    loop {
        let now = schedule.next().unwrap();
        let due = schedule.due(now);
        if !due.expired.is_empty() {
            assert_eq!(now, start + LEASE);
            break;
        }
        retry += 1;
        schedule.unanswered(&due.renew, now);
    }
    assert!((10..100).contains(&retry), "{retry}");
}

#[test]
fn one_call_that_hangs_does_not_delay_the_others_or_the_deadline() {
    let (mut schedule, start) = schedule();
    schedule.insert(1, start, start + LEASE, Some(INTERVAL));
    let at = schedule.next().unwrap();
    assert_eq!(schedule.due(at).renew, [1]);
    schedule.insert(2, at, at + LEASE, Some(INTERVAL));
    let at = schedule.next().unwrap();
    assert_eq!(schedule.due(at).renew, [2]);
    assert_eq!(schedule.next(), Some(start + LEASE));
}

#[test]
fn a_gap_verifies_everything_at_the_pace() {
    let (mut schedule, start) = schedule();
    for id in 0..600 {
        schedule.insert(id, start, start + LEASE, (id % 2 == 0).then_some(INTERVAL));
    }
    schedule.verify_all(start);
    let batches = run(&mut schedule, start + INTERVAL / 2);
    let mut seen: Vec<u64> = batches.iter().flat_map(|(_, batch)| batch).copied().collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..600).collect::<Vec<_>>());
}

#[test]
fn a_hold_that_is_renewed_for_the_last_time_only_expires() {
    let (mut schedule, start) = schedule();
    schedule.insert(1, start, start + LEASE, Some(INTERVAL));
    let at = schedule.next().unwrap();
    assert_eq!(schedule.due(at).renew, [1]);
    schedule.renewed([(1, at + LEASE)], at);
    schedule.renewed_last(1);
    assert_eq!(schedule.next(), Some(at + LEASE));
    // After a gap the hold is verified, as one with a fixed lease is.
    schedule.verify_all(at);
    assert_eq!(schedule.due(at).renew, [1]);
    schedule.renewed_last(1);
    schedule.renewed([(1, at + LEASE)], at);
    assert_eq!(schedule.next(), Some(at + LEASE));
    assert_eq!(schedule.due(at + LEASE).expired, [1]);
    assert!(schedule.is_empty());
}

#[test]
fn an_extended_hold_expires_later_whatever_is_under_way() {
    let (mut schedule, start) = schedule();
    schedule.insert(1, start, start + LEASE, None);
    schedule.lengthen(1, start + LEASE * 2);
    assert_eq!(schedule.next(), Some(start + LEASE * 2));
    schedule.verify_all(start);
    assert_eq!(schedule.due(start).renew, [1]);
    // While a call about the hold is under way, no second one is made.
    schedule.lengthen(1, start + LEASE * 3);
    assert_eq!(schedule.due(start).renew, []);
    assert_eq!(schedule.next(), Some(start + LEASE * 3));
    schedule.remove(1);
    schedule.lengthen(1, start + LEASE * 4);
    assert!(schedule.is_empty());
}

/// The lease counts from when it was asked for, and so does its first third.
#[test]
fn a_late_grant_does_not_put_off_the_first_renewal() {
    for late in [0, 4, 9, 10, 15, 29] {
        let (mut schedule, asked) = schedule();
        let granted = asked + Duration::from_secs(late);
        schedule.insert(1, granted, asked + LEASE, Some(INTERVAL));
        let at = schedule.next().unwrap();
        assert!(at <= granted.max(asked + INTERVAL), "after {late} s, renewed after {:?}", at - asked);
        assert!(at >= granted + INTERVAL.saturating_sub(granted - asked) * 9 / 10, "after {late} s, renewed too soon");
    }
}

/// A short lease is retried sooner, because it leaves less time.
#[test]
fn the_next_try_follows_after_an_eighth_of_the_interval() {
    let (mut schedule, start) = schedule();
    let interval = Duration::from_secs(1);
    schedule.insert(1, start, start + LEASE, Some(interval));
    let sent = schedule.next().unwrap();
    assert_eq!(schedule.due(sent).renew, [1]);
    schedule.unanswered(&[1], sent);
    let again = schedule.next().unwrap() - sent;
    assert!(again >= interval / 11 && again <= interval / 6, "{again:?}");
}
