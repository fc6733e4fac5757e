//! `ping` and `doctor`.

use bowline_testkit::cluster::Cluster;
use bowline_testkit::sentinels::Sentinels;
use bowline_testkit::server::Server;
use serde_json::Value;

use crate::look::is_documented;
use crate::program::{code, output};

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
