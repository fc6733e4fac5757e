use std::collections::HashMap;

use super::*;

fn server(info: &[(&str, &str)], settings: &[(&'static str, &str)]) -> Server {
    let info = info.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let settings: HashMap<_, _> = settings.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    Server { info, settings, ..Server::default() }
}

const LEASE: Duration = Duration::from_secs(30);

/// The verdict of one check.
fn verdict(check: &str, server: &Server, is_cluster: bool) -> Verdict {
    all(server, is_cluster, LEASE).into_iter().find(|(found, ..)| found.name() == check).unwrap().1
}

#[test]
fn each_setting_has_its_verdict() {
    let aof = ("aof_enabled", "1");
    let slaves = ("connected_slaves", "2");
    let online = [slaves, ("slave0", "ip=a,state=online"), ("slave1", "ip=b,state=online")];
    for (check, info, settings, wanted) in [
        ("version", &[("redis_version", "7.0.15")][..], &[][..], Ok),
        ("version", &[("redis_version", "6.2.14")], &[], Warning),
        ("role", &[("role", "master")], &[], Ok),
        ("role", &[("role", "slave")], &[], Bad),
        ("eviction", &[("maxmemory_policy", "noeviction")], &[], Ok),
        ("eviction", &[("maxmemory_policy", "volatile-lru")], &[], Bad),
        ("eviction", &[], &[("maxmemory-policy", "allkeys-lru")], Bad),
        ("memory", &[("used_memory", "5"), ("maxmemory", "0")], &[], Ok),
        ("memory", &[("used_memory", "5"), ("maxmemory", "10")], &[], Ok),
        ("memory", &[("used_memory", "9"), ("maxmemory", "10")], &[], Warning),
        ("persistence", &[aof], &[("appendfsync", "everysec")], Ok),
        ("persistence", &[aof], &[("appendfsync", "no")], Warning),
        ("persistence", &[aof, ("aof_last_write_status", "err")], &[], Bad),
        ("persistence", &[("aof_enabled", "0")], &[("save", "3600 1")], Warning),
        ("persistence", &[("aof_enabled", "0")], &[("save", "")], Warning),
        ("replicas", &[("connected_slaves", "0")], &[], Warning),
        ("replicas", &online, &[], Ok),
        ("replicas", &online[..2], &[], Warning),
        ("min-replicas", &[("connected_slaves", "0")], &[("min-replicas-to-write", "0")], Ok),
        ("min-replicas", &[slaves], &[("min-replicas-to-write", "0")], Warning),
        ("min-replicas", &[slaves], &[("min-replicas-to-write", "1")], Ok),
        ("min-replicas", &[slaves], &[("min-replicas-to-write", "2")], Warning),
        ("min-replicas", &[slaves, ("min_slaves_good_slaves", "2")], &[], Ok),
        ("min-replicas", &[slaves], &[], Warning),
        ("read-only", &[], &[("replica-read-only", "yes")], Ok),
        ("read-only", &[], &[("replica-read-only", "no")], Bad),
        ("messages", &[], &[("client-output-buffer-limit", "normal 0 0 0 pubsub 33554432 8388608 60")], Ok),
        ("messages", &[], &[("client-output-buffer-limit", "normal 0 0 0 pubsub 0 0 0")], Warning),
    ] {
        assert_eq!(verdict(check, &server(info, settings), false), wanted, "{check}: {info:?} {settings:?}");
    }
}

#[test]
fn a_failover_must_not_outlast_the_lease() {
    for (timeout, wanted) in [("15000", Ok), ("17999", Ok), ("18000", Warning), ("60000", Warning)] {
        let server = server(&[], &[("cluster-node-timeout", timeout)]);
        assert_eq!(verdict("failover", &server, true), wanted, "{timeout}");
    }
    assert_eq!(verdict("failover", &server(&[("connected_slaves", "0")], &[]), false), Ok);
    assert_eq!(verdict("failover", &server(&[("connected_slaves", "1")], &[]), false), Unknown);
    assert_eq!(verdict("coverage", &server(&[], &[("cluster-require-full-coverage", "no")]), true), Ok);
    assert_eq!(verdict("coverage", &server(&[], &[("cluster-require-full-coverage", "yes")]), true), Warning);
}

#[test]
fn a_lease_may_be_as_long_as_times_can_be() {
    let server = server(&[], &[("cluster-node-timeout", "15000")]);
    assert_eq!(failover(&server, true, Duration::MAX).0, Ok);
}

#[test]
fn what_a_server_does_not_tell_is_unknown() {
    let silent = server(&[], &[]);
    for (check, verdict, _) in all(&silent, true, LEASE) {
        let wanted = if [Check::Reachable, Check::User].contains(&check) { Ok } else { Unknown };
        assert_eq!(verdict, wanted, "{check:?}");
    }
}

#[test]
fn of_a_server_that_does_not_answer_nothing_else_is_said() {
    let dead = Server { fault: Some("no answer".to_owned()), ..Server::default() };
    assert_eq!(all(&dead, true, LEASE), [(Check::Reachable, Bad, "no answer".to_owned())]);
}

#[test]
fn the_default_user_is_a_warning() {
    let mut found = server(&[], &[]);
    for (user, wanted) in [("default", Warning), ("bowline", Ok)] {
        found.user = Some(user.to_owned());
        assert_eq!(verdict("user", &found, false), wanted);
    }
}
