//! The scheme holds within small bounds, and each of its broken variants is found.

use bowline_model::{Bounds, EXCLUSION, FIXED, Flaw, GROWTH, Losses, ORDER, REGISTER, Scheme};
use stateright::{Checker, HasDiscoveries, Model};

mod support;

/// Clocks agree, and a lease is two ticks.
const SMALL: Bounds = Bounds {
    lease: 2,
    patience: 1,
    skew: 0,
    ticks: 4,
    acquisitions: 1,
    renewals: 0,
    restarts: 1,
    jumps: 0,
    late_requests: false,
    losses: Losses::Answers,
};

fn holds(bounds: Bounds) {
    let checker = Scheme { bounds, flaw: None, rollout: FIXED }.checker().spawn_bfs().join();
    println!("{} states, {} steps deep: {bounds:?}", checker.unique_state_count(), checker.max_depth());
    checker.assert_properties();
}

fn is_found(flaw: impl Into<Option<Flaw>>, bounds: Bounds, properties: &[&str]) {
    let flaw = flaw.into();
    support::is_found(Scheme { bounds, flaw, rollout: FIXED }, flaw, properties);
}

#[test]
fn a_restarted_master() {
    holds(SMALL);
}

#[test]
fn a_renewed_hold() {
    holds(Bounds { renewals: 1, restarts: 0, ticks: 5, ..SMALL });
}

#[test]
fn a_renewed_hold_and_a_restarted_master() {
    holds(Bounds { patience: 0, renewals: 1, ticks: 3, ..SMALL });
}

#[test]
fn a_jump_of_a_clock_leaves_the_tokens() {
    holds(Bounds { jumps: 1, restarts: 0, ..SMALL });
}

#[test]
fn tokens_need_acceptances() {
    is_found(Flaw::TokenNotAccepted, Bounds { ticks: 2, restarts: 0, ..SMALL }, &[ORDER, GROWTH, REGISTER]);
}

#[test]
fn an_equal_proposal_is_refused() {
    is_found(Flaw::EqualAccepted, Bounds { ticks: 2, restarts: 0, ..SMALL }, &[ORDER, GROWTH, REGISTER]);
}

#[test]
fn a_young_master_does_not_count() {
    is_found(Flaw::YoungCounts, Bounds { ticks: 2, ..SMALL }, &[EXCLUSION]);
}

#[test]
fn a_lost_counter_needs_a_clock() {
    is_found(Flaw::NoClock, Bounds { lease: 1, patience: 0, ticks: 2, ..SMALL }, &[ORDER, GROWTH, REGISTER]);
}

#[test]
fn after_a_loss_tokens_rest_on_clocks_that_agree() {
    is_found(None, Bounds { lease: 1, patience: 0, skew: 1, ticks: 2, ..SMALL }, &[ORDER, GROWTH, REGISTER]);
}

#[test]
fn a_lease_counts_from_before_the_request() {
    is_found(Flaw::LeaseFromAnswer, Bounds { ticks: 3, restarts: 0, ..SMALL }, &[EXCLUSION]);
}

#[test]
fn a_proposal_is_as_young_as_its_round() {
    is_found(Flaw::OldProposal, Bounds { lease: 1, patience: 0, ticks: 2, ..SMALL }, &[ORDER, GROWTH, REGISTER]);
}

#[test]
fn a_jump_of_a_clock_and_a_renewed_hold_leave_the_tokens() {
    holds(Bounds { patience: 0, jumps: 1, restarts: 0, renewals: 1, ticks: 3, ..SMALL });
}

#[test]
fn only_a_hold_is_voted_for_whatever_the_counter_is() {
    is_found(Flaw::ClaimedTooEarly, Bounds { ticks: 2, restarts: 0, ..SMALL }, &[ORDER, GROWTH, REGISTER]);
}

#[test]
fn a_vote_that_is_given_again_lowers_no_counter() {
    // Two tokens without a tick between them. The path is long, and depth first finds one soon.
    let bounds = Bounds {
        skew: 1,
        ticks: 1,
        acquisitions: 2,
        renewals: 1,
        restarts: 0,
        late_requests: true,
        losses: Losses::Nothing,
        ..SMALL
    };
    let scheme = Scheme { bounds, flaw: Some(Flaw::CounterLowered), rollout: FIXED };
    let checker = scheme.checker().finish_when(HasDiscoveries::AnyFailures).spawn_dfs().join();
    let found = checker.discoveries();
    assert!([ORDER, GROWTH, REGISTER].iter().any(|name| found.contains_key(name)), "{:?}", found.keys());
    println!("found in {} states", checker.unique_state_count());
}
