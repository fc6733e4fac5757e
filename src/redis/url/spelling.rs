//! How URLs are written, for errors that tell the user to change one.

/// How the user asks for a connection without TLS and for one with TLS.
#[derive(Clone, Copy, Debug)]
pub(in crate::redis) struct Spelling {
    pub(in crate::redis) plain: &'static str,
    pub(in crate::redis) tls: &'static str,
}

impl Spelling {
    /// The advice about a server that does not speak TLS.
    pub(in crate::redis) fn without_tls(self) -> String {
        format!("the server does not speak TLS on this port; use {}", self.plain)
    }

    /// The advice about a server that speaks TLS.
    pub(in crate::redis) fn with_tls(self) -> String {
        format!("the server speaks TLS on this port; use {}", self.tls)
    }
}

impl Default for Spelling {
    fn default() -> Self {
        Self { plain: "redis://", tls: "rediss://" }
    }
}
