//! `election_announce`, `election_release`, `election_watch`, `election_heartbeat`, `election_leader` and
//! `election_renew`: every reply, late copies, half states, and who is told.

use std::collections::BTreeSet;

use bowline::{Script, wire};
use redis::Value;

use crate::lab::{Attempt, Inbox, LEASE, Lab, TICKET_TTL, attempt};
use crate::refusals::Refusal;

const CHANGES: &str = "p:election:{n}:changes";
const WATCHERS: &str = "p:election:{n}:watchers";
const HOUR: i64 = 60 * 60 * 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watched {
    Open,
    Queued,
    Stale,
}

/// What is stored of a change: what it is, the term, the label and the value.
type Change = (String, u64, String, String);

fn election() -> wire::Resource {
    wire::Resource::election("p", "n").unwrap()
}

/// A lab whose keys are those of an election: lock, queue, tickets, fence.
fn lab() -> Lab {
    let mut lab = Lab::new();
    lab.keys = election().keys();
    lab
}

/// A lab in which the first client's first attempt leads, with its term.
fn led() -> (Lab, Attempt, u64) {
    let (mut lab, leader) = (lab(), attempt(1, 1));
    let term = lab.acquire(&leader).token();
    (lab, leader, term)
}

fn sent<T>(
    lab: &mut Lab,
    request: &wire::Request,
    now_first: bool,
    read: impl FnOnce(&mut crate::lab::Words) -> T,
) -> Result<T, String> {
    let keys: Vec<String> = request.keys().into_iter().map(str::to_owned).collect();
    lab.run(request.script.name(), &keys, &request.words(), now_first, read)
}

/// Whether it was noted.
fn announced(lab: &mut Lab, request: &wire::Request) -> Result<bool, String> {
    sent(lab, request, false, |words| {
        let word = words.word();
        assert!(["NOTED", "NOT_HELD"].contains(&&*word), "{word}");
        word == "NOTED"
    })
}

#[track_caller]
fn note(lab: &mut Lab, request: &wire::Request) -> bool {
    announced(lab, request).unwrap()
}

/// Ends the term, and returns whether it was held.
#[track_caller]
fn resign(lab: &mut Lab, leader: &Attempt) -> bool {
    let request = election().release(leader.wire(), None).unwrap();
    assert_eq!(request.script.name(), "election_release");
    sent(lab, &request, false, |words| {
        let was_held = words.word() == "RELEASED";
        assert!(!words.flag());
        was_held
    })
    .unwrap()
}

fn watching(known: u64) -> wire::Resource {
    wire::Resource::watch("p", "n", known, 0).unwrap()
}

fn watch(lab: &mut Lab, waiter: &Attempt, known: u64) -> Result<Watched, String> {
    watch_in(lab, waiter, known, 0)
}

/// In a term that the caller takes for the present one.
fn watch_in(lab: &mut Lab, waiter: &Attempt, known: u64, leads: u64) -> Result<Watched, String> {
    let watch = wire::Resource::watch("p", "n", known, leads).unwrap();
    sent(lab, &watch.acquire(waiter.wire(), true), false, |words| match &*words.word() {
        "OPEN" => Watched::Open,
        "QUEUED" => {
            let left: i64 = words.next();
            assert!((-2..=LEASE as i64).contains(&left));
            Watched::Queued
        }
        "STALE" => Watched::Stale,
        other => panic!("{other}"),
    })
}

/// For each waiter, whether there may be news.
fn heartbeat(lab: &mut Lab, waiters: &[&Attempt], known: u64) -> Result<Vec<bool>, String> {
    heartbeat_in(lab, waiters, known, 0)
}

fn heartbeat_in(lab: &mut Lab, waiters: &[&Attempt], known: u64, leads: u64) -> Result<Vec<bool>, String> {
    let watch = wire::Resource::watch("p", "n", known, leads).unwrap();
    let attempts: Vec<_> = waiters.iter().map(|waiter| waiter.wire()).collect();
    sent(lab, &watch.heartbeat(&attempts).unwrap(), true, |words| {
        let left: i64 = words.next();
        assert!(left >= -2);
        let word = |words: &mut crate::lab::Words| match &*words.word() {
            "WAITING" => false,
            "OPEN" => true,
            other => panic!("{other}"),
        };
        waiters.iter().map(|_| word(words)).collect()
    })
}

