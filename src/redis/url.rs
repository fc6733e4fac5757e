//! URLs: what they may contain, how they are spelled, and the TLS that they ask for.

pub(super) mod spelling;
pub(super) mod target;
#[cfg(feature = "tls")]
pub(super) mod tls;
