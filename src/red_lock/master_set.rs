//! The name, version and size of a set of masters, as masters remember it with their votes.

use std::fmt;

const LONGEST_NAME: usize = 64;

/// Which set the masters are, as the user declares it: its name, its version and its size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MasterSet {
    spelled: Box<str>,
}

impl MasterSet {
    pub(super) fn new(name: &str, version: u32, masters: usize) -> Result<Self, &'static str> {
        if name.is_empty() || name.len() > LONGEST_NAME {
            return Err("the name in masters_version must have 1 to 64 bytes");
        }
        if name.chars().any(|c| c == ' ' || c.is_control()) {
            return Err("the name in masters_version must not contain spaces or control characters");
        }
        Ok(Self { spelled: format!("{name}/{version}/{masters}").into() })
    }

    pub(super) fn as_str(&self) -> &str {
        &self.spelled
    }
}

/// Describes a set in words. `spelled` is the form in which masters store it.
pub(super) fn describe(spelled: &str) -> impl fmt::Display {
    let mut parts = spelled.rsplitn(3, '/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(masters), Some(version), Some(name)) => format!("version {version} of {name:?}, {masters} masters"),
        _ => format!("{spelled:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_spelled_and_described() {
        for name in ["orders", "a/b/1"] {
            let set = MasterSet::new(name, 7, 4).unwrap();
            assert_eq!(set.as_str(), format!("{name}/7/4"));
            assert_eq!(describe(set.as_str()).to_string(), format!("version 7 of {name:?}, 4 masters"));
        }
        assert_eq!(describe("x").to_string(), "\"x\"");
    }

    #[test]
    fn names_that_a_script_could_not_read_are_refused() {
        for name in ["", "a b", "a\n", &"x".repeat(65)] {
            assert!(MasterSet::new(name, 1, 3).is_err(), "{name:?}");
        }
        assert!(MasterSet::new(&"x".repeat(64), 0, 3).is_ok());
    }
}
