//! Where to connect and as which user.

use std::fmt;
use std::sync::Arc;

use super::super::dial::introduction::Introduction;
use super::super::dial::progress::Stage;
use super::super::dial::progress::{self, DialProgress};
use super::super::dial::{Dial, Stream};
use super::super::failure::Failure;
use super::super::login::LoginSource;
use super::address::Address;
use super::parts::UrlParts;
#[cfg(feature = "tls")]
use super::tls::{Tls, Trust};
use super::{Spelling, invalid};
use crate::error::Result;

/// A server to connect to. It is displayed as `host:port/db`, without user name and password.
pub(in crate::redis) struct Target {
    pub(in crate::redis) address: Address,
    #[cfg(feature = "tls")]
    pub(in crate::redis) tls: Option<Tls>,
    pub(in crate::redis) access: Access,
}

/// How to log in, independent of the server's address.
#[derive(Clone)]
pub(in crate::redis) struct Access {
    #[cfg(feature = "tls")]
    trust: Option<Trust>,
    login: LoginSource,
    introduction: Arc<Introduction>,
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
    /// The access to the servers whose data is used.
    pub(in crate::redis) fn new(parts: &UrlParts, tls: bool, spelling: Spelling) -> Result<Self> {
        let login = match &parts.credentials {
            Some(credentials) => credentials.clone(),
            None => LoginSource::of(&parts.login)?,
        };
        Ok(Self { db: parts.login.db(), ..Self::with(parts, login, tls, spelling)? })
    }

    /// The access to servers that have a login of their own, and no databases.
    pub(in crate::redis) fn with(parts: &UrlParts, login: LoginSource, tls: bool, spelling: Spelling) -> Result<Self> {
        if tls && cfg!(not(feature = "tls")) {
            return Err(invalid("TLS needs bowline's feature `tls`"));
        }
        Ok(Self {
            #[cfg(feature = "tls")]
            trust: if tls { Some(Trust::load(&parts.tls_options)?) } else { None },
            login,
            introduction: Arc::new(Introduction::of(parts.client_name.clone())),
            db: 0,
            spelling,
            purpose: Purpose::Server,
        })
    }

    /// The same login for the nodes of a cluster.
    pub(in crate::redis) fn of_nodes(&self, spelling: Spelling) -> Result<Self> {
        if self.db != 0 {
            return Err(invalid("bowline uses database 0 of a cluster; leave the number out of the URL"));
        }
        Ok(Self { purpose: Purpose::Node, spelling, ..self.clone() })
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

impl Target {
    /// The server of a URL that names one.
    pub(in crate::redis) fn of(parts: &UrlParts) -> Result<Self> {
        Access::new(parts, parts.tls, Spelling::default())?.at(parts.address()?)
    }

    #[cfg(test)]
    pub(in crate::redis) fn parse(url: &str) -> Result<Self> {
        Self::of(&UrlParts::parse(url)?)
    }

    /// Another server with the same user and settings.
    pub(in crate::redis) fn at(&self, host: &str, port: u16) -> Result<Self> {
        self.access.at(Address::Tcp(host.to_owned(), port))
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

    pub(in crate::redis) fn login(&self) -> &LoginSource {
        &self.access.login
    }

    pub(in crate::redis) fn introduction(&self) -> &Introduction {
        &self.access.introduction
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
        progress.enter(Stage::Dial);
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

    /// Goes on with a stream that was [dialled](Self::dial) before, in another attempt.
    pub(in crate::redis) fn resume(&self, stream: Stream, progress: &Arc<DialProgress>) -> Stream {
        progress.spell(self.access.spelling);
        #[cfg(feature = "tls")]
        if self.tls.is_some() {
            progress.enter(Stage::Tls);
        }
        progress.watch(stream)
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
