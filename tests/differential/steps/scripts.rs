//! Our scripts, with arguments good and bad.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::{INBOX, KEYS, LABELS, LIMITER, LOCKS, NO_LOCK, Step};

pub type Text = BoxedStrategy<String>;

/// Mostly one of `good`, now and then one of `bad`.
pub fn mostly(good: &[&'static str], bad: &[&'static str]) -> Text {
    let of = |words: &[&'static str]| select(words.to_vec()).prop_map(str::to_owned);
    prop_oneof![60 => of(good), 1 => of(bad)].boxed()
}

pub fn attempt_id() -> Text {
    mostly(
        &["c1:1", "c1:2", "c2:1", "c2:2", "c3:1"],
        &["", "token", "c1", ":1", "c1:x", "c1:1/2", "c1:1:2", "é:1", "c1:1\0", "c4:1"],
    )
}

/// Never so short that it could end between one server and the other.
pub fn lease() -> Text {
    mostly(
        &["30000", "30000", "30000", "30000", "60000"],
        &["0", "-1", "", "x", "1.5", "3e4", " 30000", "9223372036854775807", "9223372036854775808", "030000"],
    )
}

pub fn span() -> Text {
    mostly(&["1", "1", "1", "1", "1", "32"], &["0", "-3", "x", "", "1e3", "99999999999999999999"])
}

pub(super) fn ticket() -> Text {
    let made = (attempt_id(), lease(), span()).prop_map(|(id, lease, span)| format!("{id}/{lease}/{span}"));
    prop_oneof![25 => made, 1 => mostly(&["", "/", "c1:1/30000", "c1:1/30000/1/"], &["c1:1//", "x"])].boxed()
}

/// 0 is outdated at once.
pub fn ticket_ttl() -> Text {
    mostly(&["20000", "30000", "0"], &["", "x", "-5", "1e5", "0x10000"])
}

/// How many tickets are looked at.
pub fn listed() -> Text {
    mostly(&["0", "1", "100"], &["x", ""])
}

pub fn client() -> Text {
    mostly(&["c1", "c2", "c3"], &[""])
}

/// From which place in the queue on.
pub fn first_place() -> Text {
    mostly(&["0", "0", "1"], &["x", "-1", ""])
}

pub fn one(text: &str) -> Text {
    Just(text.to_owned()).boxed()
}

pub fn counts_everyone() -> Text {
    mostly(&["1", "1", "1", "0"], &["", "true"])
}

pub fn inbox() -> Text {
    one(INBOX)
}

pub(super) fn script() -> impl Strategy<Value = Step> {
    let [a, b] = LOCKS;
    let lock = move || prop_oneof![4 => Just(a), 1 => Just(b)].prop_map(|at| keys_from(at, 4));
    let acquire = vec![
        attempt_id(),
        mostly(&["wait", "wait", "try"], &["", "WAIT"]),
        lease(),
        span(),
        ticket_ttl(),
        mostly(&["0", "0", "1", "2"], &["-1", "x", ""]),
        // A time long ago, or in the year 2128.
        mostly(&["0", "0", "0", "0", "0", "1", "5000000000000"], &["-1", "x", ""]),
        inbox(),
        counts_everyone(),
    ];
    let no_ticket = || prop_oneof![2 => one(""), 1 => ticket()].boxed();
    let release = vec![attempt_id(), inbox(), counts_everyone(), no_ticket(), ticket_ttl(), counts_everyone()];
    let ask_ahead = vec![
        attempt_id(),
        // Seldom the real token of the hold, because it depends on the clock.
        mostly(&["1", "1700000000000000"], &["x", ""]),
        lease(),
        span(),
        ticket(),
        ticket_ttl(),
        mostly(&["0", "0", "0", "1", "5000000000000"], &["-1", "x", ""]),
    ];
    let from = mostly(&["1", "-1"], &["0", "x", "", "2"]);
    let cancel = vec![ticket(), from, inbox(), counts_everyone()];
    let heartbeat_reply = vec((ticket(), ticket_ttl()), 0..4)
        .prop_map(|pairs| pairs.into_iter().flat_map(|(ticket, ttl)| [ticket, ttl]).collect::<Vec<_>>());
    let heartbeat = (inbox(), counts_everyone(), heartbeat_reply)
        .prop_map(|(inbox, counts, heartbeat_reply)| [vec![inbox, counts], heartbeat_reply].concat())
        .boxed();
    let zero = || prop_oneof![lease(), one("0")];
    let renewal = (attempt_id(), zero(), zero(), prop_oneof![one("0"), one("1")]);
    let renewed = vec((select(vec![a, a, b, a + 1, NO_LOCK]), renewal), 0..5).prop_map(|holds| {
        let keys = holds.iter().map(|(key, ..)| KEYS[*key].to_owned()).collect();
        let args =
            holds.into_iter().flat_map(|(_, (id, lease, longest, extended))| [id, lease, longest, extended]).collect();
        (keys, args)
    });
    let vote = vec![
        attempt_id(),
        lease(),
        mostly(&["1", "2", "3", "5000000000000000"], &["0", "-1", "", "x", "1.5", "9007199254740993"]),
        mostly(&["c1:1", "c2:1", "c3:1"], &["", "c1:1 2"]),
        mostly(&["0", "0", "1"], &["", "x"]),
        mostly(&["0", "0", "0", "0", "1", "5000000000000"], &["-1", "x", ""]),
        mostly(&["", "s/1/3", "s/2/4", "s/3/3"], &["s", "s/1", "//", "s/1/3 9"]),
    ];
    // Votes use the keys of the lock that the other steps use less.
    // The last save of the process depends on the clock, so no caller knows it.
    let known = mostly(&["0"], &["x", ""]);
    let voted = (vote.clone(), known.clone()).prop_map(|(args, known)| {
        ("lock_vote", vec![KEYS[4].to_owned(), KEYS[7].to_owned()], [args, vec![known]].concat())
    });
    let claimed = (vote, known, attempt_id(), lease()).prop_map(move |(args, known, turn, lease)| {
        let keys = [vec![KEYS[4].to_owned(), KEYS[7].to_owned()], keys_from(a, 4)].concat();
        ("lock_vote_claim", keys, [args, vec![known, turn, lease]].concat())
    });
    let left = (attempt_id(), attempt_id()).prop_map(move |(vote, turn)| {
        let keys = [vec![KEYS[4].to_owned()], keys_from(a, 3)].concat();
        ("lock_vote_leave", keys, vec![vote, turn])
    });
    let rights = ["hash", "list", "zset", "string"].map(|word| mostly(&[word], &["hash", "zset", ""])).to_vec();
    // A year has 366 days. No sequence sees two of them.
    let begin = vec![
        attempt_id(),
        lease(),
        mostly(&["31622400000"], &["0", "-1", "", "x"]),
        // No sequence runs in 1971.
        mostly(&["0", "0", "0", "31622400000"], &["-1", "", "x"]),
        mostly(&["0", "1"], &["", "x"]),
        mostly(&["0", "0", "0", "1", "5000000000000"], &["-1", "x", ""]),
    ];
    let end = vec![
        attempt_id(),
        lease(),
        mostly(&["31622400000"], &["0", "", "x"]),
        mostly(&["done", "failed"], &["", "running", "a b"]),
        mostly(&["0", "20000"], &["x", ""]),
    ];
    // A day and more, in nanoseconds: see `agree::Slack`.
    let time = |good| mostly(good, &["0", "-1", "", "x", "100000000000000.5", "9223372036854775808"]);
    let late = || mostly(&["0", "0", "0", "1", "5000000000000"], &["-1", "x", ""]);
    let take = vec![
        time(&["100000000000000", "50000000000000"]),
        time(&["300000000000000", "100000000000000"]),
        time(&["0", "0", "200000000000000"]),
        late(),
    ];
    let of_limiter = |name, args: Vec<Text>| args.prop_map(move |args| (name, keys_from(LIMITER, 1), args));
    let of = |name, args: BoxedStrategy<Vec<String>>| (lock(), args).prop_map(move |(keys, args)| (name, keys, args));
    let calls = prop_oneof![
        20 => of("lock_acquire", acquire.boxed()),
        9 => voted,
        4 => claimed,
        2 => left,
        1 => Just(("lock_view", vec![KEYS[4].to_owned()], Vec::new())),
        4 => of("lock_release", release.boxed()),
        3 => of("lock_ask_ahead", ask_ahead.boxed()),
        8 => of("lock_cancel", cancel.boxed()),
        3 => of("lock_heartbeat", heartbeat),
        2 => renewed.prop_map(|(keys, args)| ("lock_renew", keys, args)),
        1 => of("lock_drop_waiters", [vec![client(), first_place(), late()], vec![inbox(), counts_everyone()]].concat().boxed()),
        1 => of("lock_force_release", vec![attempt_id(), inbox(), counts_everyone()].boxed()),
        2 => of("once_begin", begin.boxed()),
        2 => of("once_end", end.boxed()),
        1 => of("once_inspect", Just(Vec::new()).boxed()),
        6 => of_limiter("rate_take", take),
        1 => of_limiter("rate_reset", vec![late()]),
        1 => of_limiter("rate_inspect", Vec::new()),
        1 => (client(), mostly(&["60000", "20000", "0"], &["x", "", "-1"]), late(), mostly(&["web-7", ""], &["\n"]))
            .prop_map(|(client, ttl, late, label)| ("client_label", keys_from(LABELS, 2), vec![client, ttl, late, label])),
        1 => (lock(), vec(attempt_id(), 0..3)).prop_map(|(keys, ids)| ("client_ask", keys[..1].to_vec(), [vec![INBOX.to_owned()], ids].concat())),
        1 => vec(client(), 0..4).prop_map(|clients| ("client_labels", keys_from(LABELS, 2), clients)),
        1 => of("lock_inspect", vec![listed()].boxed()),
        1 => (0..KEYS.len()).prop_map(|n| ("client_types", keys_from(n, KEYS.len() - n), Vec::new())),
        1 => rights.prop_map(move |types| {
            ("client_rights", keys_from(a, 4), [vec![format!("{INBOX}c1:check")], types].concat())
        }),
        1 => select(vec!["c1", "c2", "c4"])
            .prop_map(move |client| ("client_listeners", keys_from(a, 1), vec![format!("{INBOX}{client}")])),
    ];
    cut(calls)
}

/// A ticket that is cancelled: chance alone seldom queues one up and cancels the same one.
pub(super) fn cancelled() -> impl Strategy<Value = Vec<Step>> {
    select(vec!["1", "-1"]).prop_map(|from| {
        let call = |name, args: &[&str]| Step::Script {
            name,
            keys: keys_from(LOCKS[1], 4),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        };
        let acquire = |id| call("lock_acquire", &[id, "wait", "30000", "1", "20000", "0", "0", INBOX, "1"]);
        vec![acquire("c1:1"), acquire("c2:1"), call("lock_cancel", &["c2:1/30000/1", from, INBOX, "1"])]
    })
}

/// Now and then keys or arguments are missing.
pub fn cut(calls: impl Strategy<Value = (&'static str, Vec<String>, Vec<String>)>) -> impl Strategy<Value = Step> {
    let missing = || prop_oneof![30 => Just(0_usize), 1 => 1..5_usize];
    (calls, missing(), missing()).prop_map(|((name, mut keys, mut args), no_keys, no_args)| {
        keys.truncate(keys.len().saturating_sub(no_keys));
        args.truncate(args.len().saturating_sub(no_args));
        Step::Script { name, keys, args }
    })
}

pub fn keys_from(at: usize, n: usize) -> Vec<String> {
    KEYS[at..at + n].iter().map(|key| (*key).to_owned()).collect()
}
