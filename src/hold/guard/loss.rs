//! The loss of one hold among several.

use std::fmt;
use std::sync::Arc;

use crate::engine::lease::{Hold, Loss};
use crate::error::{Error, ErrorKind};

/// Which hold was lost, and why. Returned by [`MultiGuard::lost`](crate::MultiGuard::lost).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedLoss {
    name: Arc<str>,
    loss: Loss,
}

impl NamedLoss {
    pub(crate) fn of(hold: &Hold, loss: Loss) -> Self {
        Self { name: hold.keys.name.clone(), loss }
    }

    /// The name of the primitive whose hold was lost.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The reason of the loss.
    pub fn loss(&self) -> Loss {
        self.loss
    }

    pub(crate) fn error(&self, operation: &'static str) -> Error {
        Error::new(ErrorKind::Lost, operation).with_name(&self.name).with_source(self.loss)
    }
}

impl fmt::Display for NamedLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.name, self.loss)
    }
}

impl std::error::Error for NamedLoss {}

impl From<NamedLoss> for Loss {
    fn from(named: NamedLoss) -> Self {
        named.loss
    }
}
