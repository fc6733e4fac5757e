//! The scripts of locks in Redisson's format, at random. The lock's script renews their holds.

use proptest::prelude::*;

use crate::steps::{COUNTER, KEYS, REDISSON, Step, TIMED, Text, attempt_id, cut, keys_from, lease, mostly, span};

pub fn script() -> impl Strategy<Value = Step> {
    let late = || mostly(&["0", "0", "0", "1", "5000000000000"], &["-1", "x", ""]);
    let of = |name, keys: usize, args: Vec<Text>| args.prop_map(move |args| (name, keys_from(REDISSON, keys), args));
    let channel = || mostly(&["p:inbox:c1"], &[""]);
    let probe = || mostly(&["", "", "p:inbox:c1"], &["elsewhere"]);
    // Shard channels are those of clusters only.
    let how = || mostly(&["single"], &["", "both"]);
    let renew = (attempt_id(), lease()).prop_map(|(id, lease)| {
        ("lock_renew", vec![KEYS[REDISSON].to_owned()], vec![id, lease, "0".to_owned(), "0".to_owned()])
    });
    cut(prop_oneof![
        4 => of("redisson_acquire", 1, vec![attempt_id(), lease(), late(), probe(), how()]),
        4 => of("redisson_acquire_fenced", 2, vec![attempt_id(), lease(), span(), late(), probe(), how()]),
        4 => of("redisson_release", 1, vec![attempt_id(), channel(), how(), late()]),
        1 => of("redisson_inspect", 1, Vec::new()),
        1 => renew,
        4 => counter(),
        4 => timed(),
    ])
}

/// The scripts of permits that expire, with few ids, one mark, and leases that are over. Redisson's keys have no TTL.
fn timed() -> impl Strategy<Value = (&'static str, Vec<String>, Vec<String>)> {
    let of = |name, keys: usize, args: Vec<Text>| args.prop_map(move |args| (name, keys_from(TIMED, keys), args));
    let id = || mostly(&["0000000000000001000000000000000a", "00ff250a5b5d000000000000000000AB"], &["", "x0"]);
    let late = || mostly(&["0", "0", "5000000000000"], &["1", "x"]);
    let lease = || mostly(&["30000", "60000", "-5000"], &["x"]);
    let how = || mostly(&["single"], &["", "both"]);
    let channel = || mostly(&["p:inbox:c1"], &[""]);
    prop_oneof![
        4 => of("timed_acquire", 3, vec![id(), lease(), late(), channel(), how(), mostly(&["", "p:inbox:c1"], &["x"])]),
        4 => of("timed_release", 3, vec![id(), mostly(&["c1:1", "c2:2"], &[""]), mostly(&["0", "60000"], &["x"]), channel(), how()]),
        2 => of("timed_set", 3, vec![
            mostly(&["1", "2", "3"], &["0", "x"]), late(), mostly(&["5000000000000"], &["x"]), mostly(&["0", "1"], &["x"]),
            channel(), how(),
        ]),
        2 => of("timed_inspect", 2, vec![mostly(&["0", "1", "1000"], &["x"])]),
        1 => (id(), mostly(&["30000", "0"], &["x"])).prop_map(|(id, lease)| {
            ("timed_renew", vec![KEYS[TIMED + 1].to_owned()], vec![id, lease, "0".to_owned(), "0".to_owned()])
        }),
    ]
}

/// The scripts of a latch or a semaphore, with few marks, so that copies meet.
fn counter() -> impl Strategy<Value = (&'static str, Vec<String>, Vec<String>)> {
    let of = |name, args: Vec<Text>| args.prop_map(move |args| (name, keys_from(COUNTER, 2), args));
    let permits = || mostly(&["1", "2", "3", "0"], &["-2", "x", ""]);
    let late = || mostly(&["0", "0", "5000000000000"], &["1", "x"]);
    let known = || mostly(&["5000000000000"], &["x"]);
    let resent = || mostly(&["0", "1"], &["x"]);
    let channel = || mostly(&["p:inbox:c1"], &[""]);
    let how = || mostly(&["single"], &["", "both"]);
    let probe = || mostly(&["", "p:inbox:c1"], &["elsewhere"]);
    prop_oneof![
        2 => of("shared_set", vec![permits(), late(), known(), resent(), channel(), how(), permits()]),
        2 => of("shared_count_down", vec![late(), known(), resent(), channel(), how()]),
        3 => of("shared_take", vec![permits(), late(), known(), resent(), channel(), how(), probe()]),
        3 => of(
            "shared_release",
            vec![permits(), late(), known(), resent(), channel(), how(), mostly(&["yes", "unknown"], &[""])],
        ),
        1 => Just(("shared_count", keys_from(COUNTER, 1), Vec::new())),
    ]
}
