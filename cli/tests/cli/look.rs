//! What operators see: text, JSON as README.md documents it, and exit codes.

use std::collections::BTreeSet;

use bowline_testkit::server::Server;
use serde_json::Value;

use crate::program::{Running, Traces, bowline, code, output, until, waiters};

const README: &str = include_str!("../../README.md");

/// The paths of all fields, such as `[].holds[].token`.
fn paths(value: &Value, at: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| paths(item, &format!("{at}[]"), found)),
        Value::Object(fields) => {
            for (name, value) in fields {
                found.insert(format!("{at}.{name}"));
                paths(value, &format!("{at}.{name}"), found);
            }
        }
        _ => {}
    }
}

/// Checks a document against the example of that name.
pub(crate) fn is_documented(example: &str, document: &str) -> Value {
    let start = format!("```json {example}\n");
    let text = README.split_once(&start).unwrap_or_else(|| panic!("no example {example}")).1;
    let documented: Value = serde_json::from_str(text.split("```").next().unwrap()).unwrap();
    let shown: Value = serde_json::from_str(document).unwrap();
    let (mut wanted, mut found) = (BTreeSet::new(), BTreeSet::new());
    paths(&documented, "", &mut wanted);
    paths(&shown, "", &mut found);
    assert_eq!(found, wanted, "{example}");
    assert!(!wanted.is_empty());
    shown
}

/// One that holds and one that waits.
fn held(server: &Server, traces: &Traces, name: &str) -> [Running; 2] {
    let script = format!("echo > {}; sleep 100", traces.word(name));
    let holder = Running::start(bowline(&server.url(), &["run", name, "--label", "web-7", "--", "sh", "-c", &script]));
    traces.until(name);
    let waiter = Running::start(bowline(&server.url(), &["run", name, "--label", "web-8", "--", "true"]));
    until("it waits", || waiters(server, name) == 1);
    [holder, waiter]
}

#[test]
fn a_name_is_shown_with_its_holder_and_its_waiters() {
    let (server, traces) = (Server::start(), Traces::new());
    let _both = held(&server, &traces, "backup");
    let (found, out, err) = code(&output(&server.url(), &["inspect", "backup"]));
    assert_eq!((found, err.as_str()), (0, ""));
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[0], "backup  lock, held, 1 waiting");
    assert!(lines[1].starts_with("  held    web-7  lock  for "), "{out}");
    assert_eq!(lines[2], "  1.      web-8  lock");
    let (found, out, _) = code(&output(&server.url(), &["inspect", "backup", "--json"]));
    assert_eq!(found, 0);
    let shown = is_documented("inspect", &out);
    assert_eq!(shown[0]["holds"][0]["label"], "web-7");
    assert_eq!(shown[0]["queue"][0]["label"], "web-8");
    let (found, out, _) = code(&output(&server.url(), &["inspect", "other"]));
    assert_eq!((found, out.as_str()), (1, "other: nobody holds it, and nobody waits for it\n"));
    assert_eq!(code(&output(&server.url(), &["inspect", "backup", "--kind", "rw", "--json"])).1, "[]\n");
}

#[test]
fn a_latch_is_in_use_while_it_is_set() {
    let server = Server::start();
    assert_eq!(code(&output(&server.url(), &["latch", "set", "parts", "2"])).0, 0);
    for kind in [&[][..], &["--kind", "latch"]] {
        let (found, out, err) = code(&output(&server.url(), &[&["inspect", "parts"], kind].concat()));
        assert_eq!((found, out.as_str()), (0, "parts  latch, set, 0 waiting\n"), "{err}");
    }
    assert_eq!(code(&output(&server.url(), &["inspect", "parts", "--kind", "lock"])).0, 1);
    assert_eq!(code(&output(&server.url(), &["latch", "delete", "parts"])).0, 0);
    assert_eq!(code(&output(&server.url(), &["inspect", "parts"])).0, 1);
    let (found, out, err) = code(&output(&server.url(), &["inspect", "parts", "--kind", "rate"]));
    assert_eq!((found, out.as_str()), (125, ""));
    assert!(err.contains("nobody holds a rate limiter"), "{err}");
}

#[test]
fn names_are_listed() {
    let (server, traces) = (Server::start(), Traces::new());
    let _both = held(&server, &traces, "jobs:a");
    assert_eq!(code(&output(&server.url(), &["latch", "set", "jobs:parts", "2"])).0, 0);
    let list = |arguments: &[&str]| code(&output(&server.url(), arguments)).1;
    let all = "lock      jobs:a      held, 1 waiting\nlatch     jobs:parts  set, 0 waiting\n";
    assert_eq!(list(&["ls"]), all);
    assert_eq!(list(&["ls", "jobs:"]), all);
    assert_eq!(list(&["ls", "other"]), "");
    assert_eq!(list(&["ls", "--kind", "lock"]).lines().count(), 1);
    is_documented("inspect", &list(&["ls", "--json"]));
}

