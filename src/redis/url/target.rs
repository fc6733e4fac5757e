//! Where to connect and as which user, read once from a URL.

use std::fmt;
#[cfg(unix)]
use std::path::PathBuf;
use std::sync::Arc;

use ::redis::{ConnectionAddr, IntoConnectionInfo, ProtocolVersion, RedisConnectionInfo};

#[cfg(feature = "tls")]
use super::super::dial::progress::Stage;
use super::super::dial::progress::{self, DialProgress};
use super::super::dial::{Dial, Stream};
use super::super::failure::Failure;
use super::Spelling;
#[cfg(feature = "tls")]
use super::tls::{Tls, Trust};
use crate::error::{Error, ErrorKind, Result};

/// A server to connect to. It is displayed as `host:port/db`, without user name and password.
pub(in crate::redis) struct Target {
    pub(in crate::redis) address: Address,
    #[cfg(feature = "tls")]
    pub(in crate::redis) tls: Option<Tls>,
    access: Access,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::redis) enum Address {
    Tcp(String, u16),
    #[cfg(unix)]
    Unix(PathBuf),
}

/// How to log in, independent of the server's address.
#[derive(Clone)]
pub(in crate::redis) struct Access {
    #[cfg(feature = "tls")]
    trust: Option<Trust>,
    /// The credentials for `HELLO 3`. The database is left out, because a separate `SELECT` gives clearer errors.
    login: RedisConnectionInfo,
    db: i64,
    spelling: Spelling,
    purpose: Purpose,
}

/// What a server is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::redis) enum Purpose {
    /// A primary, or a server of its own, that accepts writes.
    Server,
    /// A node of a cluster in any role: a replica knows the master of each slot, too.
    Node,
}

impl Access {
    pub(in crate::redis) fn new(login: &RedisConnectionInfo, tls: bool, spelling: Spelling) -> Result<Self> {
        if login.username().is_some() && login.password().is_none() {
            // redis-rs would leave the login out, and the connection would be that of the default user.
            return Err(invalid("a user name needs a password"));
        }
        if tls && cfg!(not(feature = "tls")) {
            return Err(invalid("TLS needs bowline's feature `tls`"));
        }
        let db = login.db();
        // `CLIENT SETINFO` is left out, because a user without the right would leave an entry in the ACL log at each
        // connect.
        let login = login.clone().set_protocol(ProtocolVersion::RESP3).set_db(0).set_skip_set_lib_name();
        Ok(Self {
            #[cfg(feature = "tls")]
            trust: if tls { Some(Trust::load()?) } else { None },
            login,
            db,
            spelling,
            purpose: Purpose::Server,
        })
    }

    /// The server at this address, with the same access.
    pub(in crate::redis) fn at(&self, address: Address) -> Result<Target> {
        Ok(Target {
            #[cfg(feature = "tls")]
            tls: match (&self.trust, &address) {
                (Some(trust), Address::Tcp(host, _)) => Some(trust.of(host)?),
                _ => None,
            },
            address,
            access: self.clone(),
        })
    }
}

/// The error for a text that is not a URL, or a URL whose password has a character that ends the host.
fn not_a_url(url: &str) -> Error {
    let form = "not a URL of the form redis://user:password@host:port/db, rediss://.. or unix://..";
    match url.contains('#') {
        true => invalid(&format!("{form}; write # in a password as %23")),
        false => invalid(form),
    }
}

impl Target {
    /// Reads a URL. No part of it appears in an error, because after a stray `/`, `?` or `#` in a password any part
    /// could contain the rest of the password.
    pub(in crate::redis) fn parse(url: &str) -> Result<Self> {
        let mut url = ::redis::parse_redis_url(url).ok_or_else(|| not_a_url(url))?;
        if url.host_str().is_none_or(str::is_empty) && !url.scheme().ends_with("unix") {
            return Err(invalid("the URL has no host; for a Unix socket write unix:///path"));
        }
        match url.fragment() {
            None => {}
            Some("insecure") => return Err(invalid("#insecure is not supported: certificates are always verified")),
            Some(_) => return Err(invalid("a URL has no #fragment; write # as %23")),
        }
        let unix = url.scheme().ends_with("unix");
        for (name, value) in url.query_pairs() {
            match &*name {
                "protocol" if matches!(&*value, "3" | "resp3") => {}
                "protocol" => return Err(invalid("the only protocol is resp3")),
                "db" | "user" | "pass" if unix => {}
                _ => {
                    return Err(invalid(
                        "unknown parameter after the ?; there are protocol, and db, user and pass of a unix:// URL; time limits \
                         are set by Config; write ? in a password as %3F",
                    ));
                }
            }
        }
        let tls = matches!(url.scheme(), "rediss" | "valkeys");
        if tls {
            // redis-rs refuses the TLS scheme unless its own TLS is built in, which this crate does not use.
            url.set_scheme("redis").map_err(|()| invalid("not a usable scheme"))?;
        }
        let info = url.into_connection_info().map_err(|error| invalid(&error.to_string()))?;
        let address = match info.addr() {
            ConnectionAddr::Tcp(host, port) => Address::Tcp(host.clone(), *port),
            #[cfg(unix)]
            ConnectionAddr::Unix(path) => Address::Unix(path.clone()),
            _ => return Err(invalid("not a usable address")),
        };
        Access::new(info.redis_settings(), tls, Spelling::default())?.at(address)
    }

    /// Another server with the same user and settings.
    pub(in crate::redis) fn at(&self, host: &str, port: u16) -> Result<Self> {
        self.access.at(Address::Tcp(host.to_owned(), port))
    }

    /// How to log in to the nodes of the cluster that this server belongs to.
    pub(in crate::redis) fn access_to_nodes(&self, spelling: Spelling) -> Access {
        Access { purpose: Purpose::Node, spelling, ..self.access.clone() }
    }

    /// Whether the server is asked for TLS.
    pub(in crate::redis) fn is_tls(&self) -> bool {
        #[cfg(feature = "tls")]
        return self.tls.is_some();
        #[cfg(not(feature = "tls"))]
        false
    }

    pub(in crate::redis) fn purpose(&self) -> Purpose {
        self.access.purpose
    }

    /// The credentials, without the database.
    pub(in crate::redis) fn login(&self) -> &RedisConnectionInfo {
        &self.access.login
    }

    pub(in crate::redis) fn db(&self) -> i64 {
        self.access.db
    }

    /// Opens a stream to the server, with TLS if needed.
    pub(in crate::redis) async fn dial(
        &self,
        dialer: &dyn Dial,
        progress: &Arc<DialProgress>,
    ) -> Result<Stream, Failure> {
        progress.spell(self.access.spelling);
        let dialled = match &self.address {
            Address::Tcp(host, port) => dialer.tcp(host, *port).await,
            #[cfg(unix)]
            Address::Unix(path) => dialer.unix(path).await,
        };
        let stream = dialled.map_err(progress::dial_failure)?;
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            progress.enter(Stage::Tls);
            return Ok(progress.watch(tls.wrap(stream, self.access.spelling).await?));
        }
        Ok(progress.watch(stream))
    }

    /// Removes the password from `text`, in case the server quoted the login.
    pub(in crate::redis) fn redact(&self, text: &str) -> String {
        match self.access.login.password() {
            Some(password) if !password.is_empty() => text.replace(password, "***"),
            _ => text.to_owned(),
        }
    }
}

pub(in crate::redis) fn invalid(reason: &str) -> Error {
    Error::because(ErrorKind::InvalidInput, "connect", reason)
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
            #[cfg(unix)]
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.access.db)
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests;
