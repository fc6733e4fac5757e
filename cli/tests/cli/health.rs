//! `ping` and `doctor`.

use std::process::Child;
use std::time::Duration;

use bowline_testkit::cluster::Cluster;
use bowline_testkit::proxy::Proxy;
use bowline_testkit::sentinels::Sentinels;
use bowline_testkit::server::Server;
use serde_json::Value;

use crate::look::is_documented;
use crate::program::{Traces, bowline, code, output, until};

fn verdict<'a>(findings: &'a Value, check: &str) -> &'a str {
    let found = findings.as_array().unwrap().iter().find(|finding| finding["check"] == check);
    found.unwrap_or_else(|| panic!("{check}: {findings}"))["verdict"].as_str().unwrap()
}

fn doctor(url: &str, options: &[&str]) -> (i32, Value) {
    let (found, out, err) = code(&output("", &[&["doctor", url, "--json", "--watch", "10ms"], options].concat()));
    assert_eq!(err, "");
    (found, is_documented("doctor", &out))
}

#[test]
fn ping_tells_who_answers_and_what_is_wrong() {
    let server = Server::start_with(&["--maxmemory-policy", "allkeys-lru"]);
    let (found, out, err) = code(&output(&server.url(), &["ping", "--json"]));
    assert_eq!((found, err.as_str()), (0, ""));
    let shown = is_documented("ping", &out);
    assert_eq!(shown["servers"][0]["eviction"], "allkeys-lru");
    assert_eq!(shown["servers"][0]["role"], "master");
    assert!(shown["servers"][0]["latency_us"].as_u64().is_some());
    assert!(shown["warnings"][0].as_str().unwrap().contains("noeviction"));
    let text = code(&output(&server.url(), &["ping"])).1;
    assert!(text.contains("allkeys-lru") && text.contains("warning"), "{text}");
    // The user of docs/acl.md may not ask for all of it.
    let (found, out, _) = code(&output(&server.user_url(), &["ping", "--json"]));
    assert_eq!(found, 0);
    assert_eq!(is_documented("ping", &out)["servers"][0]["user"], Value::Null);
}

#[test]
fn the_latency_is_that_of_a_round_trip() {
    let server = Server::start();
    let proxy = Proxy::start(server.port());
    let delay = Duration::from_millis(100);
    proxy.delay(delay);
    let (found, out, err) = code(&output(&proxy.url(), &["ping", "--json"]));
    assert_eq!(found, 0, "{err}");
    let shown: Value = serde_json::from_str(&out).unwrap();
    let latency = Duration::from_micros(shown["servers"][0]["latency_us"].as_u64().unwrap());
    assert!(latency >= delay, "{shown}");
    // The clock is that of this machine, read to the precision of half a round trip.
    let difference = shown["servers"][0]["clock_difference_ms"].as_i64().unwrap();
    assert!(u128::from(difference.unsigned_abs()) <= latency.as_millis() / 2 + 1, "{shown}");
}

#[test]
fn ping_asks_every_master() {
    let nodes = Cluster::start(3, 0);
    let (found, out, err) = code(&output(&nodes.url(), &["ping", "--json"]));
    assert_eq!(found, 0, "{err}");
    let shown: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(shown["servers"].as_array().unwrap().len(), 3);
    let sentinels = Sentinels::start();
    let (found, out, err) = code(&output(&sentinels.url(), &["ping", "--json"]));
    assert_eq!(found, 0, "{err}");
    let shown: Value = serde_json::from_str(&out).unwrap();
    let port = sentinels.server(sentinels.master()).port();
    assert!(shown["servers"][0]["address"].as_str().unwrap().contains(&port.to_string()), "{shown}");
}

