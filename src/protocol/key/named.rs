//! A name and its keys: what calls, retries and errors need to know of a resource, whatever its kind.

use std::sync::Arc;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use crate::error::{Error, ErrorKind, Result};
use crate::protocol::slot;

/// The longest name in bytes, before encoding.
pub(super) const MAX_NAME: usize = 512;

/// The suffixes of the keys of labels.
const LABELS: [&str; 2] = ["", ":leases"];

/// The word in the key of a rate limiter, and the end of that key.
pub(in crate::protocol) const LIMITER: (&str, &str) = ("rate", ":tat");

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
    pub(super) fn new<'a>(name: &str, main: &str, suffixes: impl Iterator<Item = &'a &'static str> + Clone) -> Self {
        let mut spelled = String::with_capacity(suffixes.clone().map(|suffix| main.len() + suffix.len()).sum());
        for suffix in suffixes {
            spelled.push_str(main);
            spelled.push_str(suffix);
        }
        Self { name: name.into(), spelled: spelled.into(), main: main.len() }
    }

    /// A rate limiter, which has one key.
    pub(crate) fn limiter(prefix: &str, name: &str) -> Result<Self> {
        let (word, ending) = LIMITER;
        Ok(Self::new(name, &format!("{prefix}:{word}:{{{}}}{ending}", encode(name)?), [""].iter()))
    }

    /// A key in this slot, by which a server is found whose names are listed. Nothing is stored there.
    pub(crate) fn listing(prefix: &str, slot: u16) -> Self {
        Self::new("", &format!("{prefix}:names:{{{}}}", slot::tag(slot)), [""].iter())
    }

    /// Where the labels of clients are stored.
    pub(crate) fn labels(prefix: &str) -> Self {
        Self::new("labels", &format!("{prefix}:client:{{labels}}"), LABELS.iter())
    }

    /// The keys of [`labels`](Self::labels).
    pub(in crate::protocol) fn of_labels(&self) -> impl Iterator<Item = &str> {
        self.keys(LABELS.iter())
    }

    /// The main key: it stores the holder, the count of a latch, or the state of a rate limiter.
    pub(crate) fn main(&self) -> &str {
        self.spelled.get(..self.main).unwrap_or_default()
    }

    /// The slot of the keys in a cluster.
    pub(crate) fn slot(&self) -> u16 {
        slot::of(self.main())
    }

    /// The first keys, which have these suffixes.
    pub(super) fn keys<'a>(
        &'a self,
        suffixes: impl Iterator<Item = &'a &'static str>,
    ) -> impl Iterator<Item = &'a str> {
        let mut rest = &*self.spelled;
        suffixes.map(move |suffix| {
            let (key, behind) = rest.split_at_checked(self.main + suffix.len()).unwrap_or_default();
            rest = behind;
            key
        })
    }
}

/// The characters that are escaped with a `%`. Braces would end the hash tag, and control characters would garble an
/// operator's screen.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'{').add(b'}').add(b'%');

/// Encodes a name for use between the braces.
pub(super) fn encode(name: &str) -> Result<String> {
    check_length(name)?;
    encode_start(name)
}

/// A name has 1 to [`MAX_NAME`] bytes.
pub(super) fn check_length(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(invalid("the name is empty"));
    }
    check_longest(name)
}

fn check_longest(name: &str) -> Result<()> {
    if name.len() > MAX_NAME {
        return Err(invalid(format!("the name has {} bytes, more than {MAX_NAME}", name.len())));
    }
    Ok(())
}

/// Encodes the beginning of a name, which may be empty. Characters outside ASCII are kept, although URLs would escape
/// them.
pub(crate) fn encode_start(name: &str) -> Result<String> {
    check_longest(name)?;
    let mut encoded = String::with_capacity(name.len());
    for part in name.split_inclusive(|c: char| !c.is_ascii()) {
        let ascii = part.trim_end_matches(|c: char| !c.is_ascii());
        encoded.extend(utf8_percent_encode(ascii, ESCAPED));
        encoded.push_str(&part[ascii.len()..]);
    }
    Ok(encoded)
}

/// The name that is encoded like this. `None`: bowline does not encode any name like this.
pub(crate) fn decode(encoded: &str) -> Option<String> {
    let name = percent_decode_str(encoded).decode_utf8().ok()?.into_owned();
    (encode(&name).ok()? == encoded).then_some(name)
}

pub(super) fn invalid(reason: impl Into<String>) -> Error {
    Error::because(ErrorKind::InvalidInput, "name", reason)
}
