//! When two servers agree: everything is equal, but for what the clock gave, which may differ by as much as passed
//! between the two.

use std::collections::BTreeMap;
use std::time::Duration;

use bowline::Reply;

#[derive(Clone, Debug)]
pub struct Key {
    pub stored: Stored,
    /// Server ms.
    pub expires: Option<i64>,
}

#[derive(Clone, Debug)]
pub enum Stored {
    String(Vec<u8>),
    List(Vec<Vec<u8>>),
    Hash(BTreeMap<Vec<u8>, Vec<u8>>),
    SortedSet(BTreeMap<Vec<u8>, f64>),
}

/// How far apart the clocks may have been, in any step so far.
#[derive(Debug, Default)]
pub struct Slack(Duration);

type Agreed = Result<(), String>;

fn differ<T: std::fmt::Debug>(what: &str, real: T, embedded: T) -> Agreed {
    Err(format!("{what}\n  real:     {real:?}\n  embedded: {embedded:?}"))
}

impl Slack {
    pub fn widen(&mut self, step: Duration) {
        // The clock and a TTL are not read at the same time.
        self.0 = self.0.max(step + Duration::from_millis(2));
    }

    pub fn outcomes(&self, real: &Result<Reply, String>, embedded: &Result<Reply, String>) -> Agreed {
        let agreed = match (real, embedded) {
            (Ok(real), Ok(embedded)) => self.replies(real, embedded),
            (Err(real), Err(embedded)) => real == embedded,
            _ => false,
        };
        let shown = |outcome: &Result<Reply, String>| match outcome {
            Ok(reply) => show(reply),
            Err(code) => format!("error {code}"),
        };
        if agreed { Ok(()) } else { differ("the replies differ", shown(real), shown(embedded)) }
    }

    /// The real dump took a while, in which its clock and its TTLs were not read at once.
    pub fn dumps(&self, real: &BTreeMap<Vec<u8>, Key>, took: Duration, embedded: &BTreeMap<Vec<u8>, Key>) -> Agreed {
        let expiry_slack = Self(self.0 + took);
        let names = |dump: &BTreeMap<Vec<u8>, Key>| {
            dump.keys().map(|key| String::from_utf8_lossy(key).into_owned()).collect::<Vec<_>>()
        };
        if !real.keys().eq(embedded.keys()) {
            return differ("the keys differ", names(real), names(embedded));
        }
        for (key, real) in real {
            let embedded = &embedded[key];
            let expiry = match (real.expires, embedded.expires) {
                (Some(real), Some(embedded)) => expiry_slack.millis(real, embedded),
                (real, embedded) => real == embedded,
            };
            if !expiry || !self.stored(&real.stored, &embedded.stored) {
                return differ(&format!("{} differs", String::from_utf8_lossy(key)), real, embedded);
            }
        }
        Ok(())
    }

    pub fn messages(&self, real: &[Vec<u8>], embedded: &[Vec<u8>]) -> Agreed {
        if self.lists(real, embedded, |real, embedded| self.words(real, embedded)) {
            return Ok(());
        }
        differ("the messages differ", shown(real), shown(embedded))
    }

    fn replies(&self, real: &Reply, embedded: &Reply) -> bool {
        match (real, embedded) {
            (Reply::Integer(real), Reply::Integer(embedded)) => self.millis(*real, *embedded),
            (Reply::Bytes(real), Reply::Bytes(embedded)) => self.words(real, embedded),
            (Reply::Array(real), Reply::Array(embedded)) => {
                self.lists(real, embedded, |real, embedded| self.replies(real, embedded))
            }
            (real, embedded) => real == embedded,
        }
    }

    fn stored(&self, real: &Stored, embedded: &Stored) -> bool {
        match (real, embedded) {
            (Stored::String(real), Stored::String(embedded)) => self.words(real, embedded),
            (Stored::List(real), Stored::List(embedded)) => {
                self.lists(real, embedded, |real, embedded| self.words(real, embedded))
            }
            (Stored::Hash(real), Stored::Hash(embedded)) => {
                real.keys().eq(embedded.keys()) && real.iter().all(|(field, value)| self.words(value, &embedded[field]))
            }
            (Stored::SortedSet(real), Stored::SortedSet(embedded)) => {
                real.keys().eq(embedded.keys())
                    && real.iter().all(|(member, score)| self.scores(*score, embedded[member]))
            }
            _ => false,
        }
    }

    /// Text in which a token may stand between spaces.
    fn words(&self, real: &[u8], embedded: &[u8]) -> bool {
        let words = |text: &[u8]| text.split(|byte| *byte == b' ').map(<[u8]>::to_vec).collect::<Vec<_>>();
        self.lists(&words(real), &words(embedded), |real, embedded| self.bytes(real, embedded))
    }

    fn lists<T>(&self, real: &[T], embedded: &[T], agree: impl Fn(&T, &T) -> bool) -> bool {
        real.len() == embedded.len() && real.iter().zip(embedded).all(|(real, embedded)| agree(real, embedded))
    }

    /// Counts are equal; only what is as large as a time or a TTL may differ.
    fn millis(&self, real: i64, embedded: i64) -> bool {
        // The script's number does not fit. C leaves the result undefined, and processors differ.
        let overflowed = |number| number == i64::MIN || number == i64::MAX;
        real == embedded
            || overflowed(real) && overflowed(embedded)
            || real.min(embedded) > 1000 && {
                let slack = self.of_size(real.min(embedded) as u128);
                u128::from(real.abs_diff(embedded)) <= slack + doubles_apart(real.max(embedded) as u128)
            }
    }

    fn scores(&self, real: f64, embedded: f64) -> bool {
        let slack = self.0.as_secs_f64() * 1000.0 + doubles_apart(real.max(embedded) as u128) as f64;
        real == embedded || real.min(embedded) > 1e12 && (real - embedded).abs() <= slack
    }

    /// In the unit of a number of this size: tokens count microseconds, and times of rate limiters nanoseconds. Other
    /// times are milliseconds.
    fn of_size(&self, number: u128) -> u128 {
        match number {
            10_000_000_000_000..=1_000_000_000_000_000 => self.0.as_nanos(),
            1_000_000_000_000_001.. => self.0.as_micros(),
            _ => self.0.as_millis(),
        }
    }

    fn bytes(&self, real: &[u8], embedded: &[u8]) -> bool {
        let number = |bytes: &[u8]| std::str::from_utf8(bytes).ok()?.parse::<u128>().ok();
        real == embedded
            || match (number(real), number(embedded)) {
                // A budget may push a token past the range in which doubles represent every integer.
                (Some(real), Some(embedded)) if real.min(embedded) > 1_000_000_000_000 => {
                    real.abs_diff(embedded) <= self.of_size(real.min(embedded)) + doubles_apart(real.max(embedded))
                }
                _ => false,
            }
    }
}

/// How far doubles of that size are apart, if they do not count singly: there both servers round, and times on two
/// sides of a boundary to two neighbours.
fn doubles_apart(number: u128) -> u128 {
    match number >> 53 {
        0 => 0,
        steps => 2 * steps.next_power_of_two(),
    }
}

fn show(reply: &Reply) -> String {
    match reply {
        Reply::Bytes(bytes) => format!("'{}'", bytes.escape_ascii()),
        Reply::Array(items) => format!("[{}]", items.iter().map(show).collect::<Vec<_>>().join(" ")),
        other => format!("{other:?}"),
    }
}

fn shown(messages: &[Vec<u8>]) -> Vec<String> {
    messages.iter().map(|message| String::from_utf8_lossy(message).into_owned()).collect()
}
