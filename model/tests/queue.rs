//! Claims keep the order of the queue, and each broken variant is found.

use bowline_model::{FIRST_COME, ONE_HOLDS, Queue, QueueFlaw, SERVED};
use stateright::{Checker, Model};

mod support;

fn holds(deaths: bool) {
    let checker = Queue { flaw: None, deaths }.checker().spawn_bfs().join();
    println!("{} states, {} steps deep, deaths {deaths}", checker.unique_state_count(), checker.max_depth());
    checker.assert_properties();
}

fn is_found(flaw: QueueFlaw, deaths: bool, properties: &[&str]) {
    support::is_found(Queue { flaw: Some(flaw), deaths }, flaw, properties);
}

#[test]
fn three_acquisitions() {
    holds(false);
}

#[test]
fn three_acquisitions_that_may_die() {
    holds(true);
}

#[test]
fn a_free_turn_that_somebody_waits_for_is_not_claimed() {
    is_found(QueueFlaw::QueuePassed, true, &[FIRST_COME]);
}

#[test]
fn votes_without_the_turn_are_no_hold() {
    is_found(QueueFlaw::TurnNotNeeded, false, &[FIRST_COME, ONE_HOLDS, SERVED]);
}

#[test]
fn a_turn_that_somebody_waits_for_is_handed_over() {
    is_found(QueueFlaw::TurnLeftToNobody, false, &[FIRST_COME, SERVED]);
}
