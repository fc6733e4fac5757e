//! Who campaigns, and for what.

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::handle::Primitive;

/// The longest label of a candidate: 64 bytes.
pub const MAX_LABEL: usize = 64;

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
        self.check("a label", &self.label, MAX_LABEL, operation)
    }

    pub(super) fn check_value(&self, value: &str, operation: &'static str) -> Result<()> {
        self.check("a value", value, MAX_LEADER_VALUE, operation)
    }

    /// Refuses a text that is too long.
    fn check(&self, what: &str, text: &str, longest: usize, operation: &'static str) -> Result<()> {
        if text.len() <= longest {
            return Ok(());
        }
        let reason = format!("{what} has up to {longest} bytes, not {}", text.len());
        let error = Error::because(ErrorKind::InvalidInput, operation, reason);
        Err(match self.primitive.name() {
            Some(name) => error.with_name(name),
            None => error,
        })
    }
}
