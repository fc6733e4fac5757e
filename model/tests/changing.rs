//! Going from one set of masters to another one, as `docs/quorum.md` says and otherwise.

use bowline_model::{
    ADDED, Bounds, EXCLUSION, FOUR_TO_FIVE, Flaw, GROWTH, Losses, ORDER, Order, REGISTER, REPLACED, Rollout, Scheme,
    THREE_TO_FIVE,
};
use stateright::{Checker, Model};

mod support;

/// Clocks agree, and a lease is one tick.
const SMALL: Bounds = Bounds {
    lease: 1,
    patience: 0,
    skew: 0,
    ticks: 2,
    acquisitions: 1,
    renewals: 0,
    restarts: 0,
    jumps: 0,
    late_requests: false,
    losses: Losses::Requests,
};

fn holds<const M: usize>(rollout: Rollout<M>, flaw: Option<Flaw>, bounds: Bounds) {
    let checker = Scheme { bounds, flaw, rollout }.checker().spawn_bfs().join();
    println!("{} states, {} steps deep: {rollout:?}, {bounds:?}", checker.unique_state_count(), checker.max_depth());
    checker.assert_properties();
}

fn is_found<const M: usize>(rollout: Rollout<M>, flaw: Option<Flaw>, bounds: Bounds, properties: &[&str]) {
    support::is_found(Scheme { bounds, flaw, rollout }, (flaw, rollout.order), properties);
}

#[test]
fn one_master_more_and_a_master_that_loses_its_data() {
    holds(ADDED, None, Bounds { restarts: 1, losses: Losses::Nothing, ..SMALL });
}

#[test]
fn four_masters_and_five() {
    holds(FOUR_TO_FIVE, None, Bounds { losses: Losses::Nothing, ..SMALL });
}

#[test]
fn a_master_is_replaced() {
    holds(REPLACED, None, SMALL);
}

#[test]
fn three_masters_become_five() {
    holds(THREE_TO_FIVE, None, Bounds { losses: Losses::Nothing, ..SMALL });
}

#[test]
fn the_next_step_waits_for_the_leases_of_the_one_before() {
    let rollout = Rollout { order: Order::WithoutWaiting, ..REPLACED };
    is_found(rollout, None, Bounds { ticks: 1, ..SMALL }, &[EXCLUSION]);
}

#[test]
fn a_step_too_far_is_told_if_a_common_master_answers() {
    holds(Rollout { order: Order::TooFar, ..REPLACED }, None, Bounds { losses: Losses::Nothing, ..SMALL });
}

#[test]
fn a_step_too_far_is_not_told_without_the_check() {
    let rollout = Rollout { order: Order::TooFar, ..REPLACED };
    is_found(rollout, Some(Flaw::SetNotChecked), Bounds { losses: Losses::Nothing, ..SMALL }, &[EXCLUSION]);
}

#[test]
fn a_step_too_far_is_no_less_harmful_if_no_common_master_answers() {
    let rollout = Rollout { order: Order::TooFar, ..REPLACED };
    is_found(rollout, None, SMALL, &[EXCLUSION]);
}

#[test]
fn a_common_master_orders_the_tokens_without_clocks() {
    holds(ADDED, Some(Flaw::NoClock), Bounds { losses: Losses::Nothing, ..SMALL });
}

#[test]
fn tokens_of_versions_two_apart_rest_on_clocks() {
    is_found(REPLACED, Some(Flaw::NoClock), SMALL, &[ORDER, GROWTH, REGISTER]);
}
