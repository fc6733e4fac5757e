//! The fencing token.

use std::fmt;

/// The fencing token of a hold: larger than that of every earlier hold of the same name.
///
/// Send it along with every write to the resource that the lock protects, and let the resource refuse a token
/// smaller than the largest it has seen. That, not the lock, is what keeps a paused or partitioned holder from
/// overwriting its successor's work.
///
/// # Guarantees
/// Tokens of one name strictly increase in the order in which holds were granted. They are counted in Redis, with the
/// server's clock as the floor: as long as the counter lives, which is 1 h after the last grant or twice its lease if that
/// is longer, they grow whatever the clock does; and when it is lost, by a restart, a failover, `FLUSHALL` or age, they grow as
/// long as the clock does not run backwards across the loss. So a clock that is set back by less than an hour does no harm
/// to data that is kept; one that is set back by more can give a name that was not granted for an hour a smaller
/// token than its last, until the clock has caught up. Re-entry keeps the token. Readers have no tokens of their own, but the last writer's:
/// see [`ReadGuard::token`](crate::ReadGuard::token).
///
/// # Not guaranteed
/// Tokens are not consecutive, and tokens of different names do not compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(u64);

impl Token {
    /// Tokens stay below 2^53, so that they survive JSON, Lua and JavaScript numbers.
    pub(crate) const MAX: u64 = (1 << 53) - 1;

    /// Of what cannot be fenced.
    pub(crate) const NONE: Self = Self(0);

    pub(crate) fn new(value: u64) -> Self {
        Self(value)
    }

    /// The token as a number, below 2^53.
    pub fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<Token> for u64 {
    fn from(token: Token) -> Self {
        token.0
    }
}
