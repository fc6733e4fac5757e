//! How the generation of a barrier has ended for a party.

use crate::protocol::limits::{BROKEN_BY_RESET, EXPIRED, FORGOTTEN, LEFT, MAX_PARTIES, PLACES};
use crate::protocol::token::Token;

/// How a generation has ended for a party. The scripts tell it as one number, which takes the place of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GenerationEnd {
    /// As many have arrived as there are parties.
    Passed {
        generation: u64,
        place: u32,
    },
    Broken(Break),
}

/// Why a generation is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Break {
    Left,
    Expired,
    Reset,
    Forgotten,
}

impl GenerationEnd {
    /// `None`: no script tells such a number.
    pub(crate) fn of(number: Token) -> Option<Self> {
        let (generation, place) = (number.get() / PLACES, number.get() % PLACES);
        Some(match place {
            LEFT => Self::Broken(Break::Left),
            EXPIRED => Self::Broken(Break::Expired),
            BROKEN_BY_RESET => Self::Broken(Break::Reset),
            FORGOTTEN => Self::Broken(Break::Forgotten),
            place => Self::Passed { generation, place: u32::try_from(place).ok().filter(|n| *n < MAX_PARTIES)? },
        })
    }
}

impl Break {
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Left => "a party has stopped waiting, or has left early",
            Self::Expired => "the lease of a party has ended",
            Self::Reset => "the barrier was reset",
            Self::Forgotten => "the server has lost the state of the barrier",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_the_scripts_spell_them() {
        let of = |place: u64| GenerationEnd::of(Token::new(7 * 1024 + place));
        assert_eq!(of(0), Some(GenerationEnd::Passed { generation: 7, place: 0 }));
        assert_eq!(of(999), Some(GenerationEnd::Passed { generation: 7, place: 999 }));
        assert_eq!(of(1001), Some(GenerationEnd::Broken(Break::Left)));
        assert_eq!(of(1002), Some(GenerationEnd::Broken(Break::Expired)));
        assert_eq!(of(1003), Some(GenerationEnd::Broken(Break::Reset)));
        assert_eq!(of(1004), Some(GenerationEnd::Broken(Break::Forgotten)));
        for junk in [1000, 1005, 1023] {
            assert_eq!(of(junk), None, "{junk}");
        }
    }
}
