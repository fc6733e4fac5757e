//! How an acquisition attempt is named in Redis and in messages.

use std::fmt;

use uuid::Uuid;
use uuid::fmt::Hyphenated;

/// Identifies one acquisition attempt, in Redis and in messages: `<client uuid>:<n>`, with an `r` behind it if the hold
/// is [retained](Self::is_retained).
///
/// An id is never reused, so a late reply or message about an attempt that has been decided matches nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct AttemptId {
    pub(crate) client: Uuid,
    /// With the bit [`RETAINED`] in the number, so that the number alone tells attempts of one client apart.
    pub(crate) n: u64,
}

/// Set in the numbers of attempts whose hold is retained.
const RETAINED: u64 = 1 << 63;

/// The bytes of the longest id: a uuid, a colon, a number and the mark of a retained hold.
const LONGEST: usize = Hyphenated::LENGTH + 1 + 20 + 1;

impl AttemptId {
    /// The same, for an attempt whose hold is retained.
    pub(crate) fn retained(self) -> Self {
        Self { n: self.n | RETAINED, ..self }
    }

    /// Whether the client may keep the hold while it does not use it. Those who wait for it ask the client to release
    /// it.
    pub(crate) fn is_retained(self) -> bool {
        self.n & RETAINED != 0
    }

    pub(crate) fn text(self) -> String {
        let mut text = String::with_capacity(LONGEST);
        text.push_str(self.client.hyphenated().encode_lower(&mut [0; Hyphenated::LENGTH]));
        text.push(':');
        text.push_str(itoa::Buffer::new().format(self.n & !RETAINED));
        if self.is_retained() {
            text.push('r');
        }
        text
    }

    /// The id of a permit in the format of Redisson: 16 bytes in hexadecimal digits. Clients have random ids, so that
    /// no two attempts have the same one.
    pub(crate) fn permit(self) -> String {
        format!("{:032x}", self.client.as_u128() ^ u128::from(self.n).rotate_left(64))
    }

    /// Reads the id of a permit in the format of Redisson. `None`: it is not of an attempt of that client.
    pub(crate) fn of_permit(text: &str, client: Uuid) -> Option<Self> {
        let bits = u128::from_str_radix(text, 16).ok()? ^ client.as_u128();
        let n = u64::try_from(bits.rotate_left(64)).ok()?;
        Some(Self { client, n })
    }

    /// Reads an id that was found in Redis or in a message, which another program may have written.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (client, number) = text.split_once(':')?;
        let (number, is_retained) = number.strip_suffix('r').map_or((number, false), |number| (number, true));
        let n = number.parse().ok().filter(|n| n & RETAINED == 0)?;
        let id = Self { client: Uuid::try_parse(client).ok()?, n };
        Some(if is_retained { id.retained() } else { id })
    }

    /// The client of an id of a hold found in Redis.
    pub(crate) fn client_of(text: &str) -> Option<Uuid> {
        Self::parse(attempt_of(text)).map(|id| id.client)
    }
}

/// The attempt in an id found in Redis. After a run, its period is kept from others for a while under another id, which
/// no call of the run knows.
pub(crate) fn attempt_of(text: &str) -> &str {
    text.strip_suffix("/least").unwrap_or(text)
}

/// Shows enough to tell two ids apart in a log, and too little to act as the holder.
impl fmt::Debug for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.is_retained() { "r" } else { "" };
        write!(f, "{:.4}..:{}{mark}", self.client.simple().to_string(), self.n & !RETAINED)
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
        let retained = id.retained();
        assert_eq!((retained.text(), retained.is_retained(), id.is_retained()), (format!("{text}r"), true, false));
        assert_eq!(AttemptId::parse(&retained.text()), Some(retained));
        for junk in ["", "7:12", "{}", "{}:-1", "{}:", "{}:r", "{}:1rr", "{}:9223372036854775808"] {
            let junk = junk.replace("{}", &id.client.to_string());
            assert_eq!(AttemptId::parse(&junk), None, "{junk:?}");
        }
        assert!(!format!("{id:?}").contains(&id.client.to_string()));
        assert_eq!(id.permit(), "000000000000000c0000000000000007");
        let other = Uuid::from_u128(u128::MAX);
        for n in [0, 12, u64::MAX >> 1] {
            let id = AttemptId { n, ..id };
            assert_eq!(AttemptId::of_permit(&id.permit(), id.client), Some(id));
            assert_eq!(AttemptId::of_permit(&id.permit(), other), None);
        }
        for junk in ["", text, "x00000000000000c0000000000000007", "0000000000000000c0000000000000007000"] {
            assert_eq!(AttemptId::of_permit(junk, id.client), None, "{junk:?}");
        }
    }
}
