//! The settings as the feature `serde` writes and reads them.

use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

use super::Config;
use crate::duration_text;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Form {
    prefix: String,
    #[serde(serialize_with = "duration_text::serialize", deserialize_with = "lease")]
    lease: Duration,
    #[serde(serialize_with = "duration_text::serialize", deserialize_with = "command_timeout")]
    command_timeout: Duration,
    #[serde(serialize_with = "duration_text::serialize", deserialize_with = "retry_timeout")]
    retry_timeout: Duration,
    #[serde(serialize_with = "duration_text::serialize", deserialize_with = "handoff_time")]
    handoff_time: Duration,
    #[serde(serialize_with = "duration_text::serialize", deserialize_with = "shutdown_timeout")]
    shutdown_timeout: Duration,
    acknowledged_by: u32,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "client_id")]
    client_id: Option<Uuid>,
    #[serde(skip_serializing_if = "String::is_empty")]
    label: String,
    connect_in_background: bool,
    names_in_metrics: bool,
}

/// How the duration of the field of this name is read.
macro_rules! durations {
    ($($field:ident)*) => {$(
        fn $field<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
            duration_text::named(stringify!($field), deserializer)
        }
    )*};
}

durations!(lease command_timeout retry_timeout handoff_time shutdown_timeout);

/// From a text, because not every format says which field is wrong.
fn client_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Uuid>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(|error| D::Error::custom(format_args!("client_id {text:?} is not a UUID: {error}")))
}

impl From<&Config> for Form {
    fn from(config: &Config) -> Self {
        // All of them, so that a new setting does not compile before it is a field of the form.
        let Config {
            prefix,
            lease,
            command_timeout,
            retry_timeout,
            handoff_time,
            shutdown_timeout,
            replicas,
            client_id,
            label,
            is_in_background,
            names_in_metrics,
        } = config.clone();
        Self {
            prefix,
            lease,
            command_timeout,
            retry_timeout,
            handoff_time,
            shutdown_timeout,
            acknowledged_by: replicas,
            client_id,
            label: label.to_string(),
            connect_in_background: is_in_background,
            names_in_metrics,
        }
    }
}

impl Default for Form {
    fn default() -> Self {
        Self::from(&Config::default())
    }
}

impl Serialize for Config {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Form::from(self).serialize(serializer)
    }
}

/// Settings that are not there have their defaults. All are checked as by [`build`](super::ConfigBuilder::build), and
/// the error is its text.
impl<'de> Deserialize<'de> for Config {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let form = Form::deserialize(deserializer)?;
        let builder = Self::builder()
            .prefix(form.prefix)
            .lease(form.lease)
            .command_timeout(form.command_timeout)
            .retry_timeout(form.retry_timeout)
            .handoff_time(form.handoff_time)
            .shutdown_timeout(form.shutdown_timeout)
            .acknowledged_by(form.acknowledged_by)
            .client_id(form.client_id.unwrap_or_default())
            .label(form.label)
            .connect_in_background(form.connect_in_background)
            .names_in_metrics(form.names_in_metrics);
        builder.build().map_err(D::Error::custom)
    }
}
