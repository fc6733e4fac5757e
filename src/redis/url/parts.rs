//! A URL, taken apart once for all kinds of servers.
//!
//! No part of the URL appears in an error: a password with a stray `/`, `?`, `#` or `@` shifts the borders of all other
//! parts.

use std::sync::Arc;

use ::redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo};
use url::{ParseError, Url};

use super::super::address_map::AddressMap;
use super::super::login::LoginSource;
use super::address::Address;
use super::form::Form;
use super::invalid;
use super::parameters::Parameters;
#[cfg(feature = "tls")]
use super::tls::TlsOptions;
use crate::error::{Error, Result};

pub(in crate::redis) struct UrlParts {
    pub(in crate::redis) form: Form,
    /// Whether the scheme asks for TLS.
    pub(in crate::redis) tls: bool,
    /// At least one, and each once.
    pub(in crate::redis) addresses: Vec<Address>,
    /// The user and the database.
    pub(in crate::redis) login: RedisConnectionInfo,
    pub(in crate::redis) parameters: Parameters,
    // The rest is of the user's options: a URL has none of it.
    /// Instead of the user in `login`.
    pub(in crate::redis) credentials: Option<LoginSource>,
    pub(in crate::redis) client_name: Option<Arc<str>>,
    pub(in crate::redis) announced: AddressMap,
    #[cfg(feature = "tls")]
    pub(in crate::redis) tls_options: TlsOptions,
}

impl UrlParts {
    pub(in crate::redis) fn parse(url: &str) -> Result<Self> {
        let (url, fragment) = url.split_once('#').map_or((url, None), |(url, fragment)| (url, Some(fragment)));
        match fragment {
            None => {}
            Some("insecure") => return Err(invalid("#insecure is not supported: certificates are always verified")),
            Some(_) => return Err(invalid("a URL has no #fragment; write # in a password as %23")),
        }
        let (scheme, rest) = url.split_once("://").ok_or_else(not_a_url)?;
        let (form, tls) = Form::of_scheme(&scheme.to_ascii_lowercase()).ok_or_else(not_a_url)?;
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let parameters = Parameters::parse(query, form)?;
        let (mut addresses, mut login) = (Vec::new(), RedisConnectionInfo::default());
        for url in one_for_each_host(form, place, query)? {
            let info = info(&url, form)?;
            let address = address(&info)?;
            if !addresses.contains(&address) {
                addresses.push(address);
            }
            login = info.redis_settings().clone();
        }
        Ok(Self {
            form,
            tls,
            addresses,
            login,
            parameters,
            credentials: None,
            client_name: None,
            announced: AddressMap::default(),
            #[cfg(feature = "tls")]
            tls_options: TlsOptions::default(),
        })
    }

    /// Whether the servers are asked for TLS.
    pub(in crate::redis) fn has_tls(&self) -> bool {
        self.parameters.tls.unwrap_or(self.tls)
    }

    pub(in crate::redis) fn has_sentinel_tls(&self) -> bool {
        self.parameters.sentinel_tls.unwrap_or(self.tls)
    }

    /// The only address of a URL that names one server.
    pub(super) fn address(&self) -> Result<Address> {
        match &self.addresses[..] {
            [address] => Ok(address.clone()),
            _ => Err(invalid("several hosts are those of a redis-cluster:// or a redis-sentinel:// URL")),
        }
    }
}

/// A URL for each host, with the same user and path: the syntax of URLs has one host.
fn one_for_each_host(form: Form, place: &str, query: &str) -> Result<Vec<String>> {
    if form == Form::Socket {
        return Ok(vec![format!("unix://{place}?{query}")]);
    }
    let (authority, path) = place.split_at(place.find('/').unwrap_or(place.len()));
    let (user, hosts) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
    if form != Form::Server && user.trim_end_matches('@').contains('@') {
        return Err(invalid("all hosts have one user, which stands before the first; write @ in a password as %40"));
    }
    // redis-rs refuses the scheme of TLS unless its own TLS is built in, which this crate does not use.
    Ok(hosts.split(',').map(|host| format!("redis://{user}{}{path}", host.trim())).collect())
}

fn info(url: &str, form: Form) -> Result<ConnectionInfo> {
    let mut url = Url::parse(url).map_err(|error| {
        invalid(match error {
            ParseError::EmptyHost => form.without_host(),
            ParseError::InvalidPort => PORT,
            ParseError::InvalidIpv6Address => "the brackets of a host must contain an IPv6 address",
            _ => NOT_A_HOST,
        })
    })?;
    if form != Form::Socket {
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(|| invalid(form.without_host()))?;
        if !host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']')) {
            return Err(invalid(NOT_A_HOST));
        }
        match url.port() {
            Some(0) => return Err(invalid(PORT)),
            Some(_) => {}
            None => url.set_port(Some(form.default_port())).map_err(|()| invalid(form.without_host()))?,
        }
    }
    let info = url.into_connection_info().map_err(|error| invalid(&error.to_string()))?;
    if info.redis_settings().db() < 0 {
        return Err(invalid("the number of a database is not negative"));
    }
    Ok(info)
}

const NOT_A_HOST: &str = "a host is not a name or an address; write special characters in a password as %..";
const PORT: &str = "a port is not a number from 1 to 65535; an IPv6 address stands in [brackets]";

fn address(info: &ConnectionInfo) -> Result<Address> {
    match info.addr() {
        ConnectionAddr::Tcp(host, port) => Ok(Address::Tcp(host.clone(), *port)),
        #[cfg(unix)]
        ConnectionAddr::Unix(path) => Ok(Address::Unix(path.clone())),
        _ => Err(invalid("not a usable address")),
    }
}

fn not_a_url() -> Error {
    invalid(
        "not a URL of the form redis://user:password@host:port/db, rediss://.., unix://.., redis-sentinel://.. or \
         redis-cluster://..",
    )
}

#[cfg(test)]
mod tests;
