//! Many holds, a subscription with many interruptions, and outages that end shortly before the first lease does.

use super::super::pace::LOOK;
use super::server::Model;
use super::*;

const COUNTS: [u64; 4] = [256, 257, 600, 10_000];

fn s(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// The server is healthy.
#[test]
fn no_number_of_gaps_loses_a_lease() {
    for holds in COUNTS {
        for (every, lease) in [(0.5, 30.0), (1.0, 30.0), (2.0, 30.0), (4.0, 30.0), (0.5, 6.0), (4.0, 6.0)] {
            let until = s(lease * 1.5);
            let model = Model::new(holds, s(lease), s(1.0)).gaps(s(every), until).run(until);
            let lost = model.lost.len();
            assert_eq!(lost, 0, "{holds} holds of {lease} s, a gap every {every} s, {} calls", model.sent);
        }
    }
}

#[test]
fn no_number_of_gaps_loses_one_of_a_hundred_thousand_leases() {
    let model = Model::new(100_000, s(6.0), s(1.0)).gaps(s(1.0), s(7.5)).run(s(7.5));
    assert_eq!(model.lost.len(), 0, "{} calls", model.sent);
}

/// An outage that begins before the first renewal, and ends at `left` of the lease before the first deadline.
fn after_an_outage(holds: u64, acquired_in: f64, left: f64) -> Model {
    let model = Model::new(holds, LEASE, s(acquired_in)).outage(s(8.0), s(30.0 - left)).run(s(45.0));
    assert!(model.sent > 0);
    model
}

#[test]
fn an_outage_that_ends_in_time_loses_nothing() {
    for holds in COUNTS {
        for acquired_in in [0.0, 10.0] {
            for left in [2.0, 3.0, 4.0, 7.0] {
                let model = after_an_outage(holds, acquired_in, left);
                let lost = model.lost.len();
                assert_eq!(lost, 0, "{holds} holds acquired in {acquired_in} s, {left} s left, {} calls", model.sent);
            }
        }
    }
}

#[test]
fn an_outage_that_ends_in_time_loses_none_of_a_hundred_thousand() {
    let model = after_an_outage(100_000, 1.0, 4.0);
    assert_eq!(model.lost.len(), 0, "{} calls", model.sent);
}

/// The schedule is not told that the link is back, so calls without an answer must be given up in time.
#[test]
fn an_outage_ends_without_being_told() {
    for left in [2.0, 4.0, 7.0] {
        let mut model = Model::new(600, LEASE, s(1.0)).outage(s(8.0), s(30.0 - left));
        model.forget_gaps();
        let model = model.run(s(45.0));
        assert_eq!(model.lost.len(), 0, "{left} s left, {} calls", model.sent);
    }
}

/// The full batch of long leases sets a pace that is too slow for the short ones.
#[test]
fn short_leases_do_not_wait_for_the_pace_of_long_ones() {
    let (mut schedule, start) = schedule();
    for id in 0..256 {
        schedule.insert(id, start, start + LEASE, Some(INTERVAL));
    }
    schedule.verify_all(start);
    assert_eq!(schedule.due(start).renew.len(), BATCH);
    let short = Duration::from_secs(1);
    schedule.insert(300, start, start + short, Some(short / 3));
    let at = schedule.next().unwrap();
    assert!(at <= start + short / 2, "{:?}", at - start);
    assert_eq!(schedule.due(at), Due { expired: vec![], renew: vec![300] });
}

#[test]
fn the_earliest_deadline_goes_first() {
    let (mut schedule, start) = schedule();
    for id in 0..1000 {
        let deadline = start + LEASE - Duration::from_millis(id);
        schedule.insert(id, start, deadline, Some(INTERVAL));
    }
    // Fixed leases cannot be saved, so they are verified afterwards.
    schedule.insert(1000, start, start + LEASE / 2, None);
    schedule.verify_all(start);
    let mut order = Vec::new();
    while order.len() < 1001 {
        let now = schedule.next().unwrap();
        let Due { expired, renew } = schedule.due(now);
        assert!(expired.is_empty());
        schedule.renewed(renew.iter().map(|id| (*id, now + LEASE)), now);
        order.extend(renew);
    }
    let expected: Vec<u64> = (0..1000).rev().chain([1000]).collect();
    assert_eq!(order, expected);
}

#[test]
fn an_unanswered_renewal_is_tried_again_in_what_its_lease_leaves() {
    let (mut schedule, start) = schedule();
    schedule.insert(1, start, start + LEASE, Some(INTERVAL));
    let mut now = schedule.next().unwrap();
    let mut last = None;
    while schedule.due(now).renew == [1] {
        assert!(last.is_none_or(|last| now > last), "no pause");
        last = Some(now);
        let left = start + LEASE - now;
        schedule.unanswered(&[1], now);
        now = schedule.next().unwrap();
        let most = (left / 3).max(Duration::from_millis(40)).min(Duration::from_millis(1250));
        assert!(now <= start + LEASE && now - last.unwrap() <= most, "{:?} with {left:?} left", now - last.unwrap());
    }
    assert_eq!(now, start + LEASE);
}

/// The gap comes while the renewal is under way.
#[test]
fn a_failure_does_not_put_off_what_is_due() {
    let (mut schedule, start) = schedule();
    schedule.insert(1, start, start + LEASE, Some(INTERVAL));
    schedule.insert(2, start, start + LEASE, Some(INTERVAL));
    let at = schedule.next().unwrap();
    assert_eq!(schedule.due(at).renew.len(), 2);
    // Released and acquired again: the old call says nothing about this hold.
    let soon = at + Duration::from_millis(300);
    schedule.insert(1, at, at + Duration::from_millis(600), Some(INTERVAL));
    schedule.unanswered(&[1], at);
    assert!(schedule.next().is_some_and(|next| next <= soon));
}

#[test]
fn an_answer_from_before_a_gap_verifies_nothing() {
    let (mut schedule, start) = schedule();
    schedule.insert(1, start, start + LEASE, Some(INTERVAL));
    schedule.insert(2, start, start + LEASE, None);
    schedule.verify_all(start);
    assert_eq!(schedule.due(start).renew, [1, 2]);
    let gap = start + Duration::from_millis(5);
    schedule.verify_all(gap);
    assert!(schedule.next().is_some_and(|at| at > gap), "one call at a time");
    schedule.renewed([(1, start + LEASE), (2, start + LEASE)], start);
    assert!(schedule.next().is_some_and(|at| at <= gap));
    assert_eq!(schedule.due(gap).renew, [1, 2]);
    schedule.renewed([(1, gap + LEASE), (2, start + LEASE)], gap);
    assert_eq!(schedule.next(), Some(gap + INTERVAL));
}

#[test]
fn looking_at_many_fixed_leases_is_spread() {
    let (mut schedule, start) = schedule();
    for id in 0..10_000 {
        schedule.insert(id, start, start + LEASE, None);
    }
    schedule.verify_all(start);
    let (mut batches, mut last) = (0, start);
    while let Some(now) = schedule.next().filter(|at| *at < start + LEASE) {
        batches += usize::from(!schedule.due(now).renew.is_empty());
        last = now;
    }
    assert_eq!(batches, 40);
    assert!(last > start + LOOK / 4 && last < start + LOOK, "{:?}", last - start);
}
