//! Users and passwords: fixed ones, and those that a provider gives.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ::redis::{ProtocolVersion, RedisConnectionInfo};
use async_trait::async_trait;

mod source;

pub(super) use self::source::LoginSource;

/// Gives the user and the password of the servers, for passwords that rotate and tokens that end, such as those of AWS
/// IAM or Microsoft Entra. Passed to [`ConnectOptions::credentials`](crate::ConnectOptions::credentials).
///
/// It is asked before each login: when connecting, after each loss of a connection, for each subscription, and for each
/// node of a cluster. A client may log in over two connections at the same time. So a secret that is slow to get should
/// be kept by the provider. The question is a part of the attempt to connect and shares its time limit. Its future is
/// dropped when the time is over.
///
/// If the server refuses the login ([`Denied`](crate::ErrorKind::Denied)), the provider is asked once more and gets the
/// refused login, so that it can leave out what it has kept. If the second login is refused too, the attempt fails. A
/// client has several connections, so the provider may get a refused login that it no longer keeps.
///
/// A login that says [for how long it is valid](Login::valid_for) is renewed on the living connection, by `AUTH`, when
/// 25 to 35 % of that time are left. An attempt takes at most an eighth of that time, but not less than 100 ms and not
/// more than 10 s. If it fails, it is tried again, with growing pauses, for as long as the server keeps the connection.
///
/// The calls run in tasks of the client's runtime. Code that needs the tokio runtime works in a client of
/// `bowline::tokio`, not in a blocking one. The connection that releases locks after the end of the runtime cannot ask:
/// it uses the last login that was accepted.
///
/// # Errors
/// If the provider fails or panics, the attempt to connect fails with
/// [`Unavailable`](crate::ErrorKind::Unavailable) and the text of the provider's error, which should contain no secret.
/// A lost connection is tried again all the same.
///
/// # Examples
/// A password in a file that is replaced when the password rotates:
/// ```
/// use async_trait::async_trait;
/// use bowline::{Credentials, Login};
///
/// struct Mounted;
///
/// #[async_trait]
/// impl Credentials for Mounted {
///     async fn login(
///         &self,
///         _refused: Option<&Login>,
///     ) -> Result<Login, Box<dyn std::error::Error + Send + Sync>> {
///         let password = std::fs::read_to_string("/run/secrets/redis")?;
///         Ok(Login::new("bowline", password.trim_end()))
///     }
/// }
/// ```
#[async_trait]
pub trait Credentials: Send + Sync + 'static {
    /// The login to use now. `refused` is one that was given just before and that the server has refused.
    async fn login(&self, refused: Option<&Login>) -> Result<Login, Box<dyn Error + Send + Sync>>;
}

/// A provider that several clients share.
#[async_trait]
impl<T: Credentials + ?Sized> Credentials for Arc<T> {
    async fn login(&self, refused: Option<&Login>) -> Result<Login, Box<dyn Error + Send + Sync>> {
        (**self).login(refused).await
    }
}

/// A user, its password or token, and how long the server accepts them. Given by [`Credentials`].
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    username: Option<String>,
    password: String,
    valid_for: Option<Duration>,
}

impl Login {
    /// A user and its password.
    pub fn new(username: impl Into<String>, password: impl Into<String>) -> Self {
        Self { username: Some(username.into()), ..Self::of_default_user(password) }
    }

    /// The password of the server's default user.
    pub fn of_default_user(password: impl Into<String>) -> Self {
        Self { username: None, password: password.into(), valid_for: None }
    }

    /// How long the server accepts the login, from now on. Without it, the login is not renewed.
    #[must_use]
    pub fn valid_for(mut self, time: Duration) -> Self {
        self.valid_for = Some(time);
        self
    }

    /// The name of the user. `None` for the server's default user.
    pub fn username(&self) -> Option<&str> {
        self.username.as_deref()
    }

    /// The password or token.
    pub fn password(&self) -> &str {
        &self.password
    }

    pub(super) fn time(&self) -> Option<Duration> {
        self.valid_for
    }

    /// Removes the password from `text`, in case the server quoted the login.
    pub(super) fn redact(&self, text: &str) -> String {
        if self.password.is_empty() { text.to_owned() } else { text.replace(&self.password, "***") }
    }
}

/// The arguments of `AUTH`.
pub(super) fn words(login: &Login) -> [&str; 2] {
    [login.username().unwrap_or("default"), login.password()]
}

/// The login is not left to redis-rs, nor is the database.
pub(super) fn of_redis_rs() -> RedisConnectionInfo {
    RedisConnectionInfo::default().set_protocol(ProtocolVersion::RESP3).set_skip_set_lib_name()
}

/// Shows no password.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("username", &self.username)
            .field("valid_for", &self.valid_for)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        let login = Login::new("alice", "s/3").valid_for(Duration::from_secs(5));
        assert_eq!(format!("{login:?}"), r#"Login { username: Some("alice"), valid_for: Some(5s), .. }"#);
        assert_eq!(login.redact("args `AUTH` `s/3`"), "args `AUTH` `***`");
        assert_eq!(Login::new("a", "").redact("args `AUTH` ``"), "args `AUTH` ``", "an empty password is no secret");
        assert_eq!(words(&login), ["alice", "s/3"]);
        assert_eq!(words(&Login::of_default_user("p")), ["default", "p"]);
    }
}
