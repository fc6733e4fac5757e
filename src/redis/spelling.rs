//! What a URL has to say, for errors that tell the user to say something else.

/// How the user asks for a connection without TLS, and for one with it.
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
