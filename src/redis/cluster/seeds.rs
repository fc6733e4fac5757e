//! The URL of a cluster, which names several nodes. Any of them can report the others.

use crate::error::Result;

use super::super::url::Spelling;
use super::super::url::target::{Access, Address, Target, invalid};
use super::host::Host;

/// The schemes of clusters, with the schemes of a single node that correspond to them.
const SCHEMES: [(&str, &str); 4] = [
    ("redis-cluster://", "redis://"),
    ("rediss-cluster://", "rediss://"),
    ("valkey-cluster://", "valkey://"),
    ("valkeys-cluster://", "valkeys://"),
];

/// The nodes to ask first, and how to log in to all nodes.
pub(in crate::redis) struct Seeds {
    pub(super) hosts: Vec<Host>,
    pub(super) access: Access,
}

impl Seeds {
    /// Reads a URL. `None`: it is not the URL of a cluster.
    pub(in crate::redis) fn parse(url: &str) -> Result<Option<Self>> {
        let found = SCHEMES.iter().find_map(|(cluster, one)| Some((one, url.strip_prefix(cluster)?)));
        let Some((scheme, rest)) = found else { return Ok(None) };
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let (user, hosts) = match authority.rsplit_once('@') {
            Some((user, hosts)) => (format!("{user}@"), hosts),
            None => (String::new(), authority),
        };
        let mut hosts = hosts.split(',').map(str::trim);
        let first = hosts.next().unwrap_or_default();
        if first.is_empty() {
            return Err(invalid(
                "a URL of a cluster names at least one node, as in redis-cluster://host:port,host:port",
            ));
        }
        let first = Target::parse(&format!("{scheme}{user}{first}{path}"))?;
        let access = access(&first, Spelling { plain: "redis-cluster://", tls: "rediss-cluster://" })?;
        // All nodes have the same user and TLS settings, so only the address is read.
        let others = hosts.map(|host| Target::parse(&format!("redis://{host}")).and_then(|target| host_of(&target)));
        let hosts = std::iter::once(host_of(&first)).chain(others).collect::<Result<_>>()?;
        Ok(Some(Self { hosts, access }))
    }

    /// The seeds of a cluster that was found through the URL of a single node.
    pub(in crate::redis) fn of(node: &Target) -> Result<Self> {
        Ok(Self { hosts: vec![host_of(node)?], access: access(node, Spelling::default())? })
    }
}

fn access(node: &Target, spelling: Spelling) -> Result<Access> {
    if node.db() != 0 {
        return Err(invalid("bowline uses database 0 of a cluster; leave the number out of the URL"));
    }
    Ok(node.access_to_nodes(spelling))
}

fn host_of(target: &Target) -> Result<Host> {
    match &target.address {
        Address::Tcp(name, port) => Ok(Host::new(name, *port)),
        #[cfg(unix)]
        Address::Unix(_) => Err(invalid("the nodes of a cluster have no unix sockets")),
    }
}

/// Shows the nodes of the URL.
impl std::fmt::Display for Seeds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (n, host) in self.hosts.iter().enumerate() {
            write!(f, "{}{host}", if n == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn shown(url: &str) -> String {
        Seeds::parse(url).unwrap().expect("the URL of a cluster").to_string()
    }

    #[test]
    fn good_urls() {
        assert_eq!(shown("redis-cluster://a,b:7001,[::1]:7002"), "a:6379,b:7001,[::1]:7002");
        assert_eq!(shown("valkey-cluster://a:7000/0?protocol=resp3"), "a:7000");
        let seeds = Seeds::parse("redis-cluster://alice:s%2C%403@a:7000, b/").unwrap().unwrap();
        assert_eq!(seeds.to_string(), "a:7000,b:6379");
        assert_eq!(seeds.access.at(Address::Tcp("a".to_owned(), 1)).unwrap().login().password(), Some("s,@3"));
        assert!(Seeds::parse("redis://a/").unwrap().is_none());
    }

    #[test]
    fn bad_urls_are_invalid_input_and_show_no_part_of_themselves() {
        for url in [
            "redis-cluster://",
            "redis-cluster://alice:s3cret@",
            "redis-cluster://alice:s3cret@a,,b",
            "redis-cluster://alice:s3cret@a,b:99999",
            "redis-cluster://alice:s3cret@a,b/1",
            "redis-cluster://alice:12/s3cret@a,b",
            "redis-cluster://alice:12?s3cret@a,b",
            "redis-cluster://alice@a,b",
        ] {
            let error = Seeds::parse(url).err().unwrap_or_else(|| panic!("{url}"));
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{url}");
            let text = format!("{error} {error:?}");
            assert!(!text.contains("s3cret") && !text.contains("alice"), "{text}");
        }
    }
}
