//! How an acquisition attempt is named in Redis and in messages.

use std::fmt;

use uuid::Uuid;
use uuid::fmt::Hyphenated;

/// Identifies one acquisition attempt, in Redis and in messages: `<client uuid>:<n>`.
///
/// An id is never reused, so a late reply or message about an attempt that has been decided matches nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct AttemptId {
    pub(crate) client: Uuid,
    pub(crate) n: u64,
}

/// The bytes of the longest id: a uuid, a colon and a number.
const LONGEST: usize = Hyphenated::LENGTH + 1 + 20;

impl AttemptId {
    pub(crate) fn text(self) -> String {
        let mut text = String::with_capacity(LONGEST);
        text.push_str(self.client.hyphenated().encode_lower(&mut [0; Hyphenated::LENGTH]));
        text.push(':');
        text.push_str(itoa::Buffer::new().format(self.n));
        text
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let (client, n) = text.split_once(':')?;
        Some(Self { client: Uuid::try_parse(client).ok()?, n: n.parse().ok()? })
    }

    /// The client of an attempt id found in Redis, which another program may have written.
    pub(crate) fn client_of(text: &str) -> Option<Uuid> {
        Self::parse(text).map(|id| id.client)
    }
}

/// Shows enough to tell two ids apart in a log, and too little to act as the holder.
impl fmt::Debug for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.4}..:{}", self.client.simple().to_string(), self.n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling() {
        let id = AttemptId { client: Uuid::from_u128(7), n: 12 };
        let text = "00000000-0000-0000-0000-000000000007:12";
        assert_eq!(id.text(), text);
        assert_eq!(AttemptId::parse(text), Some(id));
        assert_eq!(AttemptId::client_of(text), Some(id.client));
        for junk in ["", "7:12", "00000000-0000-0000-0000-000000000007", "00000000-0000-0000-0000-000000000007:-1"] {
            assert_eq!(AttemptId::parse(junk), None, "{junk:?}");
        }
        assert!(!format!("{id:?}").contains(&id.client.to_string()));
    }
}
