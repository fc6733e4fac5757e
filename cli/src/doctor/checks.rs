//! The checks of one server, by what it says about itself.

use std::time::Duration;

use super::Verdict::{self, Bad, Ok, Unknown, Warning};
use crate::args::health::Check;
use crate::servers::Server;
use crate::show::time;

/// A check, its verdict, and what was found.
type Checked = (Check, Verdict, String);

pub(super) fn all(server: &Server, is_cluster: bool, lease: Duration) -> Vec<Checked> {
    if let Some(fault) = &server.fault {
        // Nothing else is known of it.
        return vec![(Check::Reachable, Bad, fault.clone())];
    }
    let mut all = vec![
        (Check::Reachable, (Ok, "answers".to_owned())),
        (Check::Version, version(server)),
        (Check::Role, role(server)),
        (Check::Eviction, eviction(server)),
        (Check::Memory, memory(server)),
        (Check::Persistence, persistence(server)),
        (Check::Replicas, replicas(server)),
        (Check::MinReplicas, min_replicas(server)),
        (Check::ReadOnly, read_only(server)),
        (Check::Messages, messages(server)),
        (Check::User, user(server)),
        (Check::Failover, failover(server, is_cluster, lease)),
    ];
    if is_cluster {
        all.push((Check::Coverage, coverage(server)));
    }
    all.into_iter().map(|(check, (verdict, found))| (check, verdict, found)).collect()
}

type Found = (Verdict, String);

fn unknown(why: &str) -> Found {
    (Unknown, why.to_owned())
}

fn version(server: &Server) -> Found {
    let Some(version) = server.version() else { return unknown("needs +info") };
    let major = server.info("redis_version").and_then(|version| version.split('.').next()?.parse::<u32>().ok());
    match major {
        Some(..7) => (Warning, format!("{version} does not apply min-replicas-to-write to scripts: use 7.0 or newer")),
        _ => (Ok, version),
    }
}

fn role(server: &Server) -> Found {
    match server.info("role") {
        Some("master") => (Ok, "a primary".to_owned()),
        Some(other) => (Bad, format!("a {other}, which must not grant locks")),
        None => unknown("needs +info"),
    }
}

fn eviction(server: &Server) -> Found {
    match server.eviction() {
        Some("noeviction") => (Ok, "maxmemory-policy is noeviction".to_owned()),
        Some(policy) => (Bad, format!("maxmemory-policy is {policy}, so a full server may drop locks: set noeviction")),
        None => unknown("needs +info"),
    }
}

fn memory(server: &Server) -> Found {
    let (used, most) = (server.number("used_memory"), server.number("maxmemory"));
    match (used, most) {
        (Some(_), Some(0)) => (Ok, "no limit".to_owned()),
        (Some(used), Some(most)) => {
            let percent = used.saturating_mul(100) / most.max(1);
            let found = format!("{percent} % of maxmemory is used");
            if percent >= 90 { (Warning, format!("{found}: a full server refuses acquisitions")) } else { (Ok, found) }
        }
        _ => unknown("needs +info"),
    }
}

fn persistence(server: &Server) -> Found {
    let is_failing = server.info("aof_last_write_status").is_some_and(|status| status != "ok");
    match (server.info("aof_enabled"), server.setting("appendfsync"), server.setting("save")) {
        (Some("1"), ..) if is_failing => (Bad, "the append-only file could not be written".to_owned()),
        (Some("1"), Some("no"), _) => (Warning, "appendfsync is no: a crash may lose many seconds of holds".to_owned()),
        (Some("1"), Some(fsync), _) => (Ok, format!("append-only file, appendfsync {fsync}")),
        (Some("1"), None, _) => (Ok, "append-only file; appendfsync needs +config|get".to_owned()),
        (Some(_), _, Some(save)) if !save.is_empty() => {
            (Warning, "only snapshots: a restart loses the holds since the last one; set appendonly yes".to_owned())
        }
        (Some(_), _, Some(_)) => (Warning, "none: a restart frees all names; set appendonly yes".to_owned()),
        (Some(_), _, None) => (Warning, "no append-only file: a restart frees names; set appendonly yes".to_owned()),
        _ => unknown("needs +info"),
    }
}

