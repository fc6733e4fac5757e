//! `client_listeners` and `client_types`.

use bowline::Script;

use crate::lab::{Lab, channel, lock};

#[test]
fn the_listeners_of_an_inbox_are_counted_and_nothing_is_changed() {
    let mut lab = Lab::new();
    let count = |lab: &mut Lab, n| {
        let request = lock("scratch").listeners(&channel(n));
        let keys: Vec<String> = request.keys().into_iter().map(str::to_owned).collect();
        lab.run(request.script.name(), &keys, &request.words(), false, |words| words.next()).unwrap()
    };
    assert_eq!(count(&mut lab, 1), 0);
    let _one = lab.listen(1);
    assert_eq!((count(&mut lab, 1), count(&mut lab, 2)), (1, 0));
    let _two = lab.listen(1);
    assert_eq!(count(&mut lab, 1), 2);
    // A pattern subscriber is not a client.
    let _all = lab.listen_by_pattern(2);
    assert_eq!((count(&mut lab, 1), count(&mut lab, 2)), (2, 0));
    lab.assert_free();
}

/// A set needs a right that no script needs, so it is not told from a stream.
#[test]
fn the_type_of_each_key_is_told_and_nothing_is_changed() {
    let mut lab = Lab::new();
    let values: [(&str, &[&str]); 6] = [
        ("string", &["SET", "a", "1"]),
        ("hash", &["HSET", "b", "field", "1"]),
        ("list", &["RPUSH", "c", "1"]),
        ("zset", &["ZADD", "d", "1", "member"]),
        ("other", &["SADD", "e", "1"]),
        ("other", &["XADD", "f", "*", "field", "1"]),
    ];
    for (_, command) in values {
        lab.server.allow_forever(command[1]);
        lab.raw(command);
    }
    let keys = ["a", "b", "c", "d", "e", "f", "g"].map(str::to_owned);
    let script = Script::all().find(|script| script.name() == "client_types").unwrap();
    let call = [&["EVALSHA", script.sha1(), "7"][..], &keys.each_ref().map(String::as_str)].concat();
    let types: Vec<String> = redis::from_redis_value(lab.raw(&call)).unwrap();
    assert_eq!(types, ["string", "hash", "list", "zset", "other", "other", "none"]);
    assert_eq!(lab.server.keys(), keys[..6]);
    for key in &keys {
        lab.raw(&["DEL", key]);
    }
}
