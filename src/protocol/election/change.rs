//! A change of an election, as it is stored.

use uuid::Uuid;

use crate::protocol::token::Token;

/// What has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// The term has begun.
    Led,
    /// The leader has published a value.
    Said,
    /// The term has ended.
    Ended,
}

impl What {
    const ALL: [(Self, &'static str); 3] = [(Self::Led, "led"), (Self::Said, "said"), (Self::Ended, "ended")];

    pub(super) fn word(self) -> &'static str {
        Self::ALL.iter().find(|(what, _)| *what == self).map_or("", |(_, word)| word)
    }
}

/// A change of an election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredChange {
    pub(crate) revision: u64,
    pub(crate) what: What,
    pub(crate) term: Token,
    /// The leader's client. `None` for the end of a term.
    pub(crate) client: Option<Uuid>,
    pub(crate) label: String,
    pub(crate) value: String,
}

impl StoredChange {
    /// `None`: the scripts store nothing like it.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut words = text.splitn(7, ' ');
        let mut word = || words.next();
        let revision = word()?.parse().ok()?;
        let spelled = word()?;
        let (what, _) = What::ALL.into_iter().find(|(_, word)| *word == spelled)?;
        let term = word()?.parse().ok().filter(|term| *term <= Token::MAX).map(Token::new)?;
        let _number: u64 = word()?.parse().ok()?;
        let client = word()?.parse().ok();
        let length = word()?.parse().ok()?;
        let (label, value) = word()?.split_at_checked(length)?;
        Some(Self { revision, what, term, client, label: label.to_owned(), value: value.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read_as_they_are_stored() {
        let client = Uuid::from_u128(7);
        let said = StoredChange {
            revision: 12,
            what: What::Said,
            term: Token::new(9),
            client: Some(client),
            label: "a b".to_owned(),
            value: " c  d".to_owned(),
        };
        assert_eq!(StoredChange::parse(&format!("12 said 9 3 {client} 3 a b c  d")), Some(said.clone()));
        let ended =
            StoredChange { what: What::Ended, client: None, label: String::new(), value: String::new(), ..said };
        assert_eq!(StoredChange::parse("12 ended 9 3 - 0 "), Some(ended));
        for junk in ["", "12 said 9", "12 sang 9 3 - 0 ", "x led 9 3 - 0 ", "12 led 9 3 - 1 ", "12 led 9 3 - 1 ä"] {
            assert_eq!(StoredChange::parse(junk), None, "{junk:?}");
        }
    }
}
