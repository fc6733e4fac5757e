//! Where a login comes from.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};

use ::redis::RedisConnectionInfo;
use futures::FutureExt;

use super::super::failure::Failure;
use super::super::url::invalid;
use super::{Credentials, Login};
use crate::error::Result;
use crate::mutex::lock;

#[derive(Clone)]
pub(in crate::redis) enum LoginSource {
    /// `None`: the server asks for no login.
    Fixed(Option<Login>),
    Asked(Arc<Provider>),
}

/// A provider, and the last of its logins that a server has accepted.
pub(in crate::redis) struct Provider {
    credentials: Box<dyn Credentials>,
    last: Mutex<Option<Login>>,
}

impl LoginSource {
    /// The login that a URL contains.
    pub(in crate::redis) fn of(info: &RedisConnectionInfo) -> Result<Self> {
        Ok(Self::Fixed(match (info.username(), info.password()) {
            (Some(username), Some(password)) => Some(Login::new(username, password)),
            (None, Some(password)) => Some(Login::of_default_user(password)),
            // redis-rs would leave the login out, and the connection would be that of the default user.
            (Some(_), None) => return Err(invalid("a user name needs a password")),
            (None, None) => None,
        }))
    }

    pub(in crate::redis) fn asked(credentials: impl Credentials) -> Self {
        Self::Asked(Arc::new(Provider { credentials: Box::new(credentials), last: Mutex::default() }))
    }

    /// Whether a login may differ from the one before it.
    pub(in crate::redis) fn changes(&self) -> bool {
        matches!(self, Self::Asked(_))
    }

    /// The login to use now. `refused` is the one that the server has just refused.
    pub(in crate::redis) async fn next(&self, refused: Option<&Login>) -> std::result::Result<Option<Login>, Failure> {
        match self {
            Self::Fixed(login) => Ok(login.clone()),
            Self::Asked(provider) => {
                // A panic would end the task that keeps the connection up, and the client with it.
                let given = AssertUnwindSafe(provider.credentials.login(refused)).catch_unwind().await;
                given.map_err(|_| failed("it panicked"))?.map(Some).map_err(|error| failed(&error.to_string()))
            }
        }
    }

    /// Records that a server has accepted this login.
    pub(in crate::redis) fn accepted(&self, login: &Login) {
        if let Self::Asked(provider) = self {
            *lock(&provider.last) = Some(login.clone());
        }
    }

    /// The last login that was accepted, for a connection that cannot ask.
    pub(in crate::redis) fn last(&self) -> Option<Login> {
        match self {
            Self::Fixed(login) => login.clone(),
            Self::Asked(provider) => lock(&provider.last).clone(),
        }
    }
}

fn failed(why: &str) -> Failure {
    Failure::Io(format!("the provider of credentials failed: {why}"))
}
