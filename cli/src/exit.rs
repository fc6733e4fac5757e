//! Exit codes, as README.md and the man page list them.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use bowline::Error;

/// All is well, and what was asked for is so.
pub(crate) const OK: u8 = 0;
/// What was asked for is not so: not granted, nobody leads, a deadlock was found. As `flock(1)` has it.
pub(crate) const NO: u8 = 1;
/// `doctor` could not find it out, or was called with wrong arguments. As plugins of monitors exit.
pub(crate) const NOT_KNOWN: u8 = 3;
/// The hold was lost before the command ended.
pub(crate) const LOST: u8 = 123;
/// The command ran for longer than it may. As `timeout(1)` has it, and the three below.
pub(crate) const TIMED_OUT: u8 = 124;
/// bowline itself failed.
pub(crate) const FAILED: u8 = 125;
/// The command was found, and cannot be run.
pub(crate) const NOT_EXECUTABLE: u8 = 126;
/// The command was not found.
pub(crate) const NOT_FOUND: u8 = 127;
/// Ended by a signal: this and its number.
pub(crate) const SIGNALLED: u8 = 128;

/// What ends the program with a message.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) message: String,
}

impl Failure {
    /// A failure of bowline itself.
    pub(crate) fn own(message: impl Into<String>) -> Self {
        Self { code: FAILED, message: message.into() }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::own(format!("{error:#}"))
    }
}

/// The exit code for how a command ended.
pub(crate) fn of(status: ExitStatus) -> u8 {
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    let signal = status.signal().and_then(|signal| u8::try_from(signal).ok());
    code.or(signal.map(|signal| SIGNALLED.saturating_add(signal))).unwrap_or(FAILED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_ends_by_itself_or_by_a_signal() {
        for (raw, code) in [(0, 0), (3 << 8, 3), (255 << 8, 255), (9, 137), (15, 143)] {
            assert_eq!(of(ExitStatus::from_raw(raw)), code, "{raw}");
        }
    }
}
