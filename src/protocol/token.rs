//! The fencing token.

use std::fmt;
use std::time::Duration;

/// The fencing token of a hold. It is larger than the token of every earlier hold of the same name.
///
/// Send it with every write to the resource that the lock protects, and let the resource reject a token smaller than
/// the largest it has seen. The token, not the lock, keeps a paused or partitioned holder from overwriting the work of
/// its successor.
///
/// # Guarantees
/// Tokens of one name strictly increase in the order of the grants. Redis counts them, and the count is never below the
/// server's clock:
/// - While the counter exists, tokens increase whatever the clock does. The counter exists for at least 1 h after the
///   last grant. If twice the lease is longer than that, it exists for twice the lease, or up to 5 min less if a reader
///   got the grant.
/// - After the counter was lost, by a restart, a failover, `FLUSHALL` or its age, tokens still increase unless the
///   clock ran backwards across the loss.
///
/// A clock that is set back by less than an hour therefore does no harm to data that is kept. If it is set back
/// further, a name without a grant for an hour can get a smaller token than its last, until the clock has caught up.
///
/// Re-entry keeps the token. Readers share the token of a writer: see [`ReadGuard::token`](crate::ReadGuard::token).
///
/// # Not guaranteed
/// Tokens are not consecutive. Tokens of different names cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(u64);

impl Token {
    /// Tokens stay below 2^53, so that they survive JSON, Lua and JavaScript numbers.
    pub(crate) const MAX: u64 = (1 << 53) - 1;

    /// The token of holds that have no fencing token.
    pub(crate) const NONE: Self = Self(0);

    pub(crate) const fn new(value: u64) -> Self {
        Self(value)
    }

    /// The next larger token.
    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The token that the server's clock would give `elapsed` later.
    pub(crate) fn after(self, elapsed: Duration) -> Self {
        Self(self.0 + u64::try_from(elapsed.as_micros()).unwrap_or_default())
    }

    /// The token as a number, below 2^53.
    pub fn get(self) -> u64 {
        self.0
    }

    /// The token as a signed number, which is what SQL's `BIGINT` takes. It is never negative.
    pub fn as_i64(self) -> i64 {
        // Below 2^53.
        self.0.cast_signed()
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<Token> for i64 {
    fn from(token: Token) -> Self {
        token.as_i64()
    }
}

impl From<Token> for u64 {
    fn from(token: Token) -> Self {
        token.0
    }
}

/// A number, as everywhere else.
#[cfg(feature = "serde")]
impl serde::Serialize for Token {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

/// For a storage that is told the token by another program, and compares it with its own.
#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Token {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::{Error, Unexpected};

        let value = u64::deserialize(deserializer)?;
        let token = Some(Self(value)).filter(|_| value <= Self::MAX);
        token.ok_or_else(|| D::Error::invalid_value(Unexpected::Unsigned(value), &"a token, which is below 2^53"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_token_is_the_same_number_with_a_sign() {
        for value in [0, 1, Token::MAX] {
            let token = Token::new(value);
            assert_eq!((i64::from(token), u64::from(token)), (token.as_i64(), value));
            assert_eq!(u64::try_from(token.as_i64()), Ok(value));
        }
    }
}
