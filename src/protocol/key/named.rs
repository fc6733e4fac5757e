//! A name and its keys: what calls, retries and errors need to know of a resource, whatever its kind.

use std::sync::Arc;

use super::encode;
use crate::error::Result;
use crate::protocol::slot;

/// A name and its keys.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) name: Arc<str>,
    /// All keys in one string, in the order of `KEYS` in the scripts. One allocation per name matters because a client
    /// may wait for very many names.
    spelled: Box<str>,
    main: usize,
}

impl Named {
    pub(super) fn new(name: &str, main: &str, suffixes: &[&str]) -> Self {
        let mut spelled = String::new();
        for suffix in suffixes {
            spelled.push_str(main);
            spelled.push_str(suffix);
        }
        Self { name: name.into(), spelled: spelled.into(), main: main.len() }
    }

    /// A rate limiter, which has one key.
    pub(crate) fn limiter(prefix: &str, name: &str) -> Result<Self> {
        Ok(Self::new(name, &format!("{prefix}:rate:{{{}}}:tat", encode(name)?), &[""]))
    }

    /// The main key: it stores the holder, the count of a latch, or the state of a rate limiter.
    pub(crate) fn main(&self) -> &str {
        self.spelled.get(..self.main).unwrap_or_default()
    }

    /// The slot of the keys in a cluster.
    pub(crate) fn slot(&self) -> u16 {
        slot::of(self.main())
    }

    /// All keys, which have these suffixes.
    pub(super) fn keys(&self, suffixes: &'static [&'static str]) -> impl Iterator<Item = &str> {
        let mut rest = &*self.spelled;
        suffixes.iter().map(move |suffix| {
            let (key, behind) = rest.split_at_checked(self.main + suffix.len()).unwrap_or_default();
            rest = behind;
            key
        })
    }
}
