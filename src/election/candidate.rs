//! Who campaigns, and for what.

use std::sync::Arc;

use crate::config::check_label;
use crate::error::{Error, ErrorKind, Result};
use crate::handle::Primitive;
use crate::hold::quorum::Quorum;

/// The longest value that a leader publishes: 1,024 bytes.
pub const MAX_LEADER_VALUE: usize = 1024;

/// An election, and how a candidate is shown in it.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) primitive: Primitive,
    pub(super) label: Arc<str>,
}

impl Candidate {
    pub(super) fn check_label(&self, operation: &'static str) -> Result<()> {
        check_label(operation, &self.label).map_err(|error| self.named(error))?;
        if self.quorum().is_some() && self.label != self.primitive.context().config.label {
            let reason = "an election over a RedLock shows the labels of clients, and no others";
            return Err(self.named(Error::because(ErrorKind::Unsupported, operation, reason)));
        }
        Ok(())
    }

    /// The servers that grant the leadership together.
    pub(super) fn quorum(&self) -> Option<&Arc<dyn Quorum>> {
        self.primitive.source.quorum.as_ref()
    }

    /// Fails if no server knows all that happens in the election.
    pub(super) fn check_one_server(&self, operation: &'static str) -> Result<()> {
        if self.quorum().is_none() {
            return Ok(());
        }
        let reason = "an election over a RedLock has no server that knows all changes and values";
        Err(self.named(Error::because(ErrorKind::Unsupported, operation, reason)))
    }

    /// Refuses a value that is too long.
    pub(super) fn check_value(&self, value: &str, operation: &'static str) -> Result<()> {
        if value.len() <= MAX_LEADER_VALUE {
            return Ok(());
        }
        let reason = format!("a value has up to {MAX_LEADER_VALUE} bytes, not {}", value.len());
        Err(self.named(Error::because(ErrorKind::InvalidInput, operation, reason)))
    }

    fn named(&self, error: Error) -> Error {
        match self.primitive.name() {
            Some(name) => error.with_name(name),
            None => error,
        }
    }
}
