//! The slot of a key in a cluster. It decides which master executes the key's calls and publishes its messages.

use std::sync::LazyLock;

use crc::{CRC_16_XMODEM, Crc};

/// The number of slots of every cluster.
pub(crate) const SLOTS: u16 = 16_384;

const XMODEM: Crc<u16> = Crc::<u16>::new(&CRC_16_XMODEM);

/// The slot of `key`, or of a shard channel.
pub(crate) fn of(key: &str) -> u16 {
    XMODEM.checksum(hashed(key).as_bytes()) % SLOTS
}

/// Whether the text has a hash tag.
#[cfg(any(feature = "_redis", test))]
pub(crate) fn is_tagged(text: &str) -> bool {
    hashed(text) != text
}

/// The part of a key that is hashed: the text between the first `{` and the next `}`, or the whole key if there is
/// none.
pub(super) fn hashed(key: &str) -> &str {
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map(|(tag, _)| tag);
    tag.filter(|tag| !tag.is_empty()).unwrap_or(key)
}

/// The smallest number that, written in decimal as a hash tag, has this slot. A channel's name contains it. The numbers
/// are in a table of 64 KiB, which is built when a client first needs it. This takes less than a millisecond, and
/// clients of one server never need it.
pub(crate) fn tag(slot: u16) -> u32 {
    TAGS.get(usize::from(slot % SLOTS)).copied().unwrap_or_default()
}

static TAGS: LazyLock<Box<[u32]>> = LazyLock::new(tags);

fn tags() -> Box<[u32]> {
    const NONE: u32 = u32::MAX;
    let mut tags = vec![NONE; usize::from(SLOTS)];
    let mut missing = tags.len();
    // The checksum of a number continues that of the number without its last digit. The digit is the index in this
    // list.
    let mut checksums: Vec<u16> = Vec::new();
    for number in 0_u32.. {
        let shorter = usize::try_from(number / 10).ok().filter(|_| number > 9);
        let begun = shorter.and_then(|number| checksums.get(number)).copied().unwrap_or_default();
        let mut digest = XMODEM.digest_with_initial(begun);
        digest.update(&[b"0123456789"[usize::try_from(number % 10).unwrap_or_default()]]);
        let checksum = digest.finalize();
        checksums.push(checksum);
        if let Some(tag) = tags.get_mut(usize::from(checksum % SLOTS)).filter(|tag| **tag == NONE) {
            *tag = number;
            missing -= 1;
        }
        if missing == 0 {
            break;
        }
    }
    tags.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_has_its_slot_and_no_smaller_number_has() {
        let mut smallest = std::collections::HashMap::new();
        for number in (0..=109_757_u32).rev() {
            smallest.insert(of(&number.to_string()), number);
        }
        assert_eq!(smallest.len(), usize::from(SLOTS));
        for slot in 0..SLOTS {
            assert_eq!(tag(slot), smallest[&slot], "slot {slot}");
            assert_eq!(of(&format!("p:inbox:{{{}}}:client", tag(slot))), slot);
        }
        assert_eq!(TAGS.iter().max(), Some(&109_757), "the table is no longer than it has to be");
    }

    /// The value that the specification gives as a check of an implementation.
    #[test]
    fn the_checksum_is_that_of_the_specification() {
        assert_eq!(XMODEM.checksum(b"123456789"), 0x31C3);
        assert_eq!(of("123456789"), 0x31C3);
    }

    /// The answers of `CLUSTER KEYSLOT` of Redis 7.0.
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
        assert!(is_tagged("foo{bar}") && !is_tagged("foo:bar"));
    }
}
