//! The address of a node.

use std::fmt;
use std::sync::Arc;

/// The address of a node: a name or an IP address without brackets, and a port.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(in crate::redis) struct Host {
    pub(in crate::redis) name: Arc<str>,
    pub(in crate::redis) port: u16,
}

impl Host {
    pub(in crate::redis) fn new(name: &str, port: u16) -> Self {
        Self { name: name.into(), port }
    }

    /// Reads `name:port` as servers write it in `MOVED` and `ASK`. A server that does not know its own name leaves it
    /// out. The node then has the same host as the server that `answered`.
    pub(super) fn parse(text: &str, answered: &Self) -> Option<Self> {
        let (name, port) = text.rsplit_once(':')?;
        let port = port.parse().ok().filter(|port| *port != 0)?;
        match name.trim_start_matches('[').trim_end_matches(']') {
            "" => Some(Self { name: Arc::clone(&answered.name), port }),
            // The server announces names, and this node has none.
            "?" => None,
            name => Some(Self::new(name, port)),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, port } = self;
        if name.contains(':') { write!(f, "[{name}]:{port}") } else { write!(f, "{name}:{port}") }
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_as_servers_write_them() {
        let answered = Host::new("10.0.0.9", 7000);
        let parsed = |text| Host::parse(text, &answered).map(|host| host.to_string());
        assert_eq!(parsed("127.0.0.1:7001").as_deref(), Some("127.0.0.1:7001"));
        assert_eq!(parsed("node-a.example:7001").as_deref(), Some("node-a.example:7001"));
        assert_eq!(parsed("::1:7001").as_deref(), Some("[::1]:7001"));
        assert_eq!(parsed("[::1]:7001").as_deref(), Some("[::1]:7001"));
        assert_eq!(parsed(":7001").as_deref(), Some("10.0.0.9:7001"), "the server that answered");
        for bad in ["", "7001", "host:", "host:0", "host:70000", "?:7001"] {
            assert_eq!(parsed(bad), None, "{bad}");
        }
    }
}