#[test]
fn a_server_that_does_not_answer_is_told_from_missing_rights() {
    let traces = Traces::new();
    let (mut nodes, frozen, file) = masters(&traces);
    nodes.freeze(1);
    let run = |arguments: &[&str]| {
        let mut ran = with_file(&file, arguments);
        // The frozen one is asked once and not for everything: that would take longer than this waits.
        until("the program ends", || ran.try_wait().unwrap().is_some());
        code(&ran.wait_with_output().unwrap())
    };
    let (found, out, err) = run(&["ping", "--json"]);
    assert_eq!(found, 1, "{err}");
    let shown = is_documented("ping", &out);
    let servers = shown["servers"].as_array().unwrap();
    assert_eq!(servers.len(), 3, "{shown}");
    for server in servers {
        let is_frozen = is_of(server["address"].as_str(), &frozen);
        assert_eq!((server["error"].is_string(), server["role"].is_string()), (is_frozen, !is_frozen), "{shown}");
    }
    let text = run(&["ping"]).1;
    assert!(text.lines().any(|line| line.starts_with("  error      ")), "{text}");
    let (found, out, err) = run(&["doctor", "--json", "--watch", "10ms"]);
    assert_eq!(found, 2, "{err}");
    let findings = is_documented("doctor", &out);
    let of_frozen: Vec<&Value> =
        findings.as_array().unwrap().iter().filter(|finding| is_of(finding["server"].as_str(), &frozen)).collect();
    assert_eq!(of_frozen.len(), 1, "nothing else is known: {findings}");
    assert_eq!((&of_frozen[0]["check"], &of_frozen[0]["verdict"]), (&"reachable".into(), &"bad".into()));
    assert_eq!(verdict(&findings, "rights"), "unknown");
    nodes.thaw(1);
    // And none at all.
    let (found, out, err) = code(&output("redis://127.0.0.1:1/", &["ping"]));
    assert_eq!((found, out.as_str()), (1, ""));
    assert!(err.contains("unavailable"), "{err}");
}

#[test]
fn a_master_that_dies_while_doctor_watches_is_bad() {
    let traces = Traces::new();
    let (mut nodes, frozen, file) = masters(&traces);
    let asked = || nodes.nodes().iter().map(|node| calls(node, "time")).collect::<Vec<_>>();
    let before = asked();
    let ran = with_file(&file, &["doctor", "--json", "--watch", "5s"]);
    // The last of what it asks each of them before it watches.
    until("all have answered", || asked().iter().zip(&before).all(|(now, before)| *now >= before + 5));
    nodes.freeze(1);
    let (found, out, err) = code(&ran.wait_with_output().unwrap());
    nodes.thaw(1);
    assert_eq!(found, 2, "{err}");
    let findings = is_documented("doctor", &out);
    let verdicts: Vec<(&Value, &Value)> = findings
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| is_of(finding["server"].as_str(), &frozen))
        .map(|finding| (&finding["check"], &finding["verdict"]))
        .filter(|(check, _)| *check == "reachable" || *check == "clock")
        .collect();
    assert_eq!(verdicts, [(&"reachable".into(), &"ok".into()), (&"reachable".into(), &"bad".into())], "{findings}");
}

/// Three masters, the address of the second one, which a test freezes, and a file of settings for programs that use
/// them.
fn masters(traces: &Traces) -> (Cluster, String, String) {
    // Long enough for the nodes to stay masters in the eyes of each other.
    let nodes = Cluster::start_with(3, 0, &["--cluster-node-timeout", "60000"]);
    let file = traces.word("bowline.toml");
    // The first one is asked where the others are.
    let url = format!("redis-cluster://127.0.0.1:{}", nodes.node(0).port());
    std::fs::write(&file, format!("url = '{url}'\ncommand_timeout = '2s'\n")).unwrap();
    let second = format!("127.0.0.1:{}", nodes.node(1).port());
    (nodes, second, file)
}

/// A program whose settings are those of the file.
fn with_file(file: &str, arguments: &[&str]) -> Child {
    bowline("", &[&["--config", file], arguments].concat()).env_remove("BOWLINE_URL").spawn().unwrap()
}

/// How often the server has run a command, also in scripts.
fn calls(server: &Server, command: &str) -> u64 {
    let stats: String = redis::cmd("INFO").arg("commandstats").query(&mut server.client()).unwrap();
    let start = format!("cmdstat_{command}:calls=");
    let calls = stats.lines().find_map(|line| line.strip_prefix(&start)?.split(',').next()?.parse().ok());
    calls.unwrap_or(0)
}

/// Whether the address is that of the server, with or without a database.
fn is_of(address: Option<&str>, server: &str) -> bool {
    address.is_some_and(|address| address.split('/').next() == Some(server))
}