/// The leader, whether changes may have been missed, and those after `known`, the newest first.
fn look(lab: &mut Lab, known: u64, most: u32) -> (String, bool, Vec<Change>) {
    let request = election().look_at_election(known, most);
    let mut command = redis::cmd("EVALSHA");
    command.arg(request.script.sha1()).arg(request.keys().len()).arg(request.keys()).arg(request.words());
    let reply: Vec<Value> = command.query(&mut lab.connection).unwrap();
    let text = |value: &Value| -> String { redis::from_redis_value(value.clone()).unwrap() };
    (text(&reply[0]), text(&reply[3]) == "1", reply[4..].iter().map(|change| stored(&text(change))).collect())
}

fn stored(change: &str) -> Change {
    let words: Vec<_> = change.splitn(7, ' ').collect();
    let length = words[5].parse::<usize>().unwrap();
    let (label, value) = words[6].split_at(length);
    (words[1].to_owned(), words[2].parse().unwrap(), label.to_owned(), value.to_owned())
}

fn change(what: &str, term: u64, label: &str, value: &str) -> Change {
    (what.to_owned(), term, label.to_owned(), value.to_owned())
}

/// The revision of the newest change.
fn revision(lab: &mut Lab) -> u64 {
    let newest = lab.list(CHANGES).pop().unwrap_or_default();
    newest.split(' ').next().and_then(|revision| revision.parse().ok()).unwrap_or_default()
}

fn told(lab: &mut Lab, inbox: &Inbox) -> Vec<String> {
    lab.read(inbox)
}

#[test]
fn a_term_begins_speaks_and_ends() {
    let (mut lab, leader, term) = led();
    assert_eq!(look(&mut lab, 0, 1), (leader.id.clone(), false, vec![]));
    let before = lab.now() * 1000;
    assert!(note(&mut lab, &election().led(leader.wire(), term, "web 7")));
    let first = revision(&mut lab);
    assert!((before..=lab.now() * 1000 + 999).contains(&first), "the clock is the floor");
    assert!(note(&mut lab, &election().said(leader.wire(), term, 2, "web 7", " a  b")));
    // An hour is longer than two of the lease, and shorter than two of the longest.
    assert!((HOUR - 5000..=HOUR).contains(&lab.server.ttl_ms(CHANGES)));
    let lock = lab.keys[0].clone();
    lab.raw(&["PEXPIRE", &lock, "5000000"]);
    assert!(note(&mut lab, &election().said(leader.wire(), term, 3, "web 7", "c")));
    assert!((9_990_000..=10_000_000).contains(&lab.server.ttl_ms(CHANGES)));
    assert!(resign(&mut lab, &leader));
    let expected = [
        change("ended", term, "", ""),
        change("said", term, "web 7", "c"),
        change("said", term, "web 7", " a  b"),
        change("led", term, "web 7", ""),
    ];
    assert_eq!(look(&mut lab, 0, 64), (String::new(), false, expected.to_vec()));
    assert_eq!(look(&mut lab, 0, 4), (String::new(), true, expected.to_vec()), "there may be more");
    assert_eq!(look(&mut lab, first, 64), (String::new(), false, expected[..3].to_vec()));
    assert_eq!(look(&mut lab, first, 1), (String::new(), true, expected[..1].to_vec()));
    let last = revision(&mut lab);
    assert_eq!(look(&mut lab, last, 64), (String::new(), false, vec![]));
    assert!(look(&mut lab, first - 1, 64).1, "what is not stored may have been followed by anything");
}

#[test]
fn a_resignation_hands_over_and_tells() {
    let (mut lab, leader, term) = led();
    note(&mut lab, &election().led(leader.wire(), term, "a"));
    let (next, watcher) = (attempt(3, 1), attempt(2, 1));
    let (of_next, of_watcher) = (lab.listen(3), lab.listen(2));
    lab.acquire(&next);
    let known = revision(&mut lab);
    assert_eq!(watch(&mut lab, &watcher, known), Ok(Watched::Queued));
    assert!(!resign(&mut lab, &attempt(9, 1)), "it does not lead");
    assert_eq!(told(&mut lab, &of_watcher), [""; 0]);
    assert!(resign(&mut lab, &leader));
    assert_eq!(told(&mut lab, &of_watcher), [format!("open {}", watcher.id)]);
    let granted = told(&mut lab, &of_next);
    assert!(granted.len() == 1 && granted[0].ends_with(&next.id), "{granted:?}");
    assert_eq!(look(&mut lab, known, 64), (next.id.clone(), false, vec![change("ended", term, "", "")]));
    // A copy, and one of a term that was never announced.
    assert!(!resign(&mut lab, &leader));
    let known = revision(&mut lab);
    assert!(resign(&mut lab, &next));
    assert_eq!((revision(&mut lab), look(&mut lab, known, 64).2), (known, vec![]));
}

