//! `client_label` and `client_labels`: what is stored and for how long, and servers that refuse.

use std::time::Duration;

use bowline::wire;
use uuid::Uuid;

use crate::hand_over::{Monitor, assert_written_before_dropped};
use crate::lab::{Lab, PREFIX};
use crate::refusals::Refusal;

const KEYS: [&str; 2] = ["p:client:{labels}", "p:client:{labels}:leases"];
const TTL: u64 = 900_000;

fn id(client: u128) -> Uuid {
    Uuid::from_u128(client)
}

fn try_store(lab: &mut Lab, client: u128, ttl: u64, label: &str) -> Result<(), String> {
    store_before(lab, client, (ttl, 0), label)
}

fn store_before(lab: &mut Lab, client: u128, (ttl, not_after): (u64, u64), label: &str) -> Result<(), String> {
    let request = wire::store_label(PREFIX, id(client), Duration::from_millis(ttl), not_after, label);
    lab.run(request.script.name(), &KEYS.map(str::to_owned), &request.words(), false, |_| ())
}

fn store(lab: &mut Lab, client: u128, label: &str) {
    try_store(lab, client, TTL, label).unwrap();
}

fn read(lab: &mut Lab, clients: &[u128]) -> Vec<String> {
    let ids: Vec<Uuid> = clients.iter().copied().map(id).collect();
    let request = wire::read_labels(PREFIX, &ids);
    assert_eq!(request.keys(), KEYS);
    lab.run(request.script.name(), &KEYS.map(str::to_owned), &request.words(), true, |words| words.tickets()).unwrap()
}

fn fields(lab: &mut Lab) -> u64 {
    redis::cmd("HLEN").arg(KEYS[0]).query(&mut lab.connection).unwrap()
}

#[test]
fn labels_are_stored_replaced_and_removed() {
    let mut lab = Lab::new();
    assert_eq!(read(&mut lab, &[1, 2]), ["", ""]);
    store(&mut lab, 1, "web-7");
    store(&mut lab, 2, "with a space, and a ü");
    assert_eq!(read(&mut lab, &[2, 3, 1, 1]), ["with a space, and a ü", "", "web-7", "web-7"]);
    for key in KEYS {
        let ttl = lab.server.ttl_ms(key);
        assert!((TTL as i64 - 60_000..=TTL as i64).contains(&ttl), "{key}: {ttl}");
    }
    store(&mut lab, 1, "web-8");
    assert_eq!(read(&mut lab, &[1]), ["web-8"]);
    for (client, left) in [(1, 2), (1, 2), (2, 0)] {
        try_store(&mut lab, client, 0, "unused").unwrap();
        assert_eq!(lab.server.keys().len(), left, "{client}");
    }
}

/// A label that is over is not shown, and the next call that stores one drops it.
#[test]
fn a_label_ends_unless_it_is_stored_again() {
    let mut lab = Lab::new();
    store(&mut lab, 1, "killed");
    store(&mut lab, 2, "alive");
    lab.lapse(KEYS[1], &id(1).to_string(), 0);
    assert_eq!(read(&mut lab, &[1, 2]), ["", "alive"]);
    assert_eq!(fields(&mut lab), 2);
    store(&mut lab, 2, "alive");
    assert_eq!((fields(&mut lab), read(&mut lab, &[1, 2])), (1, vec![String::new(), "alive".to_owned()]));
    // Each call drops 16.
    for client in 10..40 {
        store(&mut lab, client, "killed");
    }
    for client in 10..40 {
        lab.lapse(KEYS[1], &id(client).to_string(), 1);
    }
    assert_eq!(fields(&mut lab), 31);
    for left in [15, 1, 1] {
        store(&mut lab, 2, "alive");
        assert_eq!(fields(&mut lab), left);
    }
    assert_eq!(read(&mut lab, &[2]), ["alive"]);
}

/// The server may execute a request that lay in its buffer after the one that removed the label.
#[test]
fn a_late_request_brings_no_label_back() {
    let mut lab = Lab::new();
    let late = lab.now() - 1;
    store_before(&mut lab, 1, (TTL, late), "web-7").unwrap();
    assert_eq!(lab.server.keys(), [""; 0]);
    store_before(&mut lab, 1, (TTL, late + 60_000), "web-7").unwrap();
    assert_eq!(read(&mut lab, &[1]), ["web-7"]);
    // To remove is never too late.
    store_before(&mut lab, 1, (0, late), "").unwrap();
    assert_eq!(lab.server.keys(), [""; 0]);
}

