//! The limits of settings.

use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};

/// Checks the times that are no leases. The message of the error names the setting.
pub(super) fn check_times(command: Duration, retry: Duration, handoff: Duration, shutdown: Duration) -> Result<()> {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    if !(Duration::from_millis(10)..=Duration::from_secs(600)).contains(&command) {
        return Err(invalid("config", "command_timeout must be 10 ms to 10 min"));
    }
    if retry > DAY {
        return Err(invalid("config", "retry_timeout must be at most 24 h"));
    }
    if handoff > Duration::from_secs(10) {
        return Err(invalid("config", "handoff_time must be at most 10 s"));
    }
    if shutdown > Duration::from_secs(10) {
        return Err(invalid("config", "shutdown_timeout must be at most 10 s"));
    }
    Ok(())
}

/// The shortest lease: 100 ms. A shorter one could end between two commands on an ordinary network.
pub const MIN_LEASE: Duration = Duration::from_millis(100);

/// The longest label of a client, and of a candidate of an election: 64 bytes.
pub const MAX_LABEL: usize = 64;

/// The longest lease: 24 h.
pub const MAX_LEASE: Duration = Duration::from_secs(24 * 60 * 60);

pub(crate) fn check_lease(operation: &'static str, lease: Duration) -> Result<()> {
    if (MIN_LEASE..=MAX_LEASE).contains(&lease) {
        Ok(())
    } else {
        Err(invalid(operation, format!("the lease must be 100 ms to 24 h, not {lease:?}")))
    }
}

pub(crate) fn check_replicas(operation: &'static str, replicas: u32) -> Result<()> {
    const MOST: u32 = 100;
    if replicas > MOST {
        return Err(invalid(operation, format!("acknowledged_by must be at most {MOST} replicas, not {replicas}")));
    }
    Ok(())
}

pub(crate) fn check_label(operation: &'static str, label: &str) -> Result<()> {
    if label.len() > MAX_LABEL {
        return Err(invalid(operation, format!("a label has up to {MAX_LABEL} bytes, not {}", label.len())));
    }
    if label.chars().any(char::is_control) {
        return Err(invalid(operation, "a label has no control characters"));
    }
    Ok(())
}

fn invalid(operation: &'static str, reason: impl Into<String>) -> Error {
    Error::because(ErrorKind::InvalidInput, operation, reason)
}
