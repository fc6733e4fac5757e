//! `redis-sentinel://user:password@h1:26379,h2:26379/0?master=mymaster`, taken apart once.
//!
//! No part of the URL appears in an error: a password with a stray `/`, `?` or `@` shifts the borders of all other
//! parts.

use std::net::Ipv6Addr;

use ::redis::RedisConnectionInfo;
use percent_encoding::percent_decode_str;

use super::super::url::Spelling;
use super::super::url::target::{Access, Address, Target, invalid};
use crate::error::Result;

/// The parts of the URL.
pub(super) struct SentinelConfig {
    /// The sentinels, at least one.
    pub(super) sentinels: Vec<Target>,
    /// The name under which the sentinels watch the master.
    pub(super) master: String,
    /// How to log in to the servers.
    pub(super) servers: Access,
}

/// The default port of sentinels.
const PORT: u16 = 26379;

const OF_SENTINELS: Spelling = Spelling { plain: "sentinel_tls=false", tls: "sentinel_tls=true" };
const OF_SERVERS: Spelling = Spelling { plain: "tls=false", tls: "tls=true" };

/// Whether the scheme of the URL is that of sentinels.
pub(in super::super) fn is_of_sentinels(url: &str) -> bool {
    scheme(url).is_some_and(|(scheme, _)| tls_by_scheme(&scheme).is_some())
}

fn scheme(url: &str) -> Option<(String, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    Some((scheme.to_ascii_lowercase(), rest))
}

fn tls_by_scheme(scheme: &str) -> Option<bool> {
    match scheme {
        "redis-sentinel" | "valkey-sentinel" => Some(false),
        "rediss-sentinel" | "valkeys-sentinel" => Some(true),
        _ => None,
    }
}

impl SentinelConfig {
    pub(super) fn parse(url: &str) -> Result<Self> {
        const FORM: &str = "not a URL of the form redis-sentinel://user:password@host:port,host:port/db?master=name, or rediss-sentinel://..";
        let (scheme, rest) = scheme(url).ok_or_else(|| invalid(FORM))?;
        let tls = tls_by_scheme(&scheme).ok_or_else(|| invalid(FORM))?;
        if rest.contains('#') {
            return Err(invalid("a URL has no #fragment; write # as %23"));
        }
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (userinfo, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
        let query = Query::parse(query)?;
        let sentinel = credentials(query.sentinel_user, query.sentinel_password);
        let sentinel = Access::new(&sentinel, query.sentinel_tls.unwrap_or(tls), OF_SENTINELS)?;
        let login = user(userinfo)?.set_db(database(path)?);
        Ok(Self {
            sentinels: addresses(hosts)?.into_iter().map(|address| sentinel.at(address)).collect::<Result<_>>()?,
            master: query.master.filter(|name| !name.is_empty()).ok_or_else(|| {
                invalid("the name of the master is missing: add ?master= with the name in `sentinel monitor <name>`")
            })?,
            servers: Access::new(&login, query.tls.unwrap_or(tls), OF_SERVERS)?,
        })
    }
}

#[derive(Default)]
struct Query {
    master: Option<String>,
    sentinel_user: Option<String>,
    sentinel_password: Option<String>,
    tls: Option<bool>,
    sentinel_tls: Option<bool>,
}

impl Query {
    fn parse(query: &str) -> Result<Self> {
        let mut parsed = Self::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decoded(value)?;
            let twice = match name {
                "master" => parsed.master.replace(value).is_some(),
                "sentinel_user" => parsed.sentinel_user.replace(value).is_some(),
                "sentinel_password" => parsed.sentinel_password.replace(value).is_some(),
                "tls" => parsed.tls.replace(yes_or_no(&value)?).is_some(),
                "sentinel_tls" => parsed.sentinel_tls.replace(yes_or_no(&value)?).is_some(),
                "protocol" if matches!(&*value, "3" | "resp3") => false,
                "protocol" => return Err(invalid("the only protocol is resp3")),
                _ => {
                    return Err(invalid(
                        "unknown parameter after the ?; there are master, sentinel_user, sentinel_password, tls and \
                         sentinel_tls, and ? in a password is written as %3F, & as %26",
                    ));
                }
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

fn user(userinfo: &str) -> Result<RedisConnectionInfo> {
    if userinfo.contains('@') {
        return Err(invalid("write @ in a password as %40"));
    }
    let (user, password) = match userinfo.split_once(':') {
        Some((user, password)) => (user, Some(decoded(password)?)),
        None => (userinfo, None),
    };
    Ok(credentials(Some(decoded(user)?), password))
}

fn credentials(user: Option<String>, password: Option<String>) -> RedisConnectionInfo {
    let mut login = RedisConnectionInfo::default();
    if let Some(user) = user.filter(|user| !user.is_empty()) {
        login = login.set_username(user);
    }
    if let Some(password) = password.filter(|password| !password.is_empty()) {
        login = login.set_password(password);
    }
    login
}

fn database(path: &str) -> Result<i64> {
    if path.is_empty() {
        return Ok(0);
    }
    path.parse::<u32>()
        .map(i64::from)
        .map_err(|_| invalid("after the hosts comes the number of the database, such as /0"))
}

fn addresses(hosts: &str) -> Result<Vec<Address>> {
    let mut addresses = Vec::new();
    for host in hosts.split(',') {
        let address = address(host)?;
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    Ok(addresses)
}

/// `host`, `host:port`, `[address]` or `[address]:port`.
fn address(text: &str) -> Result<Address> {
    let (host, port) = match text.strip_prefix('[') {
        Some(bracketed) => {
            let (host, port) = bracketed.split_once(']').ok_or_else(|| invalid("a host has a [ without its ]"))?;
            host.parse::<Ipv6Addr>().map_err(|_| invalid("the brackets of a host must contain an IPv6 address"))?;
            match port {
                "" => (host, None),
                port => (
                    host,
                    Some(port.strip_prefix(':').ok_or_else(|| invalid("only :port may follow a closing bracket"))?),
                ),
            }
        }
        None => {
            let (host, port) = text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
            if host.is_empty() {
                return Err(invalid("a host is missing: name the sentinels as host:port,host:port"));
            }
            if !host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_')) {
                return Err(invalid(
                    "a host is not a name or an address; write special characters in a password as %..",
                ));
            }
            (host, port)
        }
    };
    let port = match port.map(str::parse::<u16>) {
        None => PORT,
        Some(Ok(port @ 1..)) => port,
        Some(_) => return Err(invalid("a port is not a number from 1 to 65535; an IPv6 address stands in [brackets]")),
    };
    Ok(Address::Tcp(host.to_owned(), port))
}

fn decoded(text: &str) -> Result<String> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(Into::into).map_err(|_| invalid("the percent-encoded text is not UTF-8"))
}

#[cfg(test)]
mod tests;
