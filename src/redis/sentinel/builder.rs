//! A URL of sentinels from its parts.

use std::fmt::{self, Write};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::url::SentinelConfig;
use crate::error::Result;

/// Builds the URL of a master that sentinels watch, for the `connect` of every runtime.
///
/// All parts are given without percent-encoding. [`build`](Self::build) reports what is wrong with them.
///
/// # Examples
/// ```
/// let url = bowline::SentinelUrl::new("mymaster")
///     .sentinel("10.0.0.1", 26379)
///     .sentinel("10.0.0.2", 26379)
///     .user("bowline")
///     .password("p@ss/word")
///     .build()?;
/// assert_eq!(url, "redis-sentinel://bowline:p%40ss%2Fword@10.0.0.1:26379,10.0.0.2:26379/0?master=mymaster");
/// # Ok::<(), bowline::Error>(())
/// ```
#[derive(Clone, Default)]
#[must_use = "call build()"]
pub struct SentinelUrl {
    master: String,
    sentinels: Vec<(String, u16)>,
    user: String,
    password: String,
    database: u32,
    sentinel_user: String,
    sentinel_password: String,
    tls: bool,
    sentinel_tls: bool,
}

/// All characters that have a meaning in a URL, and more.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

fn encoded(text: &str) -> impl fmt::Display {
    utf8_percent_encode(text, ESCAPED)
}

impl SentinelUrl {
    /// The master of this name, as in the sentinels' `sentinel monitor <name>`.
    pub fn new(master: impl Into<String>) -> Self {
        Self { master: master.into(), ..Self::default() }
    }

    /// A sentinel: a name or an address, and its port, which is usually 26379. At least one is needed. The sentinels
    /// name each other, but a client that connects can at first only ask those that are given here.
    pub fn sentinel(mut self, host: impl Into<String>, port: u16) -> Self {
        self.sentinels.push((host.into(), port));
        self
    }

    /// The user on the master and its replicas. Without it, the password is that of the default user.
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.user = user.into();
        self
    }

    /// The password on the master and its replicas.
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.password = password.into();
        self
    }

    /// The number of the database, 0 by default.
    pub fn database(mut self, database: u32) -> Self {
        self.database = database;
        self
    }

    /// The user on the sentinels. The login on the servers is not used for the sentinels.
    pub fn sentinel_user(mut self, user: impl Into<String>) -> Self {
        self.sentinel_user = user.into();
        self
    }

    /// The password on the sentinels.
    pub fn sentinel_password(mut self, password: impl Into<String>) -> Self {
        self.sentinel_password = password.into();
        self
    }

    /// TLS to the master and its replicas. Their certificates must be for the hosts that the sentinels name.
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// TLS to the sentinels.
    pub fn sentinel_tls(mut self) -> Self {
        self.sentinel_tls = true;
        self
    }

    /// The URL. It holds the passwords.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput), naming what is wrong: no sentinel, no name, a user without a
    /// password, an invalid host, TLS without the feature `tls`.
    pub fn build(self) -> Result<String> {
        let url = self.unchecked();
        SentinelConfig::parse(&url)?;
        Ok(url)
    }

    /// The URL, which may be wrong.
    pub(in crate::redis) fn unchecked(&self) -> String {
        let mut url = String::from("redis-sentinel://");
        // Writing to a string does not fail.
        let _ = self.write(&mut url);
        url
    }

    fn write(&self, url: &mut String) -> fmt::Result {
        if !self.user.is_empty() || !self.password.is_empty() {
            write!(url, "{}", encoded(&self.user))?;
            if !self.password.is_empty() {
                write!(url, ":{}", encoded(&self.password))?;
            }
            url.push('@');
        }
        for (n, (host, port)) in self.sentinels.iter().enumerate() {
            let comma = if n > 0 { "," } else { "" };
            let host = host.trim_start_matches('[').trim_end_matches(']');
            if host.contains(':') {
                write!(url, "{comma}[{host}]:{port}")?;
            } else {
                // A valid host name needs no encoding, and other hosts are not accepted.
                write!(url, "{comma}{}:{port}", encoded(host))?;
            }
        }
        write!(url, "/{}?master={}", self.database, encoded(&self.master))?;
        for (name, value) in [("sentinel_user", &self.sentinel_user), ("sentinel_password", &self.sentinel_password)] {
            if !value.is_empty() {
                write!(url, "&{name}={}", encoded(value))?;
            }
        }
        for (name, value) in [("tls", self.tls), ("sentinel_tls", self.sentinel_tls)] {
            if value {
                write!(url, "&{name}=true")?;
            }
        }
        Ok(())
    }
}

