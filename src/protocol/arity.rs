//! Checks that every typed call passes as many keys and arguments as its script's header says.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use uuid::Uuid;

use super::Script;
use super::attempt_id::AttemptId;
use super::call::{ScriptCall, Site};
use super::change::ChangeArgs;
use super::copy::CallCopy;
use super::drop_waiters::DropArgs;
use super::election::{Announcement, What};
use super::facts::Form;
use super::key::{Keys, Named, SharedCounter};
use super::kind::Kind;
use super::latch::Latch;
use super::limits::WRITE;
use super::names::{Page, PrimitiveKind, Wanted};
use super::once::RunEnd;
use super::permits::Permits;
use super::rate::{self, TakeArgs};
use super::resource::{AcquireArgs, AheadArgs, Place, RenewArgs};
use super::token::Token;
use super::vote::{TurnArgs, VoteArgs};
use super::{barrier, client, election, mutex, names, once, redisson, shared_counter, timed_permits, vote};

const LEASE: Duration = Duration::from_secs(1);
const REPEATS: usize = 3;
const SITE: Site<'_> = Site { inbox_prefix: "p:inbox:", slot: None, counts_everyone: true, listens: true };

/// The number of keys and arguments that each call passes to its script.
#[derive(Default)]
struct Calls(Vec<(&'static Script, usize, usize)>);

impl Calls {
    fn add<T>(&mut self, call: ScriptCall<'_, T>) {
        self.0.push((call.script, call.keys().len(), call.args.len()));
    }

    fn add_all_of(&mut self, kind: Kind, id: AttemptId) {
        let keys = Keys::new("p", kind, "n").unwrap();
        let ticket = kind.ticket(id, LEASE, 1);
        let acquire =
            AcquireArgs { ticket, ticket_ttl: LEASE, wait: true, max_waiters: 0, not_after: 0, tries_channel: true };
        kind.with(|resource| {
            self.add(resource.acquire(&keys, SITE, acquire));
            self.add(resource.cancel(&keys, SITE, ticket, true));
            resource.heartbeat(&keys, SITE, &[(ticket, LEASE); REPEATS]).into_iter().for_each(|call| self.add(call));
            let Some(held) = resource.held() else { return };
            self.add(held.release(&keys, SITE, id, true));
            self.add(held.requeue(&keys, SITE, id, (ticket, LEASE)));
            for place in [Place::Next(ticket), Place::Has(&[ticket; REPEATS])] {
                let ahead = AheadArgs { held: id, known: Token::new(1), lease: LEASE, budget: 2, place, not_after: 0 };
                held.ask_ahead(&keys, ahead).into_iter().for_each(|call| self.add(call));
            }
            let in_full = &AtomicBool::new(false);
            let renewal = RenewArgs { keys: &keys, id, lease: LEASE, longest: LEASE, extended: true, in_full };
            self.add(held.renew(&[renewal; REPEATS], kind.form(in_full)));
            self.add(held.renew(&[renewal; REPEATS], Form::InFull));
        });
    }
}

/// The number of words in a list of the header: outside brackets, and in the repeated group.
fn arity(script: &Script, field: &str) -> (usize, usize) {
    let prefix = format!("-- {field}:");
    let list = script.text().lines().find_map(|line| line.strip_prefix(&prefix)).unwrap();
    let (fixed, repeated) = match list.split_once('[') {
        Some((fixed, group)) => (fixed, group.split(']').next().unwrap()),
        None if list.contains("...") => ("", list),
        None => (list, ""),
    };
    (fixed.split_whitespace().count(), repeated.split_whitespace().count())
}

#[test]
fn every_call_passes_what_the_header_says() {
    let id = AttemptId { client: Uuid::nil(), n: 1 };
    let mut calls = Calls::default();
    for kind in Kind::ALL {
        calls.add_all_of(kind, id);
    }
    let keys = Keys::new("p", Kind::Lock, "n").unwrap();
    calls.add(mutex::force_release(&keys, SITE, "holder"));
    calls.add(mutex::inspect(&keys, 0));
    let drops = DropArgs { client: Some(id.client), first: 0, not_after: 0 };
    calls.add(
        keys.kind.with(|resource| resource.held().and_then(|held| held.drop_waiters(&keys, SITE, drops)).unwrap()),
    );
    calls.add(mutex::resume(&keys, id, (keys.kind.ticket(id, LEASE, 1), 0)));

    let keys = Keys::new("p", Kind::ReadWrite, "n").unwrap();
    let change = ChangeArgs { old: id, rest: None, new: id, units: 1, lease: LEASE, not_after: 0, token: None };
    calls.add(Permits { limit: WRITE }.change(&keys, SITE, change));
    let ticket = keys.kind.ticket(id, LEASE, 1);
    calls.add(Permits { limit: WRITE }.drain(&keys, SITE, (ticket, 1)));
    calls.add(keys.kind.with(|resource| resource.cancel(&keys, SITE, ticket.keeping(1), false)));
    calls.add(Permits { limit: 3 }.store(&keys, SITE, 0));
    calls.add(Permits { limit: 3 }.force_release(&keys, SITE, &[const { String::new() }; REPEATS]));
    calls.add(Permits { limit: 3 }.inspect(&keys, 0));
    let drops = DropArgs { client: None, first: 0, not_after: 0 };
    calls.add(
        keys.kind.with(|resource| resource.held().and_then(|held| held.drop_waiters(&keys, SITE, drops)).unwrap()),
    );

    let keys = Keys::new("p", Kind::Latch, "n").unwrap();
    let copy = CallCopy { id, not_after: 0, known_until: 0, resent: false };
    calls.add(Latch.set(&keys, SITE, copy, 3, LEASE));
    calls.add(Latch.count_down(&keys, SITE, copy));
    calls.add(Latch.delete(&keys, SITE, copy));
    calls.add(Latch.inspect(&keys, 0));

    let keys = Keys::new("p", Kind::Barrier { parties: 2, keep: 1000 }, "n").unwrap();
    calls.add(barrier::reset_call(&keys, SITE, copy));
    calls.add(barrier::inspect(&keys, 0));
    calls.add(barrier::leave(&keys, SITE, id, 1000));

    let keys = Keys::new("p", Kind::Once { first: 0, period: 1000, retries: true }, "n").unwrap();
    calls.add(once::end(&keys, id, RunEnd { lease: LEASE, period: LEASE, is_done: true, least: LEASE }));
    calls.add(once::inspect(&keys));

    let keys = Keys::new("p", Kind::Election, "n").unwrap();
    let said = Announcement { term: Token::new(1), what: What::Led, number: 0, label: "", value: "" };
    calls.add(election::announce(&keys, SITE, id, said));
    calls.add(election::look(&keys, 0, 1));

    let keys = Keys::new("p", Kind::Vote, "n").unwrap();
    let proposal = Token::new(1);
    let args = VoteArgs { id, lease: LEASE, proposal, owner: id, granted: true, not_after: 0, set: "s/1/3", known: 0 };
    calls.add(vote::vote(&keys, args));
    let turns = Keys::new("p", Kind::Turn, "n").unwrap();
    calls.add(vote::claim(&keys, args, &turns, TurnArgs { id, lease: LEASE }));
    calls.add(vote::leave((&keys, id), (&turns, id)));
    calls.add(vote::view(&keys));

    let keys = Keys::redisson("p", "n", "n", Kind::Redisson { fenced: true }).unwrap();
    calls.add(redisson::force_release(&keys, SITE, "owner", 0));
    calls.add(redisson::inspect(&keys));
    let keys = Keys::redisson("p", "n", "n", Kind::TimedPermit { keep: 7 }).unwrap();
    calls.add(timed_permits::release_id(&keys, SITE, &id.permit(), id, LEASE));
    calls.add(timed_permits::set(&keys, SITE, copy, 3));
    calls.add(timed_permits::inspect(&keys, 3));
    let counter = (&SharedCounter::latch("p", "n", "n").unwrap(), "mark");
    calls.add(shared_counter::set(counter, SITE, copy, 3));
    calls.add(shared_counter::take(counter, SITE, copy, (1, true)));
    calls.add(shared_counter::release(counter, SITE, copy, shared_counter::Given::Unknown));
    calls.add(shared_counter::count_down(counter, SITE, copy));
    calls.add(shared_counter::count(counter.0));

    let named = Named::limiter("p", "n").unwrap();
    calls.add(rate::take(&named, TakeArgs { cost: LEASE, burst: LEASE, longest: LEASE, not_after: 0 }));
    calls.add(rate::reset(&named, 0));
    calls.add(rate::inspect(&named));

    let labels = Named::labels("p");
    calls.add(client::store_label(&labels, id.client, (LEASE, 0), "label"));
    calls.add(client::read_labels(&labels, &[id.client; REPEATS]));

    let wanted = Wanted { kind: Some(PrimitiveKind::RedLock), waited_for: false, begins: "" };
    calls.add(names::names(&Named::listing("p", 0), "p", Page { cursor: Page::START, count: 1 }, wanted));

    calls.add(client::listeners("scratch", "p:inbox:c"));
    calls.add(client::ask(&keys, "p:inbox:", &[id; REPEATS]));
    calls.add(client::rights(&[Keys::new("p", Kind::Latch, "n").unwrap()], "c"));
    calls.add(client::types(&["a", "b", "c"]));

    for script in Script::all() {
        assert!(calls.0.iter().any(|(called, ..)| called.name() == script.name()), "{} has no call", script.name());
    }
    for (script, keys, args) in calls.0 {
        for (field, passed) in [("KEYS", keys), ("ARGV", args)] {
            let (fixed, repeated) = arity(script, field);
            assert_eq!(passed, fixed + repeated * REPEATS, "{} {field}", script.name());
        }
    }
}