/// A full server refuses only the first write of a script, and a resignation's needs no memory.
#[test]
fn a_full_server_lets_a_leader_resign() {
    let (mut lab, leader, term) = led();
    note(&mut lab, &election().led(leader.wire(), term, "a"));
    lab.raw(&["CONFIG", "SET", "maxmemory", "1"]);
    let said = election().said(leader.wire(), term, 2, "a", "x");
    assert_eq!(announced(&mut lab, &said), Err("OOM".to_owned()));
    assert!(resign(&mut lab, &leader));
    assert_eq!(look(&mut lab, 0, 1), (String::new(), true, vec![change("ended", term, "", "")]));
}

#[test]
fn copies_and_late_requests_change_nothing() {
    let (mut lab, leader, term) = led();
    let (begin, x, y) = (
        election().led(leader.wire(), term, "a"),
        election().said(leader.wire(), term, 2, "a", "x"),
        election().said(leader.wire(), term, 3, "a", "y"),
    );
    for request in [&begin, &begin, &y, &y, &x, &begin] {
        assert!(note(&mut lab, request));
    }
    let values =
        |lab: &mut Lab| look(lab, 0, 64).2.into_iter().map(|(what, .., value)| what + &value).collect::<Vec<_>>();
    assert_eq!(values(&mut lab), ["saidy", "led"]);
    // A new master may have granted the same attempt once more.
    assert!(!note(&mut lab, &election().said(leader.wire(), term - 1, 4, "a", "z")));
    // The hold is gone, and then another one leads.
    resign(&mut lab, &leader);
    for request in [&begin, &x, &y] {
        assert!(!note(&mut lab, request));
    }
    let next = attempt(2, 1);
    let term = lab.acquire(&next).token();
    note(&mut lab, &election().led(next.wire(), term, "b"));
    for request in [&begin, &y] {
        assert!(!note(&mut lab, request));
    }
    assert_eq!(look(&mut lab, 0, 1).2, [change("led", term, "b", "")]);
}

#[test]
fn the_next_call_records_the_end_of_a_term_whose_lease_is_over() {
    let (a, b) = (attempt(2, 1), attempt(2, 2));
    for by in ["watch", "heartbeat", "the next leader"] {
        let (mut lab, leader, term) = led();
        note(&mut lab, &election().led(leader.wire(), term, "a"));
        let known = revision(&mut lab);
        assert_eq!(watch(&mut lab, &a, known), Ok(Watched::Queued));
        let inbox = lab.listen(2);
        lab.expire_hold();
        let ended = change("ended", term, "", "");
        match by {
            "watch" => assert_eq!(watch(&mut lab, &b, known), Ok(Watched::Open)),
            "heartbeat" => assert_eq!(heartbeat(&mut lab, &[&a], known), Ok(vec![true])),
            _ => {
                let next = attempt(3, 1);
                let term = lab.acquire(&next).token();
                note(&mut lab, &election().led(next.wire(), term, "b"));
                assert_eq!(look(&mut lab, known, 64).2, [change("led", term, "b", ""), ended.clone()]);
            }
        }
        assert_eq!(look(&mut lab, known, 64).2.pop(), Some(ended), "{by}");
        // A heartbeat tells its own in the reply.
        let messages = if by == "heartbeat" { vec![] } else { vec![format!("open {}", a.id)] };
        assert_eq!(told(&mut lab, &inbox), messages, "{by}");
        // Once.
        let revision = revision(&mut lab);
        assert_eq!(watch(&mut lab, &b, revision), Ok(Watched::Queued));
        assert_eq!(heartbeat(&mut lab, &[&b], revision), Ok(vec![false]));
    }
}

/// Between the grant and its announcement there is a hold, of which nothing is said.
#[test]
fn a_leader_that_has_said_nothing_yet_ends_the_term_before() {
    let (mut lab, leader, term) = led();
    note(&mut lab, &election().led(leader.wire(), term, "a"));
    let (next, _inbox) = (attempt(3, 1), lab.listen(3));
    lab.acquire(&next);
    lab.release(&leader);
    let known = revision(&mut lab);
    assert_eq!(watch(&mut lab, &attempt(2, 1), known), Ok(Watched::Open));
    assert_eq!(look(&mut lab, known, 64), (next.id.clone(), false, vec![change("ended", term, "", "")]));
    let known = revision(&mut lab);
    assert_eq!(watch(&mut lab, &attempt(2, 1), known), Ok(Watched::Queued));
}

