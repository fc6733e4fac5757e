//! The nodes of a cluster that a URL names. Any of them can report the others.

use super::super::address_map::AddressMap;
use super::super::url::address::Address;
use super::super::url::parts::UrlParts;
use super::super::url::target::{Access, Target};
use super::super::url::{Spelling, invalid};
use super::host::Host;
use crate::error::Result;

/// The nodes to ask first, and how to log in to all nodes.
pub(in crate::redis) struct Seeds {
    pub(super) hosts: Vec<Host>,
    pub(super) access: Access,
    /// Where the nodes that a node names are reached.
    pub(super) announced: AddressMap,
}

impl Seeds {
    /// The seeds that the URL of a cluster names.
    pub(in crate::redis) fn named(parts: &UrlParts) -> Result<Self> {
        let spelling = Spelling { plain: "redis-cluster://", tls: "rediss-cluster://" };
        let access = Access::new(parts, parts.tls, spelling)?.of_nodes(spelling)?;
        let hosts =
            parts.addresses.iter().map(|address| host_of(&access.at(address.clone())?)).collect::<Result<_>>()?;
        Ok(Self { hosts, access, announced: parts.announced.clone() })
    }

    #[cfg(test)]
    pub(super) fn parse(url: &str) -> Result<Self> {
        Self::named(&UrlParts::parse(url)?)
    }

    /// The seeds of a cluster that was found through the URL of a single node.
    pub(in crate::redis) fn of(node: &Target, announced: AddressMap) -> Result<Self> {
        Ok(Self { hosts: vec![host_of(node)?], access: node.access.of_nodes(Spelling::default())?, announced })
    }
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
    use crate::redis::login::Login;

    fn shown(url: &str) -> String {
        Seeds::parse(url).unwrap().to_string()
    }

    #[test]
    fn good_urls() {
        assert_eq!(shown("redis-cluster://a,b:7001,[::1]:7002"), "a:6379,b:7001,[::1]:7002");
        assert_eq!(shown("valkey-cluster://a:7000/0?protocol=resp3"), "a:7000");
        let seeds = Seeds::parse("redis-cluster://alice:s%2C%403@a:7000, b/").unwrap();
        assert_eq!(seeds.to_string(), "a:7000,b:6379");
        assert_eq!(
            seeds.access.at(Address::Tcp("a".to_owned(), 1)).unwrap().login().last(),
            Some(Login::new("alice", "s,@3"))
        );
    }

    #[test]
    fn bad_urls_are_invalid_input_and_show_no_part_of_themselves() {
        for url in [
            "redis-cluster://",
            "redis-cluster://alice:s3cret@",
            "redis-cluster://alice:s3cret@a,,b",
            "redis-cluster://alice:s3cret@a,b:99999",
            "redis-cluster://alice:s3cret@a,b/1",
            "redis-cluster://alice:s3cret@a,alice:s3cret@b",
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
