//! A hold that one program leaves for another one.

use std::fmt;
use std::time::Duration;

use crate::engine::lease::{Hold, Term};
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::key::{decode, encode_start};
use crate::protocol::kind::Kind;
use crate::protocol::limits::{READ, UPGRADABLE, WRITE};
use crate::protocol::ticket::Claim;

/// A hold that was left in Redis for another program. It is returned by
/// [`LockGuard::into_handle`](crate::LockGuard::into_handle) and accepted by [`Lock::resume`](crate::Lock::resume).
///
/// **It is a secret.** A program that has it can take the hold, also from its present holder. `Debug` does not show it.
/// [`to_secret`](Self::to_secret) returns it as a text, which [`from_secret`](Self::from_secret) reads. With the
/// feature `serde`, it is written as that text.
#[derive(Clone, PartialEq, Eq)]
pub struct HoldHandle {
    /// The word of the kind.
    word: String,
    name: String,
    id: AttemptId,
    units: u32,
    lease: Duration,
    is_fixed: bool,
}

/// What the text begins with. The number is that of its format.
const FORMAT: &str = "hold1";

impl HoldHandle {
    /// The handle as a text of one line: a secret.
    pub fn to_secret(&self) -> String {
        let Self { word, name, id, units, lease, is_fixed } = self;
        let mode = if *is_fixed { "fixed" } else { "renewed" };
        // A name that a guard has had can be encoded.
        let name = encode_start(name).unwrap_or_default();
        format!("{FORMAT} {word} {units} {} {mode} {} {name}", lease.as_millis(), id.text())
    }

    /// Reads the text that [`to_secret`](Self::to_secret) has returned.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput): it is not such a text. The error does not show it.
    pub fn from_secret(text: &str) -> Result<Self> {
        let invalid = || Error::because(ErrorKind::InvalidInput, "from_secret", "this is not the text of a HoldHandle");
        Self::parse(text).ok_or_else(invalid)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.splitn(7, ' ');
        let mut word = || words.next();
        if word()? != FORMAT {
            return None;
        }
        let (kind, units) = (word()?, word()?.parse().ok()?);
        let [lock, rw_lock, semaphore] = [Kind::Lock, Kind::ReadWrite, Kind::Semaphore { limit: 1 }].map(Kind::word);
        let can_be_held = match kind {
            _ if kind == lock => units == 1,
            _ if kind == rw_lock => [READ, UPGRADABLE, WRITE].contains(&units),
            _ if kind == semaphore => (1..WRITE).contains(&units),
            _ => false,
        };
        if !can_be_held {
            return None;
        }
        Some(Self {
            word: kind.to_owned(),
            units,
            lease: Duration::from_millis(word()?.parse().ok()?),
            is_fixed: match word()? {
                "fixed" => true,
                "renewed" => false,
                _ => return None,
            },
            id: AttemptId::parse(word()?)?,
            name: decode(word()?)?,
        })
    }

    /// The name of what is held.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn of(hold: &Hold) -> Self {
        let units = if let Claim::Units { units, .. } = hold.keys.kind.claim(hold.amount) { units } else { 1 };
        Self {
            word: hold.keys.kind.word().to_owned(),
            name: (*hold.keys.name).to_owned(),
            id: hold.id,
            units,
            lease: hold.lease,
            is_fixed: hold.term == Term::Fixed,
        }
    }

    /// The hold to resume, if the handle is of this kind and name. `units`: how many it must have, if that matters.
    pub(crate) fn check(&self, (kind, name): (Kind, &str), units: Option<u32>) -> Result<Left, &'static str> {
        if self.word != kind.word() {
            return Err("the handle is of a primitive of another kind");
        }
        if self.name != name {
            return Err("the handle is of another name");
        }
        match units.filter(|units| *units != self.units) {
            Some(_) if self.units == READ => Err("the handle is of a reader"),
            Some(_) if self.units == UPGRADABLE => Err("the handle is of an upgradable reader"),
            Some(_) => Err("the handle is of a writer"),
            None => Ok(Left { id: self.id, units: self.units, lease: self.lease, is_fixed: self.is_fixed }),
        }
    }
}

/// A hold that is left in Redis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left {
    pub(crate) id: AttemptId,
    pub(crate) units: u32,
    pub(crate) lease: Duration,
    pub(crate) is_fixed: bool,
}

/// Shows the name only: the rest is a secret.
impl fmt::Debug for HoldHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HoldHandle").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for HoldHandle {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_secret())
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for HoldHandle {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'_, str> as serde::Deserialize>::deserialize(deserializer)?;
        Self::from_secret(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn handle(name: &str) -> HoldHandle {
        let id = AttemptId { client: Uuid::from_u128(7), n: 12 };
        let lease = Duration::from_millis(1500);
        HoldHandle { word: "sem".to_owned(), name: name.to_owned(), id, units: 3, lease, is_fixed: true }
    }

    #[test]
    fn there_and_back() {
        for name in ["a", "with a space", "{a}\n%", "ü"] {
            let handle = handle(name);
            let secret = handle.to_secret();
            assert_eq!(secret.lines().count(), 1);
            assert_eq!(HoldHandle::from_secret(&secret).unwrap(), handle);
        }
        let secret = handle("a b").to_secret();
        assert_eq!(secret, "hold1 sem 3 1500 fixed 00000000-0000-0000-0000-000000000007:12 a b");
        let renewed = HoldHandle { is_fixed: false, id: handle("a").id.retained(), ..handle("a") };
        assert_eq!(HoldHandle::from_secret(&renewed.to_secret()).unwrap(), renewed);
        assert_eq!(format!("{:?}", handle("a")), "HoldHandle { name: \"a\", .. }");
    }

    #[test]
    fn other_texts_are_refused_and_not_shown() {
        let id = "00000000-0000-0000-0000-000000000007:12";
        for text in [
            "",
            "hush",
            &format!("hold2 sem 3 1500 fixed {id} a"),
            &format!("hold1 sem 0 1500 fixed {id} a"),
            &format!("hold1 sem 1048576 1500 fixed {id} a"),
            &format!("hold1 lock 2 1500 fixed {id} a"),
            &format!("hold1 rw 2 1500 fixed {id} a"),
            &format!("hold1 door 1 1500 fixed {id} a"),
            &format!("hold1 sem -3 1500 fixed {id} a"),
            &format!("hold1 sem 3 1.5 fixed {id} a"),
            &format!("hold1 sem 3 1500 loose {id} a"),
            &format!("hold1 sem 3 1500 fixed {id}x a"),
            &format!("hold1 sem 3 1500 fixed {id}"),
            &format!("hold1 sem 3 1500 fixed {id} "),
            &format!("hold1 sem 3 1500 fixed {id} a{{b"),
        ] {
            let error = HoldHandle::from_secret(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(!format!("{error:#}{error:?}").contains("0000") && !format!("{error:?}").contains("hush"));
        }
    }

    #[test]
    fn a_handle_is_for_what_was_held() {
        let handle = handle("a");
        let kind = Kind::Semaphore { limit: 9 };
        assert_eq!(handle.check((kind, "a"), None).map(|left| left.units), Ok(3));
        assert!(handle.check((kind, "b"), None).is_err());
        assert!(handle.check((Kind::Lock, "a"), None).is_err());
        let writer = HoldHandle { word: "rw".to_owned(), units: WRITE, ..handle };
        assert!(writer.check((Kind::ReadWrite, "a"), Some(WRITE)).is_ok());
        assert!(writer.check((Kind::ReadWrite, "a"), Some(READ)).is_err());
    }
}