/// A cluster that is moving a slot refuses to write to a key that the script has deleted.
#[test]
fn no_key_is_deleted_and_written_again() {
    let mut lab = Lab::new();
    lab.checked = false;
    for (key, write, drop) in [(KEYS[0], "HSET", "HDEL"), (KEYS[1], "ZADD", "ZREM")] {
        lab.raw(&["DEL", KEYS[0], KEYS[1]]);
        store(&mut lab, 1, "killed");
        lab.lapse(KEYS[1], &id(1).to_string(), 1);
        let mut monitor = Monitor::of(&lab);
        store(&mut lab, 2, "alive");
        assert_written_before_dropped(&monitor.calls(&mut lab, key), write, drop);
    }
    assert_eq!((fields(&mut lab), read(&mut lab, &[1, 2])), (1, vec![String::new(), "alive".to_owned()]));
}

/// One key without the other: a label without an end is over, and storing it again mends both.
#[test]
fn half_a_state_is_mended() {
    for lost in KEYS {
        let mut lab = Lab::new();
        store(&mut lab, 1, "web-7");
        lab.raw(&["DEL", lost]);
        assert_eq!(read(&mut lab, &[1]), [""], "{lost}");
        store(&mut lab, 1, "web-7");
        assert_eq!(read(&mut lab, &[1]), ["web-7"], "{lost}");
    }
}

#[test]
fn a_key_of_a_wrong_type_is_an_error_and_nothing_is_changed() {
    for wrong in KEYS {
        let mut lab = Lab::new();
        lab.set_wrong(wrong);
        assert_eq!(try_store(&mut lab, 1, TTL, "web-7").unwrap_err(), "WRONGTYPE");
        assert_eq!(lab.server.keys(), [wrong]);
        let other = KEYS.into_iter().find(|key| *key != wrong).unwrap();
        let mut lab = Lab::new();
        store(&mut lab, 1, "web-7");
        lab.set_wrong(wrong);
        for ttl in [TTL, 0] {
            assert_eq!(try_store(&mut lab, 1, ttl, "web-8").unwrap_err(), "WRONGTYPE");
            let command = if other == KEYS[0] { "HLEN" } else { "ZCARD" };
            assert_eq!(lab.raw(&[command, other]), redis::Value::Int(1), "{ttl}");
        }
    }
}

/// A key that must not live for ever is removed again.
#[test]
fn without_the_right_to_set_a_ttl_nothing_is_left() {
    let mut lab = Lab::new();
    lab.checked = false;
    for stored_before in [false, true] {
        if stored_before {
            store(&mut lab, 2, "web-8");
        }
        lab.raw(&["ACL", "SETUSER", "default", "-pexpire"]);
        let refused = try_store(&mut lab, 1, TTL, "web-7").unwrap_err();
        lab.raw(&["ACL", "SETUSER", "default", "+@all"]);
        assert_eq!(refused, "NOPERM");
        assert_eq!(fields(&mut lab), u64::from(stored_before));
        assert_eq!(read(&mut lab, &[1]), [""]);
    }
}

#[test]
fn a_server_that_takes_no_writes_keeps_what_it_has() {
    for refusal in Refusal::ALL {
        let mut lab = Lab::on(Refusal::server());
        if !refusal.applies(&lab) {
            continue;
        }
        store(&mut lab, 1, "web-7");
        refusal.begin(&mut lab);
        assert_eq!(try_store(&mut lab, 2, TTL, "web-8"), Err(refusal.code()));
        assert_eq!(try_store(&mut lab, 1, 0, ""), Err(refusal.code()));
        assert_eq!(read(&mut lab, &[1, 2]), ["web-7", ""]);
        refusal.end(&mut lab);
        try_store(&mut lab, 1, 0, "").unwrap();
        assert_eq!(lab.server.keys(), [""; 0]);
    }
}

#[test]
fn a_full_server_stores_no_label_and_removes_one() {
    let mut lab = Lab::new();
    store(&mut lab, 1, "web-7");
    lab.raw(&["CONFIG", "SET", "maxmemory", "1"]);
    assert_eq!(try_store(&mut lab, 2, TTL, "web-8"), Err("OOM".to_owned()));
    assert_eq!(read(&mut lab, &[1, 2]), ["web-7", ""]);
    try_store(&mut lab, 1, 0, "").unwrap();
    assert_eq!(lab.server.keys(), [""; 0]);
}
