//! Where a server listens.

use std::fmt;
#[cfg(unix)]
use std::path::PathBuf;

use crate::observe;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::redis) enum Address {
    Tcp(String, u16),
    #[cfg(unix)]
    Unix(PathBuf),
}

impl Address {
    /// Tells the span of the current acquisition that it asks this server.
    pub(in crate::redis) fn observe(&self) {
        match self {
            Self::Tcp(host, port) => observe::asks(host, Some(*port)),
            #[cfg(unix)]
            Self::Unix(path) => observe::asks(&path.display(), None),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
            #[cfg(unix)]
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}
