//! The options as the feature `serde` reads them. They are never written, because they contain secrets.

use std::fmt;
use std::fs;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::ConnectOptions;
use crate::error::{Error, Result};
use crate::redis::servers::Servers;
use crate::redis::url::invalid;

/// All but the URL may be missing.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    url: Text,
    username: Option<Text>,
    password: Option<Text>,
    password_file: Option<Text>,
    client_name: Option<Text>,
    ca_certificate: Option<Text>,
    ca_certificate_file: Option<Text>,
    client_certificate: Option<Text>,
    client_certificate_file: Option<Text>,
    client_key: Option<Text>,
    client_key_file: Option<Text>,
}

/// Anything but text is an error that does not show the value, which may be a password.
#[derive(Deserialize)]
#[serde(untagged)]
enum Text {
    Text(String),
    Other(IgnoredAny),
}

impl Text {
    fn of(self, field: &str) -> Result<String> {
        match self {
            Self::Text(text) => Ok(text),
            Self::Other(_) => Err(invalid(&format!("{field} must be a text"))),
        }
    }
}

fn text(field: &str, value: Option<Text>) -> Result<Option<String>> {
    value.map(|value| value.of(field)).transpose()
}

/// The value of `field`, or what the file that `field_file` names contains.
fn text_or_file(field: &str, value: Option<Text>, file: Option<Text>) -> Result<Option<String>> {
    let by_file = format!("{field}_file");
    match (text(field, value)?, text(&by_file, file)?) {
        (Some(_), Some(_)) => Err(invalid(&format!("give either {field} or {by_file}"))),
        (None, Some(path)) => match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) => Err(invalid(&format!("{by_file}: cannot read {path:?}: {error}"))),
        },
        (value, None) => Ok(value),
    }
}

impl TryFrom<Form> for ConnectOptions {
    type Error = Error;

    fn try_from(form: Form) -> Result<Self> {
        let mut options = Self::new(form.url.of("url")?);
        if let Some(username) = text("username", form.username)? {
            options = options.username(username);
        }
        let is_in_file = form.password_file.is_some();
        if let Some(password) = text_or_file("password", form.password, form.password_file)? {
            // Editors end a file with a line end.
            options = options.password(if is_in_file { password.trim_end_matches(['\r', '\n']) } else { &password });
        }
        if let Some(name) = text("client_name", form.client_name)? {
            options = options.client_name(name);
        }
        let authorities = text_or_file("ca_certificate", form.ca_certificate, form.ca_certificate_file)?;
        let chain = text_or_file("client_certificate", form.client_certificate, form.client_certificate_file)?;
        let key = text_or_file("client_key", form.client_key, form.client_key_file)?;
        let options = with_certificates(options, authorities, chain, key)?;
        Servers::of(&options.parts()?).map(|_| options)
    }
}

#[cfg(feature = "tls")]
fn with_certificates(
    mut options: ConnectOptions,
    authorities: Option<String>,
    chain: Option<String>,
    key: Option<String>,
) -> Result<ConnectOptions> {
    if let Some(pem) = authorities {
        options = options.ca_certificate(pem);
    }
    match (chain, key) {
        (Some(chain), Some(key)) => Ok(options.client_certificate(chain, key)),
        (None, None) => Ok(options),
        (Some(_), None) => Err(invalid("client_certificate needs client_key")),
        (None, Some(_)) => Err(invalid("client_key needs client_certificate")),
    }
}

#[cfg(not(feature = "tls"))]
fn with_certificates(
    options: ConnectOptions,
    authorities: Option<String>,
    chain: Option<String>,
    key: Option<String>,
) -> Result<ConnectOptions> {
    match authorities.or(chain).or(key) {
        Some(_) => Err(invalid("certificates need the feature `tls`")),
        None => Ok(options),
    }
}

/// From a URL as text, or from a table: see the docs of [`ConnectOptions`].
impl<'de> Deserialize<'de> for ConnectOptions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_any(UrlOrTable)
    }
}

struct UrlOrTable;

impl<'de> Visitor<'de> for UrlOrTable {
    type Value = ConnectOptions;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the URL of a server, or a table with `url`")
    }

    fn visit_str<E: serde::de::Error>(self, url: &str) -> std::result::Result<ConnectOptions, E> {
        url.parse().map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> std::result::Result<ConnectOptions, A::Error> {
        let form = Form::deserialize(MapAccessDeserializer::new(table))?;
        form.try_into().map_err(A::Error::custom)
    }
}

#[cfg(test)]
mod tests;
