//! The slot of a key, which decides the master that executes its calls.

use crc::{CRC_16_XMODEM, Crc};

/// The number of slots of every cluster.
pub(super) const SLOTS: u16 = 16_384;

const XMODEM: Crc<u16> = Crc::<u16>::new(&CRC_16_XMODEM);

/// The slot of `key`.
pub(super) fn of(key: &str) -> u16 {
    XMODEM.checksum(hashed(key).as_bytes()) % SLOTS
}

/// The part of a key that is hashed: the text between the first `{` and the next `}`, or the whole key if there is none.
fn hashed(key: &str) -> &str {
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map(|(tag, _)| tag);
    tag.filter(|tag| !tag.is_empty()).unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value that the specification gives to check an implementation with.
    #[test]
    fn the_checksum_is_that_of_the_specification() {
        assert_eq!(XMODEM.checksum(b"123456789"), 0x31C3);
        assert_eq!(of("123456789"), 0x31C3);
    }

    /// As `CLUSTER KEYSLOT` of Redis 7.0 answers.
    #[test]
    fn slots_are_those_of_the_server() {
        for (key, slot) in [("foo", 12_182), ("bar", 5_061), ("{}foo", 9_500), ("", 0)] {
            assert_eq!(of(key), slot, "{key}");
        }
    }

    #[test]
    fn a_tag_alone_is_hashed() {
        assert_eq!(hashed("bowline:lock:{orders:42}:queue"), "orders:42");
        assert_eq!(hashed("foo{}{bar}"), "foo{}{bar}", "the first tag is empty");
        assert_eq!(hashed("foo{{bar}}zap"), "{bar");
        assert_eq!(hashed("foo{bar}{zap}"), "bar");
        assert_eq!(hashed("foo{bar"), "foo{bar");
        assert_eq!(hashed("foo}bar{"), "foo}bar{");
    }
}
