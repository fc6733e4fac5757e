//! Where to connect, and what a URL cannot say about it.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

#[cfg(feature = "tls")]
use tokio_rustls::rustls::ClientConfig;

use super::address_map::AddressMap;
use super::dial::introduction::check_name;
use super::login::{Credentials, LoginSource};
use super::sentinel::SentinelUrl;
use super::servers::Servers;
use super::url::invalid;
use super::url::parts::UrlParts;
#[cfg(feature = "tls")]
use super::url::tls::TlsOptions;
use crate::error::{Error, Result};

#[cfg(feature = "serde")]
mod form;

/// Where to connect: a URL, and what a URL cannot say or should not contain.
///
/// Every function that connects takes `impl Into<ConnectOptions>`: a URL as `&str` or `String`, a
/// [`SentinelUrl`], or options made from one of these. [`RedisConnection`](crate::RedisConnection) lists the URLs. The
/// options are the same for one server, sentinels and clusters.
///
/// Options are checked when a connection is opened, and a text also when it is [parsed](Self::from_str). The error is
/// [`InvalidInput`](crate::ErrorKind::InvalidInput). It names what is wrong, and contains no part of a URL or key.
///
/// # Examples
/// ```no_run
/// # #[cfg(all(feature = "tls", feature = "tokio"))]
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use bowline::ConnectOptions;
///
/// let options = ConnectOptions::new("rediss://redis.internal:6379/0")
///     .username("bowline")
///     .password(std::fs::read_to_string("/run/secrets/redis")?.trim_end())
///     .ca_certificate(std::fs::read("/etc/redis/ca.pem")?)
///     .client_certificate(std::fs::read("/etc/redis/client.pem")?, std::fs::read("/etc/redis/client.key")?);
/// let client = bowline::tokio::connect(options).await?;
/// # Ok(())
/// # }
/// ```
///
/// # Files and the environment
/// With the feature `serde`, options are read from any format that tells texts from tables: from a URL as text, or from
/// a table with `url`, `username`, `password`, `client_name`, and in PEM `ca_certificate`, `client_certificate` and
/// `client_key`. Only `url` is required. With `_file` after its name, a password, a certificate or a key is in the file
/// of that path, which is read at once: `password_file = "/run/secrets/redis"`. Line ends at the end of the password's
/// file do not count.
///
/// Wrong options and unknown names are errors at once. The message names the field, and contains no part of a URL, a
/// password or a key. The format may add some: an error of the crate `toml` quotes the line that it is about, and its
/// `Debug` the whole file. Show its `message()`, or keep secrets in files of their own. Options cannot be serialised.
/// ```
/// # #[cfg(feature = "serde")] {
/// let options: bowline::ConnectOptions = toml::from_str("url = 'redis://redis.internal/0'\nclient_name = 'shop'")?;
/// # }
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
#[must_use = "pass the options to a function that connects"]
pub struct ConnectOptions {
    url: String,
    username: Option<String>,
    password: Option<String>,
    credentials: Option<LoginSource>,
    client_name: Option<Arc<str>>,
    announced: AddressMap,
    #[cfg(feature = "tls")]
    tls: TlsOptions,
}

