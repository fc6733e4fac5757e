//! What a URL and its options lead to.

use std::fmt;

use super::cluster::Seeds;
use super::sentinel::SentinelConfig;
use super::url::form::Form;
use super::url::parts::UrlParts;
use super::url::target::Target;
use crate::error::Result;

pub(super) enum Servers {
    One(Target),
    Sentinels(SentinelConfig),
    Cluster(Seeds),
}

impl Servers {
    pub(super) fn of(parts: &UrlParts) -> Result<Self> {
        Ok(match parts.form {
            Form::Server | Form::Socket => Self::One(Target::of(parts)?),
            Form::Sentinels => Self::Sentinels(SentinelConfig::of(parts)?),
            Form::Cluster => Self::Cluster(Seeds::named(parts)?),
        })
    }
}

/// Shows the addresses, without credentials.
impl fmt::Display for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(target) => target.fmt(f),
            Self::Sentinels(sentinels) => sentinels.fmt(f),
            Self::Cluster(seeds) => seeds.fmt(f),
        }
    }
}
