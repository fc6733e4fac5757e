//! Spellings of URLs, for errors that tell the user to write another one.

/// How the user asks for a connection without TLS and for one with TLS.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spelling {
    pub(super) plain: &'static str,
    pub(super) tls: &'static str,
}

impl Default for Spelling {
    fn default() -> Self {
        Self { plain: "redis://", tls: "rediss://" }
    }
}
