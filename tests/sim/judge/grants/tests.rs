//! The judge finds what is wrong with a budget that is asked for ahead.

use std::time::Duration;

use bowline::wire::{self, Attempt, PREFIX, Resource};

use super::super::view::{Hold, SPAN, Ticket, View};
use super::Step;

const NOW: Duration = Duration::from_secs(1_800_000_000);
const LEASE: Duration = Duration::from_secs(30);

/// The token of the hold before it asks, and the highest so far: the last of its budget.
const TOKEN: u64 = 1000;
const HIGHEST: u64 = TOKEN + SPAN - 1;

/// What the judge says of a call that leaves the hold with `token`, while `waiters` are queued.
fn found(token: u64, waiters: Vec<Ticket>) -> Option<String> {
    let client = wire::client(1);
    let (held, next) = (Attempt::new(client, 1, LEASE), Attempt::new(client, 2, LEASE));
    let view = |token| {
        let hold = Hold { id: held.id(), units: 1, token, ends: NOW + LEASE };
        View { limit: 1, holds: vec![hold], queue: waiters.clone(), fence: Some(HIGHEST) }
    };
    let (before, after) = (view(TOKEN), view(token));
    let request = Resource::lock(PREFIX, "name 0").unwrap().ask_ahead(held, TOKEN, 1, next).unwrap();
    let word = if token == TOKEN { "QUEUED" } else { "GRANTED" };
    request.with_call(|call| Step { call, word, before: &before, after: &after, now: NOW }.check(HIGHEST, |_| true))
}

/// What the judge says if a permit goes on by the word `word`, while `waiters` are queued and `used` units are held of
/// one. The first of them is of the cohort.
fn goes_on(word: &str, waiters: Vec<Ticket>, used: u64) -> Option<String> {
    let client = wire::client(1);
    let (held, own) = (Attempt::new(client, 1, LEASE), Attempt::new(client, 2, LEASE));
    let hold = Hold { id: held.id(), units: used, token: 0, ends: NOW + LEASE };
    let view = View { limit: 1, holds: vec![hold], queue: waiters, fence: None };
    let request = Resource::semaphore(PREFIX, "name 0", 1).unwrap().go_on(held, &[own]).unwrap();
    request.with_call(|call| Step { call, word, before: &view, after: &view, now: NOW }.check(0, |_| true))
}

#[test]
fn a_permit_goes_on_if_no_other_ticket_waits() {
    let own = Ticket { id: Attempt::new(wire::client(1), 2, LEASE).id(), ..waiter(NOW + LEASE) };
    assert_eq!(goes_on("GRANTED", vec![own.clone(), waiter(NOW)], 1), None);
    assert_eq!(goes_on("WANTED", vec![own.clone(), waiter(NOW + LEASE)], 1), None);
    let passed = goes_on("GRANTED", vec![own, waiter(NOW + LEASE)], 1).expect("a ticket that is passed");
    assert!(passed.starts_with("I4 ") && passed.contains("goes on"), "{passed}");
    let over = goes_on("GRANTED", Vec::new(), 2).expect("more than the limit");
    assert!(over.starts_with("I5 ") && over.contains("goes on"), "{over}");
    assert_eq!(goes_on("WANTED", Vec::new(), 2), None);
}

fn waiter(expires: Duration) -> Ticket {
    let id = Attempt::new(wire::client(2), 1, LEASE).id();
    Ticket { id, units: 1, lease: LEASE, expires_ms: expires.as_millis() as f64 }
}

#[test]
fn another_budget_is_for_a_hold_for_which_no_ticket_waits() {
    let (live, dead) = (waiter(NOW + LEASE), waiter(NOW));
    assert_eq!(found(HIGHEST + 1, Vec::new()), None);
    assert_eq!(found(HIGHEST + 1, vec![dead.clone()]), None);
    assert_eq!(found(TOKEN, vec![live.clone()]), None, "it is not granted");
    let passed = found(HIGHEST + 1, vec![dead, live]).expect("a ticket that is passed by another budget");
    assert!(passed.starts_with("I4 ") && passed.contains("got another budget"), "{passed}");
}

#[test]
fn another_budget_is_of_new_tokens() {
    let old = found(HIGHEST, Vec::new()).expect("a token of the first budget");
    assert!(old.starts_with("I2 ") && old.contains("got a budget"), "{old}");
}
