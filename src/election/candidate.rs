//! Who campaigns, and for what.

use std::sync::Arc;

use crate::config::check_label;
use crate::error::{Error, ErrorKind, Result};
use crate::handle::Primitive;

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
        check_label(operation, &self.label).map_err(|error| self.named(error))
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
