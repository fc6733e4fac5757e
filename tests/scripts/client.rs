//! `client_listeners`, `client_rights` and `client_types`.

use bowline::Script;

use bowline::wire::{PREFIX, Resource};

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

fn try_rights(lab: &mut Lab, resource: &Resource) -> Result<(), String> {
    let request = resource.rights("channel");
    let keys: Vec<String> = request.keys().into_iter().map(str::to_owned).collect();
    lab.run(request.script.name(), &keys, &request.words(), false, |_| ())
}

#[test]
fn rights_are_tried_and_nothing_is_left() {
    let mut lab = Lab::new();
    // The lab asks as the user whose rights are taken away.
    lab.checked = false;
    let resources = [
        lock("check"),
        Resource::semaphore(PREFIX, "check", 3).unwrap(),
        Resource::read_write(PREFIX, "check").unwrap(),
        Resource::latch(PREFIX, "check").unwrap(),
    ];
    for resource in &resources {
        try_rights(&mut lab, resource).unwrap();
        assert_eq!(lab.server.keys(), [""; 0]);
        // Whichever command is refused: what others have written is gone.
        let script = resource.rights("channel").script;
        for command in script.commands() {
            lab.raw(&["ACL", "SETUSER", "default", &format!("-{command}")]);
            let tried = try_rights(&mut lab, resource);
            lab.raw(&["ACL", "SETUSER", "default", "+@all"]);
            let is_used = tried.is_err();
            assert!(
                is_used || ["LPUSH", "LREM", "LINDEX", "LLEN", "RPUSH", "GET", "STRLEN", "SET"].contains(&command),
                "{command}"
            );
            assert!(is_used || resource.keys().len() == 3, "only a latch has no queue and no counter: {command}");
            assert_eq!(lab.server.keys(), [""; 0], "{command}");
        }
        lab.raw(&["CONFIG", "SET", "maxmemory", "1"]);
        assert_eq!(try_rights(&mut lab, resource).unwrap_err(), "OOM");
        lab.raw(&["CONFIG", "SET", "maxmemory", "0"]);
        assert_eq!(lab.server.keys(), [""; 0]);
    }
}

/// The second call of a client that connects: it finds out about `EVALSHA`, which the first one does not need.
#[test]
fn with_an_empty_channel_only_the_call_is_tried() {
    let mut lab = Lab::new();
    lab.checked = false;
    let call = |lab: &mut Lab| {
        let request = lock("check").rights("");
        let keys: Vec<String> = request.keys().into_iter().map(str::to_owned).collect();
        lab.run(request.script.name(), &keys, &request.words(), false, |_| ())
    };
    lab.raw(&["ACL", "SETUSER", "default", "-unlink", "-get", "-hset", "-publish"]);
    assert_eq!(call(&mut lab), Ok(()));
    lab.raw(&["ACL", "SETUSER", "default", "-evalsha"]);
    assert_eq!(call(&mut lab).unwrap_err(), "NOPERM");
    lab.raw(&["ACL", "SETUSER", "default", "+@all"]);
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