#[test]
fn everybody_who_waits_is_told_once() {
    let (mut lab, leader, term) = led();
    let (a, b, c) = (attempt(2, 1), attempt(2, 2), attempt(3, 1));
    let (of_two, of_three) = (lab.listen(2), lab.listen(3));
    for waiter in [&a, &b, &c] {
        assert_eq!(watch(&mut lab, waiter, 0), Ok(Watched::Queued));
    }
    assert!((HOUR - 5000..=HOUR).contains(&lab.server.ttl_ms(WATCHERS)));
    assert_eq!(announced(&mut lab, &election().led(leader.wire(), term, "a")), Ok(true));
    let mut messages = told(&mut lab, &of_two);
    assert_eq!(messages.len(), 1);
    let mut ids: Vec<_> = messages.remove(0).split(' ').map(str::to_owned).collect();
    ids.sort();
    assert_eq!(ids, [a.id.clone(), b.id.clone(), "open".to_owned()]);
    assert_eq!(told(&mut lab, &of_three), [format!("open {}", c.id)]);
    assert_eq!(lab.server.ttl_ms(WATCHERS), -2);
    assert_eq!(watch(&mut lab, &a, 0), Ok(Watched::Open));
    assert_eq!(lab.server.ttl_ms(WATCHERS), -2);
    // A client that has given up gets no message.
    let known = revision(&mut lab);
    watch(&mut lab, &a, known).unwrap();
    let cancel = watching(known).cancel(a.wire(), false);
    assert_eq!(sent(&mut lab, &cancel, false, |words| (words.word(), words.flag())), Ok(("CANCELLED".into(), false)));
    note(&mut lab, &election().said(leader.wire(), term, 2, "a", "x"));
    assert_eq!(told(&mut lab, &of_two), [""; 0]);
}

#[test]
fn of_very_many_waiters_some_learn_of_a_change_from_their_heartbeats() {
    let (mut lab, leader, term) = led();
    lab.checked = false;
    let inbox = lab.listen(2);
    let waiters: Vec<_> = (0..2_300).map(|n| attempt(2, n).patient()).collect();
    for waiter in &waiters {
        assert_eq!(watch(&mut lab, waiter, 0), Ok(Watched::Queued));
    }
    note(&mut lab, &election().led(leader.wire(), term, "a"));
    let ids = |lab: &mut Lab| -> BTreeSet<String> {
        let messages = told(lab, &inbox);
        messages.iter().flat_map(|message| message.split(' ').skip(1)).map(str::to_owned).collect()
    };
    let first = ids(&mut lab);
    assert_eq!(first.len(), 1000);
    // They wait again, and the next change tells others as well.
    let known = revision(&mut lab);
    for waiter in waiters.iter().filter(|waiter| first.contains(&waiter.id)) {
        assert_eq!(watch(&mut lab, waiter, known), Ok(Watched::Queued));
    }
    let rest: Vec<_> = waiters.iter().filter(|waiter| !first.contains(&waiter.id)).collect();
    assert_eq!(heartbeat(&mut lab, &rest, 0), Ok(vec![true; 1_300]));
    note(&mut lab, &election().said(leader.wire(), term, 2, "a", "x"));
    assert_eq!(ids(&mut lab), first);
}

#[test]
fn a_wait_that_comes_too_late_queues_nothing() {
    let (mut lab, leader, term) = led();
    let late = attempt(2, 1).not_after(1);
    assert_eq!(watch(&mut lab, &late, 0), Ok(Watched::Stale));
    assert_eq!(lab.server.ttl_ms(WATCHERS), -2);
    assert_eq!(watch(&mut lab, &attempt(2, 1), 0), Ok(Watched::Queued));
    assert_eq!(watch(&mut lab, &late, 0), Ok(Watched::Queued), "it waits already");
    note(&mut lab, &election().led(leader.wire(), term, "a"));
    assert_eq!(watch(&mut lab, &late, 0), Ok(Watched::Open));
}

