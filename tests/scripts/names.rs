//! `names_page`: which keys are names in use, page by page, beside keys of other programs.

use std::collections::BTreeSet;

use bowline::{PrimitiveKind, wire};

use crate::lab::{Lab, PREFIX};

struct Page {
    run_id: String,
    cursor: String,
    /// With the word of their kind.
    names: Vec<(String, Vec<u8>)>,
}

type What = (Option<PrimitiveKind>, bool);

const ALL: What = (None, false);

fn try_page(lab: &mut Lab, cursor: &str, count: u32, what: What, begins: &str) -> redis::RedisResult<Page> {
    let request = wire::name_page(PREFIX, (cursor, count), what, begins);
    assert_eq!(request.keys().len(), 1);
    let mut command = redis::cmd("EVALSHA");
    command.arg(request.script.sha1()).arg(1).arg(request.keys()).arg(request.words());
    let mut words: Vec<Vec<u8>> = command.query(&mut lab.connection)?;
    let names = words.split_off(2);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    assert_eq!(names.len() % 2, 0);
    let names = names.chunks(2).map(|pair| (text(&pair[0]), pair[1].clone())).collect();
    Ok(Page { run_id: text(&words[0]), cursor: text(&words[1]), names })
}

/// All pages, with how many there were.
fn list(lab: &mut Lab, count: u32, what: What, begins: &str) -> (BTreeSet<(String, Vec<u8>)>, usize) {
    let (mut names, mut cursor, mut pages) = (BTreeSet::new(), "0".to_owned(), 0);
    loop {
        let page = try_page(lab, &cursor, count, what, begins).unwrap();
        names.extend(page.names);
        pages += 1;
        cursor = page.cursor;
        if cursor == "0" {
            return (names, pages);
        }
    }
}

fn shown(lab: &mut Lab, what: What, begins: &str) -> Vec<String> {
    let name = |(word, name): &(String, Vec<u8>)| format!("{word} {}", String::from_utf8_lossy(name));
    list(lab, 10, what, begins).0.iter().map(name).collect()
}

fn put(lab: &mut Lab, keys: &[&str]) {
    for key in keys {
        lab.raw(&["SET", key, "1", "PX", "100000"]);
    }
}

#[test]
fn a_name_is_in_use_while_it_is_held_or_waited_for() {
    let mut lab = Lab::new();
    assert_eq!(shown(&mut lab, ALL, ""), [""; 0]);
    put(&mut lab, &["p:lock:{held}", "p:lock:{both}", "p:lock:{both}:queue", "p:lock:{waited}:queue"]);
    // What is left of names that nobody uses.
    put(&mut lab, &["p:lock:{free}:fence", "p:lock:{odd}:tickets", "p:rw:{free}:fence", "p:sem:{odd}:leases"]);
    assert_eq!(shown(&mut lab, ALL, ""), ["lock both", "lock held", "lock waited"]);
    assert_eq!(shown(&mut lab, (None, true), ""), ["lock both", "lock waited"]);
    put(&mut lab, &["p:rw:{a}", "p:rw:{b}:queue", "p:sem:{a}", "p:sem:{b}:queue", "p:election:{a}:queue"]);
    put(&mut lab, &["p:latch:{a}", "p:latch:{b}:tickets", "p:latch:{c}:calls", "p:once:{a}", "p:once:{b}:fence"]);
    put(&mut lab, &["p:rate:{a}:tat", "p:vote:{a}", "p:turn:{b}", "p:turn:{c}:queue", "p:vote:{d}:fence"]);
    put(&mut lab, &["p:election:{b}", "p:election:{c}:changes"]);
    let of = |lab: &mut Lab, kind| shown(lab, (Some(kind), false), "");
    assert_eq!(of(&mut lab, PrimitiveKind::RwLock), ["rw a", "rw b"]);
    assert_eq!(of(&mut lab, PrimitiveKind::Semaphore), ["sem a", "sem b"]);
    assert_eq!(of(&mut lab, PrimitiveKind::Latch), ["latch a", "latch b"]);
    assert_eq!(of(&mut lab, PrimitiveKind::Once), ["once a", "once b"]);
    assert_eq!(of(&mut lab, PrimitiveKind::Election), ["election a", "election b"]);
    assert_eq!(of(&mut lab, PrimitiveKind::RateLimiter), ["rate a"]);
    assert_eq!(of(&mut lab, PrimitiveKind::RedLock), ["turn b", "turn c", "vote a"]);
    assert_eq!(of(&mut lab, PrimitiveKind::Lock).len(), 3);
    assert_eq!(shown(&mut lab, ALL, "").len(), 17);
    assert_eq!(shown(&mut lab, (None, true), "").len(), 6);
}

