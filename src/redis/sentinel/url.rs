//! What a URL such as `redis-sentinel://user:password@h1:26379,h2:26379/0?master=mymaster` says.

use std::fmt;

use ::redis::RedisConnectionInfo;

use super::super::address_map::AddressMap;
use super::super::login::LoginSource;
use super::super::url::parts::UrlParts;
use super::super::url::target::{Access, Target};
use super::super::url::{Spelling, invalid};
use crate::error::Result;

/// A master that sentinels watch.
pub(in super::super) struct SentinelConfig {
    /// The sentinels, at least one.
    pub(super) sentinels: Vec<Target>,
    /// The name under which the sentinels watch the master.
    pub(super) master: String,
    /// How to log in to the servers.
    pub(super) servers: Access,
    /// Where the servers and sentinels that a sentinel names are reached.
    pub(super) announced: AddressMap,
}

const OF_SENTINELS: Spelling = Spelling { plain: "sentinel_tls=false", tls: "sentinel_tls=true" };
const OF_SERVERS: Spelling = Spelling { plain: "tls=false", tls: "tls=true" };

impl SentinelConfig {
    pub(in super::super) fn of(parts: &UrlParts) -> Result<Self> {
        let parameters = &parts.parameters;
        let login = credentials(parameters.sentinel_user.as_ref(), parameters.sentinel_password.as_ref());
        let access = Access::with(parts, LoginSource::of(&login)?, parts.has_sentinel_tls(), OF_SENTINELS)?;
        Ok(Self {
            sentinels: parts.addresses.iter().map(|address| access.at(address.clone())).collect::<Result<_>>()?,
            master: parameters.master.clone().filter(|name| !name.is_empty()).ok_or_else(|| {
                invalid("the name of the master is missing: add ?master= with the name in `sentinel monitor <name>`")
            })?,
            servers: Access::new(parts, parts.has_tls(), OF_SERVERS)?,
            announced: parts.announced.clone(),
        })
    }

    pub(super) fn parse(url: &str) -> Result<Self> {
        Self::of(&UrlParts::parse(url)?)
    }
}

/// Shows no credentials.
impl fmt::Display for SentinelConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "master {} of the sentinels ", self.master)?;
        for (n, sentinel) in self.sentinels.iter().enumerate() {
            write!(f, "{}{}", if n == 0 { "" } else { ", " }, sentinel.address)?;
        }
        Ok(())
    }
}

fn credentials(user: Option<&String>, password: Option<&String>) -> RedisConnectionInfo {
    let mut login = RedisConnectionInfo::default();
    if let Some(user) = user.filter(|user| !user.is_empty()) {
        login = login.set_username(user);
    }
    if let Some(password) = password.filter(|password| !password.is_empty()) {
        login = login.set_password(password);
    }
    login
}

#[cfg(test)]
mod tests;