#[test]
fn doctor_that_is_called_in_a_wrong_way_knows_nothing() {
    for (url, arguments) in [
        ("redis://127.0.0.1:1/", &["doctor", "--nonsense"][..]),
        ("redis://127.0.0.1:1/", &["doctor", "--lease", "soon"]),
        ("redis://127.0.0.1:1/", &["doctor", "redis://127.0.0.1:1/", "another"]),
        ("http://127.0.0.1/", &["doctor"]),
        ("redis://127.0.0.1:1/", &["--config", "/nonexistent", "doctor"]),
    ] {
        assert_eq!(code(&output(url, arguments)).0, 3, "{arguments:?}");
    }
    // A name that looks like the verb.
    assert_eq!(code(&output("redis://127.0.0.1:1/", &["run", "doctor"])).0, 125);
    assert_eq!(code(&output("redis://127.0.0.1:1/", &["inspect", "doctor", "--nonsense"])).0, 125);
}

#[test]
fn doctor_exits_as_monitors_expect() {
    let server = Server::start_with(&["--appendonly", "yes"]);
    let user = format!("redis://operator:secret@127.0.0.1:{}/", server.port());
    let rights = ["ACL", "SETUSER", "operator", "on", ">secret", "~*", "&*", "+@all"];
    let _: () = redis::cmd(rights[0]).arg(&rights[1..]).query(&mut server.client()).unwrap();
    // One server, and nothing to fail over to.
    let (found, findings) = doctor(&user, &[]);
    assert_eq!((found, verdict(&findings, "replicas"), verdict(&findings, "persistence")), (1, "warning", "ok"));
    assert_eq!(doctor(&user, &["--accept", "replicas"]).0, 0);
    let set = |name: &str, value: &str| {
        let _: () = redis::cmd("CONFIG").arg(&["SET", name, value]).query(&mut server.client()).unwrap();
    };
    set("maxmemory-policy", "volatile-ttl");
    let (found, findings) = doctor(&user, &["--accept", "replicas"]);
    assert_eq!((found, verdict(&findings, "eviction")), (2, "bad"));
    set("maxmemory-policy", "noeviction");
    // The user of docs/acl.md may not read settings.
    let (found, findings) = doctor(&server.user_url(), &["--accept", "replicas"]);
    assert_eq!((found, verdict(&findings, "read-only"), verdict(&findings, "user")), (3, "unknown", "ok"));
    let (found, findings) = doctor("redis://127.0.0.1:1/", &[]);
    assert_eq!((found, verdict(&findings, "connect")), (2, "bad"));
    // Any finding may be accepted, also one after which nothing else is asked.
    let (found, findings) = doctor("redis://127.0.0.1:1/", &["--accept", "connect"]);
    assert_eq!((found, verdict(&findings, "connect")), (0, "ok"));
    // Wrong settings find nothing out.
    let (found, findings) = doctor(&format!("{}99", server.url()), &["--accept", "connect"]);
    assert_eq!((found, verdict(&findings, "connect")), (3, "unknown"), "{findings}");
}

#[test]
fn a_check_that_is_accepted_must_exist_and_a_lease_must_be_one() {
    let server = Server::start();
    for (arguments, told) in [
        (&["doctor", "--accept", "replica"][..], "possible values: connect, rights, reachable, "),
        (&["doctor", &server.url(), "--accept", "replica"], "possible values: connect, rights, reachable, "),
        (&["doctor", "--lease", "99ms"], "a lease is 100ms to 24h"),
        (&["doctor", "--lease", "25h"], "a lease is 100ms to 24h"),
    ] {
        let (found, out, err) = code(&output(&server.url(), arguments));
        assert_eq!((found, out.as_str()), (3, ""), "{err}");
        assert!(err.contains(told), "{err}");
    }
    // All that are found can be accepted.
    let (_, findings) = doctor(&server.url(), &[]);
    let checks: Vec<&str> = findings.as_array().unwrap().iter().map(|it| it["check"].as_str().unwrap()).collect();
    let accepted: Vec<&str> = checks.iter().flat_map(|check| ["--accept", check]).collect();
    let (found, findings) = doctor(&server.url(), &accepted);
    assert_eq!(found, 0, "{findings}");
}

#[test]
fn doctor_compares_a_failover_with_the_lease() {
    let nodes = Cluster::start(1, 0);
    let timeout: Vec<String> =
        redis::cmd("CONFIG").arg(&["GET", "cluster-node-timeout"]).query(&mut nodes.node(0).client()).unwrap();
    let timeout: u64 = timeout[1].parse().unwrap();
    let lease = |millis: u64| doctor(&nodes.url(), &["--lease", &format!("{millis}ms")]).1;
    assert_eq!(verdict(&lease((timeout + 2000) * 3 / 2 + 10), "failover"), "ok");
    assert_eq!(verdict(&lease(timeout + 2000), "failover"), "warning");
}
