//! URLs: what they may contain, how they are spelled, and the TLS that they ask for.

use crate::error::{Error, ErrorKind};

pub(super) mod address;
pub(super) mod form;
mod parameters;
pub(super) mod parts;
pub(super) mod target;
#[cfg(feature = "tls")]
pub(super) mod tls;

/// How the user asks for a connection without TLS and for one with TLS.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spelling {
    pub(super) plain: &'static str,
    pub(super) tls: &'static str,
}

impl Spelling {
    /// The advice about a server that does not speak TLS.
    pub(super) fn without_tls(self) -> String {
        format!("the server does not speak TLS on this port; use {}", self.plain)
    }

    /// The advice about a server that speaks TLS.
    pub(super) fn with_tls(self) -> String {
        format!("the server speaks TLS on this port; use {}", self.tls)
    }
}

impl Default for Spelling {
    fn default() -> Self {
        Self { plain: "redis://", tls: "rediss://" }
    }
}

/// The error for a URL that cannot be used. `reason` contains no part of it.
pub(super) fn invalid(reason: &str) -> Error {
    Error::because(ErrorKind::InvalidInput, "connect", reason)
}