impl ConnectOptions {
    /// The servers of this URL, with nothing else.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            username: None,
            password: None,
            credentials: None,
            client_name: None,
            announced: AddressMap::default(),
            #[cfg(feature = "tls")]
            tls: TlsOptions::default(),
        }
    }

    /// The user on the servers, instead of that of the URL. With sentinels, their own user is a parameter of the URL.
    pub fn username(mut self, username: impl Into<String>) -> Self {
        self.username = Some(username.into());
        self
    }

    /// The password on the servers, instead of that of the URL. It needs no percent-encoding.
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// Asks this provider for the user and the password before each login, and again before a token ends:
    /// [`Credentials`]. It excludes a user or a password in the URL or the options. With sentinels, it is asked for the
    /// login on the servers, and the sentinels' own login stays that of the URL.
    pub fn credentials(mut self, provider: impl Credentials) -> Self {
        self.credentials = Some(LoginSource::asked(provider));
        self
    }

    /// The name that every connection of the client shows in `CLIENT LIST`, also that to a sentinel. Letters, digits
    /// and signs of ASCII, without spaces. The default is no name.
    pub fn client_name(mut self, name: impl AsRef<str>) -> Self {
        self.client_name = Some(name.as_ref().into());
        self
    }

    /// Translates the addresses that servers announce, for clients that reach them at others, as behind a NAT or in
    /// containers: those of the nodes of a cluster, and those of the servers and sentinels that a sentinel names.
    /// `translate` gets a host and a port, and returns those to connect to. The addresses in the URL are used as they
    /// stand there. `translate` is called often and must not block. The default changes nothing.
    ///
    /// # Examples
    /// ```
    /// // Port 6379 of the host 172.20.0.<n> is published as port 7000 + n of this machine.
    /// let options = bowline::ConnectOptions::new("redis-cluster://127.0.0.1:7001").addresses(|host, _port| {
    ///     let n: u16 = host.rsplit('.').next().and_then(|n| n.parse().ok()).unwrap_or(0);
    ///     ("127.0.0.1".to_owned(), 7000 + n)
    /// });
    /// ```
    pub fn addresses(mut self, translate: impl Fn(&str, u16) -> (String, u16) + Send + Sync + 'static) -> Self {
        self.announced = AddressMap::new(translate);
        self
    }

    /// The certificates of the authorities to trust, in PEM. Several calls add up.
    ///
    /// The authorities of the system, and those of `SSL_CERT_FILE` and `SSL_CERT_DIR`, are then not trusted. The URL
    /// has to ask for TLS.
    #[cfg(feature = "tls")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
    pub fn ca_certificate(mut self, pem: impl AsRef<[u8]>) -> Self {
        self.tls.authorities.extend_from_slice(pem.as_ref());
        self.tls.authorities.push(b'\n');
        self
    }

    /// The client's own certificate with those between it and its authority, and its key, both in PEM: for servers with
    /// `tls-auth-clients yes`. With sentinels, it is shown to them, too. The URL has to ask for TLS.
    #[cfg(feature = "tls")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
    pub fn client_certificate(mut self, chain: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        self.tls.identity = Some((chain.into(), key.into()));
        self
    }

    /// A configuration of rustls 0.23, for what the other options do not offer: a verifier or a provider of your own,
    /// keys in hardware, certificates that change. It excludes [`ca_certificate`](Self::ca_certificate) and
    /// [`client_certificate`](Self::client_certificate). The URL has to ask for TLS.
    #[cfg(feature = "tls")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
    pub fn tls_config(mut self, config: Arc<ClientConfig>) -> Self {
        self.tls.config = Some(config);
        self
    }

    pub(super) fn parts(&self) -> Result<UrlParts> {
        let mut parts = UrlParts::parse(&self.url)?;
        if let Some(username) = &self.username {
            parts.login = parts.login.set_username(username);
        }
        if let Some(password) = &self.password {
            parts.login = parts.login.set_password(password);
        }
        if self.credentials.is_some() && (parts.login.username().is_some() || parts.login.password().is_some()) {
            return Err(invalid("a provider of credentials excludes a user and a password"));
        }
        parts.credentials.clone_from(&self.credentials);
        if let Some(name) = &self.client_name {
            check_name(name)?;
        }
        parts.client_name.clone_from(&self.client_name);
        parts.announced = self.announced.clone();
        #[cfg(feature = "tls")]
        {
            if !self.tls.is_empty() && !parts.has_tls() && !parts.has_sentinel_tls() {
                return Err(invalid("options for TLS need a URL that asks for TLS, such as rediss://"));
            }
            parts.tls_options = self.tls.clone();
        }
        Ok(parts)
    }
}

impl From<&str> for ConnectOptions {
    fn from(url: &str) -> Self {
        Self::new(url)
    }
}

impl From<&String> for ConnectOptions {
    fn from(url: &String) -> Self {
        Self::new(url)
    }
}

impl From<String> for ConnectOptions {
    fn from(url: String) -> Self {
        Self::new(url)
    }
}

impl From<SentinelUrl> for ConnectOptions {
    fn from(url: SentinelUrl) -> Self {
        Self::new(url.unchecked())
    }
}

/// For programs that read the URL from their arguments or their environment: a wrong one is an error at once.
impl FromStr for ConnectOptions {
    type Err = Error;

    fn from_str(url: &str) -> Result<Self> {
        let options = Self::new(url);
        Servers::of(&options.parts()?).map(|_| options)
    }
}

/// Shows the addresses, and no credentials.
impl fmt::Debug for ConnectOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addresses = UrlParts::parse(&self.url).map(|parts| parts.addresses).unwrap_or_default();
        let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        f.debug_struct("ConnectOptions").field("addresses", &addresses).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
