//! What stands after the `?` of a URL.

use std::collections::HashSet;

use percent_encoding::percent_decode_str;

use super::form::Form;
use super::invalid;
use crate::error::Result;

#[derive(Default)]
pub(in crate::redis) struct Parameters {
    pub(in crate::redis) master: Option<String>,
    pub(in crate::redis) sentinel_user: Option<String>,
    pub(in crate::redis) sentinel_password: Option<String>,
    pub(in crate::redis) tls: Option<bool>,
    pub(in crate::redis) sentinel_tls: Option<bool>,
}

const UNKNOWN: &str = "unknown parameter after the ?; there are protocol, and db, user and pass of a unix:// URL, and \
    master, sentinel_user, sentinel_password, tls and sentinel_tls of a redis-sentinel:// URL; time limits are set by \
    Config; write ? in a password as %3F, & as %26";

impl Parameters {
    pub(super) fn parse(query: &str, form: Form) -> Result<Self> {
        let mut parsed = Self::default();
        // redis-rs reads these, and of two it takes the last.
        let mut of_socket = HashSet::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = percent_decode_str(value).decode_utf8();
            let value = value.map_err(|_| invalid("the percent-encoded text is not UTF-8"))?;
            let twice = match (name, form) {
                ("protocol", _) if matches!(&*value, "3" | "resp3") => false,
                ("protocol", _) => return Err(invalid("the only protocol is resp3")),
                ("db" | "user" | "pass", Form::Socket) => !of_socket.insert(name),
                ("master", Form::Sentinels) => parsed.master.replace(value.into()).is_some(),
                ("sentinel_user", Form::Sentinels) => parsed.sentinel_user.replace(value.into()).is_some(),
                ("sentinel_password", Form::Sentinels) => parsed.sentinel_password.replace(value.into()).is_some(),
                ("tls", Form::Sentinels) => parsed.tls.replace(yes_or_no(&value)?).is_some(),
                ("sentinel_tls", Form::Sentinels) => parsed.sentinel_tls.replace(yes_or_no(&value)?).is_some(),
                _ => return Err(invalid(UNKNOWN)),
            };
            if twice {
                return Err(invalid("a parameter after the ? is there twice; write & in a password as %26"));
            }
        }
        Ok(parsed)
    }
}

fn yes_or_no(value: &str) -> Result<bool> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(invalid("tls and sentinel_tls are true or false")),
    }
}
