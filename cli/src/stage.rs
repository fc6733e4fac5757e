//! The second stage: between bowline and the command that it runs.
//!
//! On Linux, bowline starts itself as `bowline __exec <pid of bowline> <command>..`. That process asks the kernel to
//! kill it when bowline dies, and then becomes the command. The wish survives that. So a bowline that is killed by
//! SIGKILL leaves no command behind that works on without a lease.

use std::ffi::OsString;
use std::io::Error;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use rustix::io::Errno;

use crate::exit::{FAILED, NOT_EXECUTABLE, NOT_FOUND};
use crate::show::complain;

/// What tells the second stage from an ordinary call.
const STAGE: &str = "__exec";

/// What starts the command.
pub(crate) fn command(words: &[OsString]) -> Command {
    // The path of a program that was replaced meanwhile leads to the new one, and this one to the old.
    let own = Path::new("/proc/self/exe");
    if cfg!(target_os = "linux") && own.exists() {
        let mut command = Command::new(own);
        command.arg0("bowline").arg(STAGE).arg(std::process::id().to_string()).args(words);
        return command;
    }
    let mut words = words.iter();
    let mut command = Command::new(words.next().map(OsString::as_os_str).unwrap_or_default());
    command.args(words);
    command
}

/// Becomes the command, if this is the second stage. Returns only if that failed.
pub(crate) fn of(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next()? != STAGE {
        return None;
    }
    let parent = arguments.next().and_then(|pid| pid.to_str()?.parse().ok());
    if !is_tied_to(parent) {
        return Some(FAILED.into());
    }
    let program = arguments.next()?;
    let error = Command::new(&program).args(arguments).exec();
    complain(&format!("bowline: {}", explain(&program, &error)));
    Some(code(&error).into())
}

pub(crate) fn explain(program: &OsString, error: &Error) -> String {
    format!("cannot run {program:?}: {error}")
}

/// The exit code if the command could not be started.
pub(crate) fn code(error: &Error) -> u8 {
    match Errno::from_io_error(error) {
        Some(Errno::NOENT) => NOT_FOUND,
        // The system has no room for another process or file, whatever the command is.
        Some(Errno::AGAIN | Errno::NOMEM | Errno::MFILE | Errno::NFILE) => FAILED,
        _ => NOT_EXECUTABLE,
    }
}

/// Ties this process to the life of bowline. `false`: bowline has died already.
#[cfg(target_os = "linux")]
fn is_tied_to(parent: Option<i32>) -> bool {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};

    let is_set = set_parent_process_death_signal(Some(Signal::KILL)).is_ok();
    is_set && parent == Some(getppid().map_or(0, |pid| pid.as_raw_nonzero().get()))
}

#[cfg(not(target_os = "linux"))]
fn is_tied_to(_: Option<i32>) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_without_room_is_told_from_a_command_that_cannot_be_run() {
        for (error, wanted) in [
            (Errno::NOENT, 127),
            (Errno::ACCESS, 126),
            (Errno::NOEXEC, 126),
            (Errno::AGAIN, 125),
            (Errno::NOMEM, 125),
            (Errno::MFILE, 125),
            (Errno::NFILE, 125),
        ] {
            assert_eq!(code(&error.into()), wanted, "{error}");
        }
    }
}