#[test]
fn what_other_programs_store_is_no_name() {
    let mut lab = Lab::new();
    put(&mut lab, &["other", "q:lock:{a}", "p:x:lock:{a}", "p:lock:a", "p:lock:{a", "p:lock:{}", "pp:lock:{a}"]);
    put(&mut lab, &["xp:lock:{a}", "p:LOCK:{a}", "p:lock2:{a}", "p:lock:{a}x", "p:lock:{a}b}", "p::{a}", "p:door:{a}"]);
    put(&mut lab, &["p:lock:{bowline-check}:0001", "p:client:{labels}", "p:lock:{a}:queue:queue"]);
    assert_eq!(shown(&mut lab, ALL, ""), [""; 0]);
    // A key that is no text does not spoil the page.
    redis::cmd("SET").arg(b"p:lock:{\xff\xfe}").arg("1").arg("PX").arg(100_000).exec(&mut lab.connection).unwrap();
    put(&mut lab, &["p:lock:{a}"]);
    let (names, _) = list(&mut lab, 10, ALL, "");
    assert_eq!(names.into_iter().map(|(_, name)| name).collect::<Vec<_>>(), [b"a".to_vec(), b"\xff\xfe".to_vec()]);
}

#[test]
fn a_name_begins_as_it_is_asked_for_to_the_letter() {
    let mut lab = Lab::new();
    put(&mut lab, &["p:lock:{orders/1}", "p:lock:{orders/2}", "p:lock:{order}", "p:lock:{a*b}", "p:lock:{aab}"]);
    put(&mut lab, &["p:lock:{[a]}", "p:lock:{%7Ba%7D}", "p:lock:{ü}", "p:lock:{.}"]);
    for (begins, expected) in [
        ("orders/", &["lock orders/1", "lock orders/2"][..]),
        ("orders/1", &["lock orders/1"]),
        ("orders/12", &[]),
        ("a*", &["lock a*b"]),
        ("[a]", &["lock [a]"]),
        ("%7B", &["lock %7Ba%7D"]),
        ("ü", &["lock ü"]),
        (".", &["lock ."]),
    ] {
        assert_eq!(shown(&mut lab, ALL, begins), expected, "{begins}");
    }
}

#[test]
fn many_names_are_read_in_pages() {
    let mut lab = Lab::new();
    let keys: Vec<String> = (0..3000).map(|n| format!("p:lock:{{{n}}}")).collect();
    let mut pipeline = redis::pipe();
    for key in &keys {
        pipeline.cmd("SET").arg(key).arg(1).arg("PX").arg(100_000).ignore();
    }
    pipeline.exec(&mut lab.connection).unwrap();
    let (names, pages) = list(&mut lab, 100, ALL, "");
    assert_eq!(names.len(), 3000);
    assert!((10..=40).contains(&pages), "{pages}");
    // The server looks at that many keys, whether or not they are names.
    let (names, pages) = list(&mut lab, 100, ALL, "17");
    assert_eq!(names.len(), 111);
    assert!((10..=40).contains(&pages), "{pages}");
}

#[test]
fn a_page_says_which_server_has_answered_and_is_no_write() {
    let mut lab = Lab::new();
    let run_id = |lab: &mut Lab| try_page(lab, "0", 10, ALL, "").unwrap().run_id;
    let first = run_id(&mut lab);
    assert_eq!((run_id(&mut lab), first.len()), (first.clone(), 40));
    assert_eq!(lab.server.keys(), [""; 0]);
    lab.server.kill();
    lab.server.restart();
    lab.reconnect();
    assert_ne!(run_id(&mut lab), first);
    let error = try_page(&mut lab, "x", 10, ALL, "").err().unwrap();
    assert!(error.to_string().contains("cursor"), "{error}");
}
