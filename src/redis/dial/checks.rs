//! What a server says about itself, and whether bowline can use it.

use super::super::failure::Failure;
use super::super::url::target::Purpose;
use crate::connection::{ConnectionError, Reply};

/// The oldest version of Redis on which the scripts work.
const OLDEST: (u32, u32) = (6, 2);

/// The message for a server that is too old. `is` says what shows that.
pub(super) fn too_old(is: &str) -> String {
    let (major, minor) = OLDEST;
    format!("the server {is}; bowline needs Redis or Valkey {major}.{minor} or newer")
}

/// Checks the reply to `HELLO`, which alternates names and values.
pub(in crate::redis) fn check_server(hello: &Reply, purpose: Purpose) -> Result<(), Failure> {
    if let Some(version) = field(hello, "version") {
        let mut numbers = version.split('.').map(|number| number.parse::<u32>());
        // A server without a readable version is not Redis, but may work.
        if let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next())
            && (major, minor) < OLDEST
        {
            return Err(Failure::Unsupported(too_old(&format!("is version {version}"))));
        }
    }
    match (field(hello, "mode").as_deref(), purpose) {
        (Some("cluster"), Purpose::Server) => return Err(Failure::Cluster),
        (Some("sentinel"), _) => {
            let reason = "this is a sentinel; use redis-sentinel://host:port/?master=<name>";
            return Err(Failure::Unsupported(reason.to_owned()));
        }
        (Some("standalone"), Purpose::Node) => {
            let reason = "the server is no node of a cluster; use redis://";
            return Err(Failure::Unsupported(reason.to_owned()));
        }
        _ => {}
    }
    match field(hello, "role").as_deref() {
        // Refused with the error with which a replica refuses the first script that writes.
        Some("replica" | "slave") if purpose == Purpose::Server => {
            Err(Failure::Refused(ConnectionError::refused("READONLY the server is a replica")))
        }
        _ => Ok(()),
    }
}

/// A field of a reply that alternates names and values.
pub(in crate::redis) fn field(pairs: &Reply, name: &str) -> Option<String> {
    let Reply::Array(items) = pairs else { return None };
    items.chunks_exact(2).find_map(|pair| match pair {
        [Reply::Bytes(key), Reply::Bytes(value)] if key == name.as_bytes() => {
            Some(String::from_utf8_lossy(value).into_owned())
        }
        _ => None,
    })
}

/// The policy in the reply to `INFO memory`, if it lets the server drop keys.
pub(super) fn eviction_policy(info: &Reply) -> Option<String> {
    let Reply::Bytes(info) = info else { return None };
    let info = String::from_utf8_lossy(info);
    let policy = info.lines().find_map(|line| line.strip_prefix("maxmemory_policy:"))?.trim();
    (policy != "noeviction").then(|| policy.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn hello(pairs: &[(&str, &str)]) -> Reply {
        let bytes = |text: &str| Reply::Bytes(text.as_bytes().to_vec());
        Reply::Array(pairs.iter().flat_map(|(key, value)| [bytes(key), bytes(value)]).collect())
    }

    #[test]
    fn versions() {
        for version in ["6.2.0", "6.2", "7.0.15", "10.0.0", "255.255.255", "unstable"] {
            assert!(
                check_server(&hello(&[("server", "redis"), ("version", version)]), Purpose::Server).is_ok(),
                "{version}"
            );
        }
        for version in ["6.0.9", "6.1.99", "2.8.24"] {
            let failure =
                check_server(&hello(&[("server", "redis"), ("version", version)]), Purpose::Server).unwrap_err();
            assert!(matches!(failure, Failure::Unsupported(_)));
            assert!(failure.to_string().contains(version));
        }
        assert!(check_server(&hello(&[("mode", "standalone")]), Purpose::Server).is_ok());
        let node = hello(&[("mode", "cluster"), ("role", "replica")]);
        assert!(matches!(check_server(&node, Purpose::Server), Err(Failure::Cluster)));
        assert!(check_server(&node, Purpose::Node).is_ok());
        assert!(check_server(&hello(&[("mode", "standalone")]), Purpose::Node).is_err());
        assert!(check_server(&hello(&[("mode", "sentinel")]), Purpose::Node).is_err());
        assert!(check_server(&Reply::Nil, Purpose::Server).is_ok());
    }

    #[test]
    fn roles() {
        assert!(check_server(&hello(&[("version", "7.0.15"), ("role", "master")]), Purpose::Server).is_ok());
        for role in ["replica", "slave"] {
            let failure = check_server(&hello(&[("version", "7.0.15"), ("role", role)]), Purpose::Server).unwrap_err();
            assert!(matches!(&failure, Failure::Refused(refusal) if refusal.kind() == ErrorKind::Refused), "{failure}");
        }
    }

    #[test]
    fn policies() {
        let info = |policy: &str| Reply::Bytes(format!("# Memory\r\nused:1\r\nmaxmemory_policy:{policy}\r\n").into());
        assert_eq!(eviction_policy(&info("noeviction")), None);
        assert_eq!(eviction_policy(&info("allkeys-lru")), Some("allkeys-lru".to_owned()));
        assert_eq!(eviction_policy(&Reply::Bytes(b"# Memory".to_vec())), None);
    }
}
