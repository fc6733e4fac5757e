//! The scripts of a latch, at random.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::steps::{KEYS, LATCH, Step, Text, attempt_id, cut, inbox, keys_from, listed, mostly, ticket_ttl};

pub fn outdate() -> impl Strategy<Value = Step> {
    let ticket = attempt_id().prop_map(|id| Step::Outdate { tickets: KEYS[LATCH + 1], ticket: id });
    let call = call_id().prop_map(|id| Step::Outdate { tickets: KEYS[LATCH + 2], ticket: id });
    prop_oneof![ticket, call]
}

/// Ids of waiting clients and, more often, of calls.
fn call_id() -> Text {
    prop_oneof![1 => attempt_id(), 2 => (3..30_u8).prop_map(|n| format!("c1:{n}"))].boxed()
}

/// Whether another copy may have been executed.
fn resent() -> Text {
    mostly(&["0", "0", "1"], &["", "2"])
}

/// Long ago, or in the year 2128.
fn not_after() -> Text {
    mostly(&["0", "0", "5000000000000", "5000000000000", "5000000000000", "1"], &["-1", "x", "", "1e13"])
}

pub fn script() -> impl Strategy<Value = Step> {
    let of = |name, args: Vec<Text>| args.prop_map(move |args| (name, keys_from(LATCH, 3), args)).boxed();
    let ttl = mostly(&["60000", "600000"], &["", "x", "1e5", "9223372036854775808"]);
    let heartbeat_reply = (inbox(), vec((attempt_id(), ticket_ttl()), 0..4)).prop_map(|(inbox, pairs)| {
        let tickets = pairs.into_iter().flat_map(|(id, ttl)| [id, ttl]);
        let args = [inbox].into_iter().chain(tickets).collect();
        ("latch_heartbeat", keys_from(LATCH, 3), args)
    });
    let count = mostly(&["1", "2", "2", "3"], &["0", "-1", "x", "", "1.5"]);
    cut(prop_oneof![
        5 => of("latch_set", vec![call_id(), count, ttl, not_after(), not_after(), resent(), inbox()]),
        6 => of("latch_count_down", vec![call_id(), not_after(), not_after(), resent(), inbox()]),
        5 => of("latch_wait", vec![attempt_id(), ticket_ttl(), not_after()]),
        3 => heartbeat_reply,
        1 => of("latch_cancel", vec![attempt_id(), inbox()]),
        1 => of("latch_inspect", vec![listed()]),
        3 => of("latch_delete", vec![call_id(), not_after(), not_after(), resent(), inbox()]),
    ])
}