#[test]
fn a_ticket_that_is_gone_may_have_missed_something() {
    let (mut lab, leader, term) = led();
    note(&mut lab, &election().led(leader.wire(), term, "a"));
    let (known, a, b) = (revision(&mut lab), attempt(2, 1), attempt(2, 2).ttl(TICKET_TTL / 2));
    watch(&mut lab, &a, known).unwrap();
    assert_eq!(heartbeat(&mut lab, &[&a, &b], known), Ok(vec![false, true]));
    // While somebody watches, what is known stays known.
    lab.raw(&["PEXPIRE", CHANGES, "5000"]);
    lab.raw(&["PEXPIRE", WATCHERS, "5000"]);
    heartbeat(&mut lab, &[&a], known).unwrap();
    for key in [CHANGES, WATCHERS] {
        assert!((HOUR - 5000..=HOUR).contains(&lab.server.ttl_ms(key)), "{key}");
    }
    // One that knows another revision is to look, and waits no more: this server may lack changes, or has more.
    for other in [known - 1, known + 1] {
        watch(&mut lab, &a, known).unwrap();
        assert_eq!(heartbeat(&mut lab, &[&a], other), Ok(vec![true]));
        assert_eq!(lab.server.ttl_ms(WATCHERS), -2);
        assert_eq!(watch(&mut lab, &a, other), Ok(Watched::Open));
    }
}

/// The list is gone, and with it what would be noted of the term's end.
#[test]
fn without_the_list_the_hold_tells_that_a_term_has_ended() {
    let (mut lab, leader, term) = led();
    note(&mut lab, &election().led(leader.wire(), term, "a"));
    let (known, a) = (revision(&mut lab), attempt(2, 1));
    watch(&mut lab, &a, known).unwrap();
    lab.raw(&["DEL", CHANGES]);
    assert_eq!(heartbeat(&mut lab, &[&a], known), Ok(vec![true]));
    assert_eq!(look(&mut lab, known, 64), (leader.id.clone(), true, vec![]));
    assert_eq!(watch_in(&mut lab, &a, 0, term), Ok(Watched::Queued));
    assert_eq!(heartbeat_in(&mut lab, &[&a], 0, term), Ok(vec![false]));
    lab.expire_hold();
    assert_eq!(heartbeat_in(&mut lab, &[&a], 0, term), Ok(vec![true]));
    assert_eq!(watch_in(&mut lab, &a, 0, term), Ok(Watched::Open));
    assert_eq!(watch_in(&mut lab, &a, 0, 0), Ok(Watched::Queued));
}

#[test]
fn the_oldest_changes_are_forgotten() {
    let (mut lab, leader, term) = led();
    note(&mut lab, &election().led(leader.wire(), term, "a"));
    let first = revision(&mut lab);
    for n in 2..=65 {
        note(&mut lab, &election().said(leader.wire(), term, n, "a", "x"));
    }
    let (_, missed, changes) = look(&mut lab, first, 65);
    assert_eq!((missed, changes.len(), lab.list(CHANGES).len()), (false, 64, 65));
    note(&mut lab, &election().said(leader.wire(), term, 66, "a", "x"));
    let (_, missed, changes) = look(&mut lab, first, 65);
    assert_eq!((missed, changes.len(), lab.list(CHANGES).len()), (true, 65, 65));
}

#[test]
fn revisions_grow_if_the_clock_was_set_back() {
    let (mut lab, leader, term) = led();
    let ahead = (lab.now() + 600_000) * 1000;
    // In one step: no key may be seen without a TTL.
    let push = "redis.call('RPUSH', KEYS[1], ARGV[1]) redis.call('PEXPIRE', KEYS[1], 60000)";
    lab.raw(&["EVAL", push, "1", CHANGES, &format!("{ahead} led {term} 1 c 0 ")]);
    note(&mut lab, &election().said(leader.wire(), term, 2, "a", "x"));
    assert_eq!(revision(&mut lab), ahead + 1);
    lab.raw(&["DEL", CHANGES]);
    let before = lab.now() * 1000;
    note(&mut lab, &election().said(leader.wire(), term, 3, "a", "y"));
    assert!((before..ahead).contains(&revision(&mut lab)));
}

