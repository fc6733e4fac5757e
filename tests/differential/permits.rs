//! The scripts of a semaphore of three and of a read-write lock, at random.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::steps::{
    KEYS, NO_LOCK, READ_WRITE, SEMAPHORE, Step, Text, attempt_id, client, counts_everyone, cut, first_place, inbox,
    keys_from, listed, mostly, one, ticket_ttl,
};

type Call = (&'static str, Vec<String>, Vec<String>);

pub fn script() -> impl Strategy<Value = Step> {
    cut(prop_oneof![calls(SEMAPHORE), calls(READ_WRITE)])
}

/// A lease is over, or a ticket had no heartbeat in time.
pub fn outdate() -> impl Strategy<Value = Step> {
    prop_oneof![Just(SEMAPHORE), Just(READ_WRITE)].prop_flat_map(|at| {
        prop_oneof![
            attempt_id().prop_map(move |id| Step::Outdate { tickets: KEYS[at + 1], ticket: id }),
            ticket(at).prop_map(move |ticket| Step::Outdate { tickets: KEYS[at + 3], ticket }),
        ]
    })
}

/// Never so short that it could end between one server and the other: what is too short is a millisecond.
fn lease() -> Text {
    mostly(
        &["30000", "30000", "30000", "30000", "60000"],
        &["", "x", "3e4", " 30000", "9223372036854775807", "9223372036854775808", "030000", "inf", "nan", "0x7530"],
    )
}

fn units(at: usize) -> Text {
    let bad = ["0", "-3", "x", "", "1e0", "1048577", "99999999999999999999"];
    if at == READ_WRITE { mostly(&["1", "1", "1", "1048576"], &bad) } else { mostly(&["1", "1", "2", "3", "4"], &bad) }
}

fn limit(at: usize) -> Text {
    let bad = ["0", "-1", "x", "", "2"];
    if at == READ_WRITE { mostly(&["1048576"], &bad) } else { mostly(&["3", "3", "3", "3", "4", "1"], &bad) }
}

fn ticket(at: usize) -> Text {
    let made = (attempt_id(), lease(), units(at), limit(at))
        .prop_map(|(id, lease, units, limit)| format!("{id}/{lease}/{units}/{limit}"));
    let odd = mostly(&["", "/", "c1:1/30000", "c1:1/30000/1/", "c1:1/30000/1", "c1:1/30000/1/3/"], &["c1:1//", "x"]);
    prop_oneof![25 => made, 1 => odd].boxed()
}

/// Long ago, or in the year 2128.
fn not_after() -> Text {
    mostly(&["0", "0", "0", "0", "0", "1", "5000000000000"], &["-1", "x", ""])
}

/// What every script that promotes is told: the limit, the inbox prefix and whether all subscribers are counted.
fn site(at: usize) -> Vec<Text> {
    vec![limit(at), inbox(), counts_everyone()]
}

fn calls(at: usize) -> BoxedStrategy<Call> {
    let of = move |name, args: Vec<Text>| args.prop_map(move |args| (name, keys_from(at, 5), args));
    let acquire = vec![
        attempt_id(),
        mostly(&["wait", "wait", "try"], &["", "WAIT"]),
        lease(),
        units(at),
        limit(at),
        ticket_ttl(),
        mostly(&["0", "1", "1", "2"], &["-1", "x", ""]),
        not_after(),
        inbox(),
        counts_everyone(),
    ];
    let no_ticket = prop_oneof![2 => one(""), 1 => ticket(at)].boxed();
    let release = [vec![attempt_id()], site(at), vec![no_ticket, ticket_ttl(), counts_everyone()]].concat();
    let from = mostly(&["1", "-1"], &["0", "x", "", "2"]);
    let cancel = [vec![ticket(at), from], site(at)].concat();
    let heartbeat_reply = vec((ticket(at), ticket_ttl()), 0..4)
        .prop_map(|pairs| pairs.into_iter().flat_map(|(ticket, ttl)| [ticket, ttl]).collect::<Vec<_>>());
    let heartbeat = (site(at), heartbeat_reply).prop_map(move |(site, heartbeat_reply)| {
        let args = [site, heartbeat_reply].concat();
        ("permit_heartbeat", keys_from(at, 5), args)
    });
    let zero = || prop_oneof![lease(), one("0")];
    let renewal = (attempt_id(), zero(), zero(), prop_oneof![one("0"), one("1")]);
    let holds = vec((select(vec![at, at, SEMAPHORE, READ_WRITE, at + 1, NO_LOCK]), renewal), 0..5);
    let scripts = select(vec![("permit_renew", 2), ("permit_renew_short", 1)]);
    let renewed = (scripts, holds).prop_map(|((script, count), holds)| {
        let keys = holds.iter().flat_map(|(key, ..)| keys_from(*key, count)).collect();
        let args =
            holds.into_iter().flat_map(|(_, (id, lease, longest, extended))| [id, lease, longest, extended]).collect();
        (script, keys, args)
    });
    let change = [
        vec![attempt_id(), attempt_id(), units(at), lease(), limit(at), not_after()],
        vec![inbox(), counts_everyone()],
        vec![prop_oneof![3 => one(""), 1 => attempt_id()].boxed(), mostly(&["", "", "7", "1700000000000000"], &["x"])],
    ]
    .concat();
    let ask_ahead = vec![
        attempt_id(),
        // Seldom the real token of a writer, because it depends on the clock.
        mostly(&["0", "0", "1", "1700000000000000"], &["x", ""]),
        lease(),
        mostly(&["32", "64"], &["0", "-1", "x", ""]),
        ticket(at),
        ticket_ttl(),
        not_after(),
    ];
    let own = vec(ticket(at), 0..3);
    let go_on = (attempt_id(), lease(), limit(at), own).prop_map(move |(id, lease, limit, own)| {
        ("permit_go_on", keys_from(at, 5), [vec![id, lease, limit], own].concat())
    });
    let set_limit = vec![
        mostly(&["1", "2", "3", "5"], &["0", "-1", "x", "", "1048576", "1e2"]),
        not_after(),
        inbox(),
        counts_everyone(),
    ];
    let drain = [vec![attempt_id(), lease(), limit(at), not_after()], vec![inbox(), counts_everyone()]].concat();
    let rest = mostly(&["1", "1", "2"], &["0", "-1", "x", "", "1e0"]);
    let give_back = [vec![attempt_id(), rest], site(at)].concat();
    let inspect = of("permit_inspect", vec![limit(at), listed()]);
    let drop_waiters = [vec![client(), first_place(), not_after()], site(at)].concat();
    let of_semaphores = prop_oneof![
        1 => of("permit_limit", set_limit),
        2 => of("permit_drain", drain),
        2 => of("permit_give_back", give_back),
        2 => go_on,
    ];
    let of_writers = prop_oneof![2 => inspect.clone(), 3 => of("permit_ask_ahead", ask_ahead)];
    prop_oneof![
        14 => of("permit_acquire", acquire),
        5 => of("permit_release", release),
        6 => of("permit_cancel", cancel),
        3 => heartbeat,
        3 => renewed,
        4 => of("permit_change", change),
        1 => of("permit_drop_waiters", drop_waiters),
        1 => of("permit_force_release", [site(at), vec![attempt_id(), attempt_id()]].concat()),
        1 => inspect.clone(),
        5 => if at == SEMAPHORE { of_semaphores.boxed() } else { of_writers.boxed() },
    ]
    .boxed()
}