fn replicas(server: &Server) -> Found {
    match server.number("connected_slaves") {
        Some(0) => (Warning, "none: without this server, no lock is granted".to_owned()),
        Some(replicas) => {
            let online = (0..replicas).filter_map(|n| server.info(&format!("slave{n}")));
            let online = online.filter(|replica| replica.contains("state=online")).count();
            let found = format!("{online} of {replicas} online");
            if u64::try_from(online) == Result::Ok(replicas) { (Ok, found) } else { (Warning, found) }
        }
        None => unknown("needs +info"),
    }
}

fn min_replicas(server: &Server) -> Found {
    let Some(replicas) = server.number("connected_slaves") else { return unknown("needs +info") };
    // INFO tells it only if it is set.
    let by_info = server.info("min_slaves_good_slaves").map(|_| None);
    let least = server.setting("min-replicas-to-write").and_then(|least| least.parse::<u64>().ok());
    match (least.map(Some).or(by_info), replicas) {
        (Some(Some(0)) | None, 0) => (Ok, "there are no replicas to wait for".to_owned()),
        (Some(Some(0)), _) | (None, 1..) => {
            (Warning, "min-replicas-to-write is 0: a master that is cut off goes on granting; set 1".to_owned())
        }
        (Some(Some(least)), replicas) if least >= replicas => {
            let found =
                format!("min-replicas-to-write is {least} of {replicas}: one replica that is down stops all grants");
            (Warning, found)
        }
        (Some(Some(least)), _) => {
            let lag = server.setting("min-replicas-max-lag").unwrap_or("?");
            (Ok, format!("min-replicas-to-write {least}, min-replicas-max-lag {lag} s"))
        }
        (Some(None), _) => (Ok, "min-replicas-to-write is set".to_owned()),
    }
}

fn read_only(server: &Server) -> Found {
    match server.setting("replica-read-only") {
        Some("no") => (Bad, "replica-read-only is no: a replica that takes writes grants locks".to_owned()),
        Some(_) => (Ok, "replica-read-only is yes".to_owned()),
        None => unknown("needs +config|get"),
    }
}

fn messages(server: &Server) -> Found {
    let Some(limits) = server.setting("client-output-buffer-limit") else { return unknown("needs +config|get") };
    let hard = limits.split(' ').skip_while(|word| *word != "pubsub").nth(1);
    match hard {
        Some("0") => {
            (Warning, "pubsub has no output limit: a client that does not read may fill the memory".to_owned())
        }
        Some(_) => (Ok, "pubsub has an output limit".to_owned()),
        None => unknown("client-output-buffer-limit does not name pubsub"),
    }
}

fn user(server: &Server) -> Found {
    match server.user.as_deref() {
        Some("default") => (Warning, "the default user may do anything: make one by docs/acl.md".to_owned()),
        Some(user) => (Ok, format!("user {user}")),
        // Who may not even ask has few rights.
        None => (Ok, "a user with few rights".to_owned()),
    }
}

/// A failover takes about the time after which a node counts as failed, and a second or two.
fn failover(server: &Server, is_cluster: bool, lease: Duration) -> Found {
    const ELECTION: Duration = Duration::from_secs(2);
    if !is_cluster {
        return match server.number("connected_slaves") {
            Some(0) => (Ok, "there is nothing to fail over to".to_owned()),
            _ => {
                unknown("the primary does not know its sentinels: see that down-after-milliseconds is below the lease")
            }
        };
    }
    let timeout = server.setting("cluster-node-timeout").and_then(|timeout| timeout.parse().ok());
    let Some(timeout) = timeout.map(Duration::from_millis) else { return unknown("needs +config|get") };
    let found = format!("a failover takes about {}, the lease is {}", time(timeout + ELECTION), time(lease));
    // A renewal follows every third of a lease. Twice the lease may be too long for a `Duration`.
    if timeout + ELECTION < lease / 3 * 2 { (Ok, found) } else { (Warning, format!("{found}: holds end before")) }
}

fn coverage(server: &Server) -> Found {
    match server.setting("cluster-require-full-coverage") {
        Some("no") => (Ok, "the loss of a master concerns its names only".to_owned()),
        Some(_) => (Warning, "cluster-require-full-coverage is yes: the loss of a master stops all names".to_owned()),
        None => unknown("needs +config|get"),
    }
}

#[cfg(test)]
mod tests;
