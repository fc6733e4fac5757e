//! What a bench was asked for: words are parts of the names of cases, `key=value` changes a size.

use crate::Result;

/// The arguments of the process.
#[derive(Debug)]
pub struct Args {
    filters: Vec<String>,
    values: Vec<(String, String)>,
}

impl Args {
    /// Takes the arguments of the process apart. An unknown key is an error, which names those that are `known`.
    pub fn parse(known: &[&str]) -> Result<Self> {
        let mut args = Self { filters: Vec::new(), values: Vec::new() };
        for arg in std::env::args().skip(1) {
            match arg.split_once('=') {
                Some((key, value)) if known.contains(&key) => args.values.push((key.to_owned(), value.to_owned())),
                None if !arg.starts_with('-') => args.filters.push(arg),
                _ => return Err(format!("{arg}: not a part of a case's name, nor one of {known:?} with =value").into()),
            }
        }
        Ok(args)
    }

    /// The value of `key`, or `default`.
    pub fn value<T: std::str::FromStr>(&self, key: &str, default: T) -> Result<T> {
        match self.values.iter().rfind(|(name, _)| name == key) {
            None => Ok(default),
            Some((_, text)) => text.parse().map_err(|_| format!("{key}={text}: not a number").into()),
        }
    }

    /// Whether this case is to be run: its name has one of the words in it, or there are none.
    pub fn wants(&self, case: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|filter| case.contains(filter.as_str()))
    }
}
