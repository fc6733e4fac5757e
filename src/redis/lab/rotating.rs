//! Credentials that change.

use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;

use super::super::login::{Credentials, Login};

/// Gives another password each time.
#[derive(Default)]
pub(in super::super) struct Rotating(AtomicUsize);

#[async_trait]
impl Credentials for Rotating {
    async fn login(&self, _: Option<&Login>) -> Result<Login, Box<dyn Error + Send + Sync>> {
        Ok(Login::new("u", self.0.fetch_add(1, Ordering::SeqCst).to_string()))
    }
}
