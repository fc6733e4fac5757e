//! Why a hold was lost.

use std::fmt;

/// The reason why a hold was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Loss {
    /// The lease expired: it was fixed, or could not be renewed in time.
    Expired,
    /// Redis no longer has the hold: it expired there, was deleted, or was lost with the server's data. Or another
    /// program has [resumed](crate::Lock::resume) it, or Java has taken it.
    Gone,
    /// The hold was taken by [`force_release`](crate::Lock::force_release), or for an acquisition by
    /// [`force_after`](crate::Acquire::force_after).
    Revoked,
    /// The client was closed, or its runtime was shut down.
    Closed,
}

impl Loss {
    /// The losses that are counted in a client. [`Closed`](Self::Closed) is one of a `RedLock` only.
    pub(crate) const OF_A_CLIENT: [Self; 3] = [Self::Expired, Self::Gone, Self::Revoked];

    /// The reason in one word, as docs/metrics.md spells it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Gone => "gone",
            Self::Revoked => "revoked",
            Self::Closed => "closed",
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "the lease ran out",
            Self::Gone => "the server no longer has the hold",
            Self::Revoked => "the hold was taken by force_release",
            Self::Closed => "the client was closed",
        })
    }
}

impl std::error::Error for Loss {}
