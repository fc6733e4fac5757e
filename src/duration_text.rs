//! Durations as text, such as `1m 30s`: how the feature `serde` writes and reads them.

use std::fmt;
use std::time::Duration;

use serde::de::{Error, Visitor};
use serde::{Deserializer, Serializer};

pub(crate) mod optional;

pub(crate) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&humantime::format_duration(*duration))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    named("the duration", deserializer)
}

/// Reads the duration of the field `name`, which errors name, because not every format does.
pub(crate) fn named<'de, D: Deserializer<'de>>(name: &'static str, deserializer: D) -> Result<Duration, D::Error> {
    deserializer.deserialize_str(Text { name })
}

struct Text {
    name: &'static str,
}

impl Visitor<'_> for Text {
    type Value = Duration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} as text with its unit, such as \"30s\" or \"1m 30s\"", self.name)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Duration, E> {
        humantime::parse_duration(text).map_err(|error| E::custom(format_args!("{text:?} is not {self}: {error}")))
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.expecting(f)
    }
}