/// Shows no credentials.
impl fmt::Debug for SentinelUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("SentinelUrl");
        shown.field("master", &self.master).field("sentinels", &self.sentinels).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::redis::login::Login;
    use crate::redis::url::address::Address;

    #[test]
    fn the_parser_reads_what_the_builder_writes() {
        let awkward = "a:b@c/d?e#f&g=h%i+j [k],ü";
        let url = SentinelUrl::new(awkward)
            .sentinel("::1", 1)
            .sentinel("[::2]", 2)
            .sentinel("h", 3)
            .user(awkward)
            .password(awkward)
            .database(7)
            .sentinel_user(awkward)
            .sentinel_password(awkward)
            .build()
            .unwrap();
        let setup = SentinelConfig::parse(&url).unwrap();
        assert_eq!(setup.master, awkward);
        let shown: Vec<String> = setup.sentinels.iter().map(|target| target.address.to_string()).collect();
        assert_eq!(shown, ["[::1]:1", "[::2]:2", "h:3"]);
        let server = setup.servers.at(Address::Tcp("s".to_owned(), 1)).unwrap();
        for target in [&server, &setup.sentinels[0]] {
            assert_eq!(target.login().last(), Some(Login::new(awkward, awkward)));
        }
        assert_eq!(server.db(), 7);
    }

    #[test]
    fn a_password_needs_no_user() {
        let url = SentinelUrl::new("m").sentinel("h", 1).password("p").build().unwrap();
        let server = SentinelConfig::parse(&url).unwrap().servers.at(Address::Tcp("s".to_owned(), 1)).unwrap();
        assert_eq!(server.login().last(), Some(Login::of_default_user("p")));
        let url = SentinelUrl::new("m").sentinel("h", 1).build().unwrap();
        assert_eq!(url, "redis-sentinel://h:1/0?master=m");
    }

    #[cfg(feature = "tls")]
    #[test]
    fn tls_is_chosen_for_each() {
        let url = SentinelUrl::new("m").sentinel("h", 1).tls().build().unwrap();
        assert!(SentinelConfig::parse(&url).unwrap().sentinels[0].tls.is_none());
        let url = SentinelUrl::new("m").sentinel("h", 1).sentinel_tls().build().unwrap();
        assert!(SentinelConfig::parse(&url).unwrap().sentinels[0].tls.is_some());
    }

    #[test]
    fn wrong_parts_are_named() {
        for (wrong, says) in [
            (SentinelUrl::new("m"), "host is missing"),
            (SentinelUrl::new("").sentinel("h", 1), "name of the master"),
            (SentinelUrl::new("m").sentinel("h", 0), "port"),
            (SentinelUrl::new("m").sentinel("a,b", 1), "not a name or an address"),
            (SentinelUrl::new("m").sentinel("a/b", 1), "not a name or an address"),
            (SentinelUrl::new("m").sentinel("h", 1).user("s3cret"), "needs a password"),
        ] {
            let error = wrong.build().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(says), "{error}");
        }
        let shown =
            format!("{:?}", SentinelUrl::new("m").sentinel("h", 1).password("s3cret").sentinel_password("s3cret"));
        assert!(shown.contains("\"m\"") && !shown.contains("s3cret"), "{shown}");
    }
}
