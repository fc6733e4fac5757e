use super::named::MAX_NAME;
use super::*;

fn listed(keys: &Keys) -> Vec<&str> {
    keys.all().collect()
}

#[test]
fn spelling() {
    let keys = Keys::new("bowline", Kind::Lock, "orders:42").unwrap();
    assert_eq!(
        listed(&keys),
        [
            "bowline:lock:{orders:42}",
            "bowline:lock:{orders:42}:queue",
            "bowline:lock:{orders:42}:tickets",
            "bowline:lock:{orders:42}:fence",
        ]
    );
    let keys = Keys::new("bowline", Kind::ReadWrite, "a}b").unwrap();
    assert_eq!(listed(&keys)[..2], ["bowline:rw:{a%7Db}", "bowline:rw:{a%7Db}:leases"]);
    let keys = Keys::new("bowline", Kind::Latch, "a").unwrap();
    assert_eq!(listed(&keys), ["bowline:latch:{a}", "bowline:latch:{a}:tickets", "bowline:latch:{a}:calls"]);
    let keys = Keys::new("bowline", Kind::Barrier { parties: 2, keep: 0 }, "a").unwrap();
    assert_eq!(listed(&keys), ["bowline:barrier:{a}", "bowline:barrier:{a}:tickets", "bowline:barrier:{a}:ended"]);
    assert_eq!(inbox_prefix("bowline"), "bowline:inbox:");
    let client = Uuid::from_u128(1);
    let inbox = |slot| super::inbox("p:inbox:", slot, client);
    assert_eq!(inbox(None), "p:inbox:00000000-0000-0000-0000-000000000001");
    // The answer of `CLUSTER KEYSLOT 3`.
    assert_eq!(inbox(Some(1584)), "p:inbox:{3}:00000000-0000-0000-0000-000000000001");
}

#[test]
fn ranks() {
    let rank = |prefix, kind, name| {
        let keys = Keys::new(prefix, kind, name).unwrap();
        let (word, name, before) = keys.rank();
        (word.to_owned(), name.to_owned(), before.to_owned())
    };
    let expected = ("lock", "{a%7Bb}", "x:y:lock:");
    assert_eq!(rank("x:y", Kind::Lock, "a{b"), (expected.0.into(), expected.1.into(), expected.2.into()));
    let ascending = [
        rank("z", Kind::Lock, "a"),
        rank("a", Kind::Lock, "b"),
        rank("b", Kind::Lock, "b"),
        rank("a", Kind::ReadWrite, "a"),
        rank("a", Kind::Semaphore { limit: 3 }, "a"),
    ];
    assert!(ascending.is_sorted(), "{ascending:?}");
}

#[test]
fn scratch_keys_are_of_one_client() {
    let [one, other] = [1, 2].map(|n| Keys::scratch("bowline", Kind::Lock, Uuid::from_u128(n)));
    let named = Keys::new("bowline", Kind::Lock, "bowline-check").unwrap();
    assert_eq!(one.main(), "bowline:lock:{bowline-check}:00000000-0000-0000-0000-000000000001");
    for keys in [&other, &named] {
        assert!(listed(&one).iter().all(|key| !listed(keys).contains(key)));
    }
}

#[test]
fn no_two_names_share_a_key_and_none_breaks_the_hash_tag() {
    let names = ["a", "{a}", "}a", "a}", "a{b", "%7Ba%7D", "a b", "a\n", "a\0", "%", "ü", "日本", "\u{7f}"];
    let mut seen = std::collections::HashSet::new();
    for name in names {
        let keys = Keys::new("p", Kind::Lock, name).unwrap();
        let tag = keys.main().strip_prefix("p:lock:{").unwrap().strip_suffix('}').unwrap();
        assert!(!tag.is_empty() && !tag.contains(['{', '}']), "{name:?} -> {tag:?}");
        assert!(!tag.chars().any(|c| c.is_ascii_control()));
        assert!(seen.insert(keys.main().to_owned()), "{name:?} collides");
    }
}