#[test]
fn a_renewal_keeps_what_is_known_of_the_leader() {
    let (mut lab, leader, term) = led();
    note(&mut lab, &election().led(leader.wire(), term, "a"));
    let lock = lab.keys[0].clone();
    let renew = |lab: &mut Lab, attempt: &Attempt| {
        let election = election();
        let request = wire::renew(&[(&election, attempt.wire())]).unwrap();
        assert_eq!(request.script.name(), "election_renew");
        sent(lab, &request, true, |words| words.next::<Value>()).unwrap()
    };
    let token = Value::BulkString(term.to_string().into());
    for (lease, ttl) in [(LEASE, HOUR), (5_000_000, 10_000_000)] {
        lab.raw(&["PEXPIRE", &lock, "5000"]);
        lab.raw(&["PEXPIRE", CHANGES, "5000"]);
        assert_eq!(renew(&mut lab, &leader.clone().lease(lease)), token);
        assert!((lease as i64 - 5000..=lease as i64).contains(&lab.ttl(0)));
        assert!((ttl - 5000..=ttl).contains(&lab.server.ttl_ms(CHANGES)));
    }
    // A client that does not lead renews nothing, and a lease of zero neither.
    lab.raw(&["PEXPIRE", CHANGES, "5000"]);
    assert_eq!(renew(&mut lab, &attempt(2, 1)), Value::Int(0));
    assert_eq!(renew(&mut lab, &leader.clone().lease(0)), token);
    assert!(lab.server.ttl_ms(CHANGES) <= 5000);
    // It creates no list.
    lab.raw(&["DEL", CHANGES]);
    renew(&mut lab, &leader);
    assert_eq!(lab.server.ttl_ms(CHANGES), -2);
    lab.set_wrong(&lock);
    assert_eq!(renew(&mut lab, &leader), Value::Int(-1));
}

#[test]
fn a_key_of_a_wrong_type_is_an_error_and_nothing_is_changed() {
    for key in ["p:election:{n}", CHANGES, WATCHERS] {
        let (mut lab, leader, term) = led();
        let requests = [election().led(leader.wire(), term, "a"), watching(0).acquire(attempt(2, 1).wire(), true)];
        lab.set_wrong(key);
        for request in &requests {
            let refused = sent(&mut lab, request, false, |words| {
                let rest = words.left() - 1;
                (0..rest).for_each(|_| drop(words.next::<Value>()));
            });
            assert_eq!(refused, Err("WRONGTYPE".to_owned()), "{key}");
        }
        assert!(key == CHANGES || lab.list(CHANGES).is_empty(), "{key}");
    }
}

#[test]
fn a_server_that_takes_no_writes_says_nothing() {
    for refusal in Refusal::ALL {
        let mut lab = Lab::on(Refusal::server());
        lab.keys = election().keys();
        if !refusal.applies(&lab) {
            continue;
        }
        let leader = attempt(1, 1);
        let term = lab.acquire(&leader).token();
        note(&mut lab, &election().led(leader.wire(), term, "a"));
        let known = revision(&mut lab);
        refusal.begin(&mut lab);
        let code = Err(refusal.code());
        assert_eq!(announced(&mut lab, &election().led(leader.wire(), term, "a")), code, "a copy");
        assert_eq!(announced(&mut lab, &election().said(leader.wire(), term, 2, "a", "x")), code);
        assert_eq!(announced(&mut lab, &election().led(attempt(2, 1).wire(), term, "a")), code, "not held");
        for known in [known, 0] {
            assert_eq!(watch(&mut lab, &attempt(3, 1), known).map(drop), Err(refusal.code()));
            assert_eq!(heartbeat(&mut lab, &[&attempt(3, 1)], known).map(drop), Err(refusal.code()));
        }
    }
}

/// A list without a time to live would stay for ever.
#[test]
fn without_a_right_that_a_ttl_needs_nothing_is_left() {
    for command in ["-pexpire", "-pttl"] {
        without(command);
    }
}

fn without(command: &str) {
    let (mut lab, leader, term) = led();
    // The checks after each call need the rights, too.
    lab.checked = false;
    lab.raw(&["ACL", "SETUSER", "default", command]);
    assert_eq!(announced(&mut lab, &election().led(leader.wire(), term, "a")), Err("NOPERM".to_owned()));
    assert_eq!(watch(&mut lab, &attempt(2, 1), 0).map(drop), Err("NOPERM".to_owned()));
    lab.raw(&["ACL", "SETUSER", "default", "+@all"]);
    for key in [CHANGES, WATCHERS] {
        assert_eq!(lab.server.ttl_ms(key), -2, "{key} {command}");
    }
}

#[test]
fn every_script_of_an_election_is_tested_here() {
    let names = Script::all().map(Script::name).filter(|name| name.starts_with("election_"));
    let tested = ["announce", "heartbeat", "leader", "release", "renew", "watch"];
    assert_eq!(names.collect::<Vec<_>>(), tested.map(|name| format!("election_{name}")));
}