#[test]
fn a_lock_is_taken_from_its_holder_only_with_force() {
    let (server, traces) = (Server::start(), Traces::new());
    let [mut holder, mut waiter] = held(&server, &traces, "a");
    assert_eq!(code(&output(&server.url(), &["release", "a"])).0, 125);
    let (found, out, _) = code(&output(&server.url(), &["release", "--force", "a", "--json"]));
    assert_eq!(found, 0);
    assert_eq!(is_documented("release", &out)["holds"], 1);
    assert_eq!(holder.ended().code(), Some(123));
    assert!(waiter.ended().success());
    let (found, out, _) = code(&output(&server.url(), &["release", "--force", "a"]));
    assert_eq!((found, out.as_str()), (1, "lock a: nothing was held\n"));
    // Permits and readers, without being told the kind.
    for mode in [&["--permits", "1/3"][..], &["--shared"]] {
        let script = format!("echo > {}; sleep 100", traces.word(mode[0]));
        let arguments = [&["run", "b"], mode, &["--", "sh", "-c", &script]].concat();
        let mut holder = Running::start(bowline(&server.url(), &arguments));
        traces.until(mode[0]);
        assert_eq!(code(&output(&server.url(), &["release", "--force", "b"])).0, 0, "{mode:?}");
        assert_eq!(holder.ended().code(), Some(123), "{mode:?}");
    }
}

#[test]
fn programs_that_wait_for_each_other_are_found() {
    let server = Server::start();
    let (found, out, _) = code(&output(&server.url(), &["deadlocks"]));
    assert_eq!((found, out.as_str()), (0, "no deadlock\n"));
    with_a_deadlock(&server, "alice", "bob", || {
        let (found, out, err) = code(&output(&server.url(), &["deadlocks", "--json"]));
        assert_eq!(found, 1, "{err}");
        assert_eq!(is_documented("deadlocks", &out)[0]["waits"].as_array().unwrap().len(), 2);
        let (found, out, _) = code(&output(&server.url(), &["deadlocks"]));
        assert_eq!(found, 1);
        assert!(out.contains("a way out: bowline release --force --kind lock bob\n"), "{out}");
    });
}

#[test]
fn the_way_out_of_a_deadlock_is_a_command_for_a_shell() {
    let (server, traces) = (Server::start(), Traces::new());
    // What a shell would run, if it were not quoted.
    let name = format!("it's $(touch {}) \"b\" *", traces.word("ran"));
    with_a_deadlock(&server, "alice", &name, || {
        let out = code(&output(&server.url(), &["deadlocks"])).1;
        let way_out = out.lines().find_map(|line| line.trim().strip_prefix("a way out: ")).unwrap();
        let mut shell = std::process::Command::new("sh");
        let shell = crate::program::clean(&mut shell).env("BOWLINE_URL", server.url());
        let script = format!("bowline() {{ {} \"$@\"; }}\n{way_out}", crate::program::BOWLINE);
        let (found, out, err) = code(&shell.args(["-c", &script]).output().unwrap());
        assert_eq!(found, 0, "{way_out}: {err}");
        assert!(out.starts_with(&format!("lock {name}: taken: 1; ")), "{way_out}: {out}");
        assert!(!traces.path("ran").exists());
    });
    // Where this call has found it.
    let file = traces.word("it's.toml");
    std::fs::write(&file, format!("url = '{}'\n", server.url())).unwrap();
    with_a_deadlock(&server, "alice", "bob", || {
        let ran = bowline("", &["--config", &file, "deadlocks"]).env_remove("BOWLINE_URL").output().unwrap();
        let out = code(&ran).1;
        let way_out = out.lines().find_map(|line| line.trim().strip_prefix("a way out: ")).unwrap();
        let mut shell = std::process::Command::new("sh");
        let script = format!("bowline() {{ {} \"$@\"; }}\n{way_out}", crate::program::BOWLINE);
        let ran = crate::program::clean(&mut shell).args(["-c", &script]).output().unwrap();
        assert_eq!(code(&ran).0, 0, "{way_out}: {}", code(&ran).2);
        let out = code(&output("", &["--url", &server.user_url(), "deadlocks"])).1;
        assert!(!out.contains("a way out") || out.contains("with the same --url"), "{out}");
    });
    // A terminal would act on this one.
    with_a_deadlock(&server, "alice", "b\u{1b}[2Jb", || {
        let out = code(&output(&server.url(), &["deadlocks"])).1;
        assert!(out.contains("a way out: take the lock b?[2Jb by force") && !out.contains("bowline release"), "{out}");
    });
}