#[test]
fn names_are_spelled_as_they_always_were() {
    let vectors = [
        ("orders:42", "orders:42"),
        ("a b/c?d=e&f#g", "a b/c?d=e&f#g"),
        ("{user}:7", "%7Buser%7D:7"),
        ("100%", "100%25"),
        ("%7B", "%257B"),
        ("\0\t\n\x1f \x7f", "%00%09%0A%1F %7F"),
        ("\"'`\\<>|^~[]*", "\"'`\\<>|^~[]*"),
        ("für {日本} 🔒", "für %7B日本%7D 🔒"),
        ("日本", "日本"),
        // A control character outside ASCII.
        ("a\u{85}b", "a\u{85}b"),
    ];
    for (name, spelled) in vectors {
        let keys = Keys::new("p", Kind::Lock, name).unwrap();
        assert_eq!(keys.main(), format!("p:lock:{{{spelled}}}"));
        assert_eq!(decode(spelled).as_deref(), Some(name));
    }
    // What another program has written.
    for foreign in ["", "a%7b", "a%", "%FF", "%41", "a{"] {
        assert_eq!(decode(foreign), None, "{foreign:?}");
    }
    for byte in 0..128_u8 {
        let spelled = encode(&char::from(byte).to_string()).unwrap();
        let escaped = byte < 0x20 || matches!(byte, b'{' | b'}' | b'%' | 0x7f);
        let expected = if escaped { format!("%{byte:02X}") } else { char::from(byte).to_string() };
        assert_eq!(spelled, expected);
    }
}

#[test]
fn a_barrier_has_up_to_a_thousand_parties() {
    let barrier = |parties| Keys::new("p", Kind::Barrier { parties, keep: 0 }, "a");
    for parties in [0, MAX_PARTIES + 1] {
        assert_eq!(barrier(parties).unwrap_err().kind(), ErrorKind::InvalidInput, "{parties}");
    }
    assert!(barrier(1).is_ok() && barrier(MAX_PARTIES).is_ok());
}

#[test]
fn bad_names_and_prefixes() {
    for name in ["", &"x".repeat(MAX_NAME + 1)] {
        assert_eq!(Keys::new("p", Kind::Lock, name).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    assert!(Keys::new("p", Kind::Lock, &"x".repeat(MAX_NAME)).is_ok());
    for prefix in ["", "a{b", "a}", "a b", "a*", "a\n", &"x".repeat(65)] {
        assert_eq!(check_prefix(prefix).unwrap_err().kind(), ErrorKind::InvalidInput, "{prefix:?}");
    }
    assert!(check_prefix("my-app:locks").is_ok());
}

#[test]
fn a_name_of_redisson_is_the_key() {
    let plain = Keys::redisson("p", "a", "mapped:{a}:queue", Kind::Redisson { fenced: false }).unwrap();
    assert_eq!((&*plain.name, listed(&plain)), ("a", vec!["mapped:{a}:queue"]));
    assert_eq!(plain.channel(), "redisson_lock__channel:mapped:{a}:queue");
    let fenced = Keys::new("p", Kind::Redisson { fenced: true }, "a b").unwrap();
    assert_eq!(fenced.beside(), Some("redisson_lock_token:{a b}"));
    assert_eq!(fenced.renewed(Form::InFull).collect::<Vec<_>>(), ["a b"]);
    assert_eq!(
        Keys::redisson("p", "a", "", Kind::Redisson { fenced: false }).unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
    assert_eq!(
        Keys::redisson("p", "a", &"x".repeat(MAX_NAME + 1), Kind::Redisson { fenced: false }).unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
}

/// Redisson's own scripts fail with `CROSSSLOT` there.
#[test]
fn a_name_whose_channel_is_in_another_slot_does_not_work_in_a_cluster() {
    for (name, fits) in [("a", true), ("a{b}c", true), ("a}b", false), ("a{b", false), ("{}a", false)] {
        let keys = Keys::redisson("p", name, name, Kind::Redisson { fenced: false }).unwrap();
        assert!(keys.check_slots(Topology::single_server()).is_ok());
        let checked = keys.check_slots(Topology::cluster());
        assert_eq!(checked, if fits { Ok(()) } else { Err(Failure::OtherSlots(name.into())) }, "{name}");
    }
    let other = Keys::new("p", Kind::Lock, "a}b").unwrap();
    assert!(other.check_slots(Topology::cluster()).is_ok());
}

/// Each format would take the other one's keys for its own.
#[test]
fn keys_of_bowline_are_no_names_of_java() {
    let redisson = |name: &str| {
        Keys::redisson("p", name, name, Kind::Redisson { fenced: false }).map_err(|error| error.kind()).map(drop)
    };
    for own in ["p:lock:{a}", "p:rw:{a}:leases", "p:sem:{}", "redisson_lock_token:{a}"] {
        assert_eq!(redisson(own), Err(ErrorKind::InvalidInput), "{own}");
    }
    // What Java programs may call their locks, also with the prefix in front.
    for other in ["p", "p:orders", "p:a:b:{c}", "pp:lock:{a}", "lock:{a}", "redisson_lock_tokens"] {
        assert_eq!(redisson(other), Ok(()), "{other}");
    }
}
