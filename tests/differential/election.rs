//! The scripts of an election, at random. Its leader holds the first lock.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::steps::{
    ELECTION, KEYS, LOCKS, Step, attempt_id, counts_everyone, cut, inbox, keys_from, mostly, ticket_ttl,
};

pub fn outdate() -> impl Strategy<Value = Step> {
    attempt_id().prop_map(|id| Step::Outdate { tickets: KEYS[ELECTION], ticket: id })
}

fn keys(behind: usize) -> Vec<String> {
    let watched = [KEYS[LOCKS[0]], KEYS[ELECTION], KEYS[ELECTION + 1]];
    watched.into_iter().take(behind).map(str::to_owned).collect()
}

pub fn script() -> impl Strategy<Value = Step> {
    let known = || mostly(&["0", "0", "5000000000000000"], &["", "x", "-1"]);
    let not_after = || mostly(&["0", "0", "1", "5000000000000"], &["-1", "x", ""]);
    let number = mostly(&["1", "2", "3", "4"], &["", "x", "-1"]);
    let text = || mostly(&["", "a", "a b"], &["é", "\0", "0 0"]);
    let what = mostly(&["led", "said", "said"], &["", "sang"]);
    let term = || mostly(&["1", "5000000000000000"], &["", "x"]);
    let announce = vec![attempt_id(), term(), what, number, text(), text(), inbox()];
    let leads = || mostly(&["0", "1"], &["", "x"]);
    let watch = vec![attempt_id(), ticket_ttl(), known(), leads(), not_after(), inbox()];
    let release = vec![attempt_id(), inbox(), counts_everyone()];
    let heartbeat = (inbox(), known(), leads(), vec((attempt_id(), ticket_ttl()), 0..4)).prop_map(
        |(inbox, known, leads, pairs)| {
            let tickets = pairs.into_iter().flat_map(|(id, ttl)| [id, ttl]);
            ("election_heartbeat", keys(3), [inbox, known, leads].into_iter().chain(tickets).collect())
        },
    );
    let zero = || mostly(&["30000", "60000", "0"], &["x", ""]);
    let flag = mostly(&["0", "1"], &["x"]);
    let renew = vec((attempt_id(), zero(), zero(), flag), 0..3).prop_map(|holds| {
        let of_one = || [KEYS[LOCKS[0]], KEYS[ELECTION + 1]].map(str::to_owned);
        let keys = holds.iter().flat_map(|_| of_one()).collect();
        let args =
            holds.into_iter().flat_map(|(id, lease, longest, extended)| [id, lease, longest, extended]).collect();
        ("election_renew", keys, args)
    });
    let look = (known(), select(vec!["1", "64", "0"])).prop_map(|(known, most)| {
        let keys = [KEYS[LOCKS[0]], KEYS[ELECTION + 1]].map(str::to_owned).to_vec();
        ("election_leader", keys, vec![known, most.to_owned()])
    });
    cut(prop_oneof![
        6 => announce.prop_map(|args| ("election_announce", keys(3), args)),
        2 => release.prop_map(|args| {
            let of_changes = [KEYS[ELECTION], KEYS[ELECTION + 1]].map(str::to_owned);
            ("election_release", [keys_from(LOCKS[0], 4), of_changes.to_vec()].concat(), args)
        }),
        4 => watch.prop_map(|args| ("election_watch", keys(3), args)),
        3 => heartbeat,
        2 => renew,
        2 => look,
    ])
}