/// Two clients hold these locks, and each waits for that of the other.
fn with_a_deadlock(server: &Server, first: &str, second: &str, meanwhile: impl FnOnce()) {
    // The client that holds and the one that waits must be the same one, so it is a program of its own.
    let runtime = runtime();
    let (one, two) = runtime.block_on(async {
        let one = bowline::tokio::connect(server.url()).await.unwrap();
        let two = bowline::tokio::connect(server.url()).await.unwrap();
        (one, two)
    });
    let held =
        runtime.block_on(async { (one.lock(first).lock().await.unwrap(), two.lock(second).lock().await.unwrap()) });
    // Keys spell names in their own way.
    let queues = || server.keys().iter().filter(|key| key.ends_with(":queue")).count();
    until("nobody waits", || queues() == 0);
    for (waiting, (client, name)) in [(&one, second), (&two, first)].into_iter().enumerate() {
        let lock = client.lock(name);
        runtime.spawn(async move { lock.lock().await.map(drop) });
        until("it waits", || queues() == waiting + 1);
    }
    meanwhile();
    runtime.block_on(async move {
        drop(held);
        one.close().await;
        two.close().await;
    });
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

#[test]
fn a_leader_is_shown() {
    let (server, traces) = (Server::start(), Traces::new());
    let (found, out, _) = code(&output(&server.url(), &["leader", "e"]));
    assert_eq!((found, out.as_str()), (1, "e: nobody leads\n"));
    let script = format!("echo > {}; sleep 100", traces.word("leads"));
    let arguments = ["run", "e", "--elect", "--label", "web-7", "--", "sh", "-c", &script];
    let _leader = Running::start(bowline(&server.url(), &arguments));
    traces.until("leads");
    let (found, out, _) = code(&output(&server.url(), &["leader", "e", "--json"]));
    assert_eq!(found, 0);
    assert_eq!(is_documented("leader", &out)["label"], "web-7");
    assert!(code(&output(&server.url(), &["leader", "e"])).1.starts_with("web-7  leads for "));
}

#[test]
fn a_latch_is_counted_down() {
    let server = Server::start();
    let latch = |arguments: &[&str]| {
        let (found, out, _) = code(&output(&server.url(), &[&["latch"], arguments].concat()));
        (found, out)
    };
    assert_eq!(latch(&["show", "parts"]).0, 1);
    assert_eq!(latch(&["set", "parts", "2", "--ttl", "10m"]), (0, String::new()));
    assert_eq!(latch(&["set", "parts", "2"]).0, 1, "there is one");
    assert_eq!(latch(&["wait", "parts", "--timeout", "50ms"]).0, 1);
    assert_eq!(latch(&["count-down", "parts"]), (0, "1\n".to_owned()));
    let mut waiter = Running::start(bowline(&server.url(), &["latch", "wait", "parts"]));
    let mut shown = Value::Null;
    until("it waits", || {
        shown = serde_json::from_str(&latch(&["show", "parts", "--json"]).1).unwrap();
        shown["waiters"] == 1
    });
    is_documented("latch", &shown.to_string());
    assert_eq!(latch(&["count-down", "parts"]).0, 0);
    assert!(waiter.ended().success());
    assert_eq!(latch(&["set", "other", "1"]).0, 0);
    assert_eq!(latch(&["delete", "other"]).0, 0);
    assert_eq!(latch(&["delete", "other"]).0, 1);
}

#[test]
fn colours_are_for_terminals() {
    let (server, traces) = (Server::start(), Traces::new());
    let _both = held(&server, &traces, "a");
    let shown = |setting: &str| {
        let mut command = std::process::Command::new("script");
        crate::program::clean(&mut command);
        command.args(["-qec", &format!("{} inspect a", crate::program::BOWLINE), "/dev/null"]);
        command.env("BOWLINE_URL", server.url()).stdin(std::process::Stdio::null());
        String::from_utf8(command.env("NO_COLOR", setting).output().unwrap().stdout).unwrap()
    };
    assert!(shown("").contains("\x1b[1ma\x1b[0m"), "{}", shown(""));
    assert!(!shown("1").contains('\x1b'), "{}", shown("1"));
    assert!(!code(&output(&server.url(), &["inspect", "a"])).1.contains('\x1b'));
}
