//! The kinds of URLs, and their schemes.

/// The kind of servers that a URL names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::redis) enum Form {
    Server,
    Socket,
    Sentinels,
    Cluster,
}

impl Form {
    /// The kind, and whether the scheme asks for TLS.
    pub(super) fn of_scheme(scheme: &str) -> Option<(Self, bool)> {
        Some(match scheme {
            "redis" | "valkey" => (Self::Server, false),
            "rediss" | "valkeys" => (Self::Server, true),
            "unix" | "redis+unix" | "valkey+unix" => (Self::Socket, false),
            "redis-sentinel" | "valkey-sentinel" => (Self::Sentinels, false),
            "rediss-sentinel" | "valkeys-sentinel" => (Self::Sentinels, true),
            "redis-cluster" | "valkey-cluster" => (Self::Cluster, false),
            "rediss-cluster" | "valkeys-cluster" => (Self::Cluster, true),
            _ => return None,
        })
    }

    pub(super) fn default_port(self) -> u16 {
        if self == Self::Sentinels { 26379 } else { 6379 }
    }

    /// The message about a missing host.
    pub(super) fn without_host(self) -> &'static str {
        match self {
            Self::Server | Self::Socket => "a host is missing; for a Unix socket write unix:///path",
            Self::Sentinels => "a host is missing: name the sentinels as in redis-sentinel://host:port,host:port",
            Self::Cluster => {
                "a host is missing: a URL of a cluster names at least one node, as in redis-cluster://host:port,host:port"
            }
        }
    }
}
