//! Where a server listens.

use std::fmt;
#[cfg(unix)]
use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::redis) enum Address {
    Tcp(String, u16),
    #[cfg(unix)]
    Unix(PathBuf),
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
