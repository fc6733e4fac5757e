//! The command: a process, and what belongs to it.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, kill_process_group, wait};

use crate::exit::Failure;
use crate::stage;

/// Whose process group the command is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    /// Its own, which gets the signals.
    Own,
    /// That of bowline, and of the shell's job: the terminal's keys reach the command as without bowline.
    Shared,
}

impl Group {
    /// With a terminal, job control is that of the shell.
    fn here() -> Self {
        if File::open("/dev/tty").is_ok() { Self::Shared } else { Self::Own }
    }
}

/// A command that was started.
pub(super) struct Child {
    pid: Pid,
    group: Group,
    ended: Option<ExitStatus>,
}

impl Child {
    /// Starts the command with these variables in its environment. Without a value, a variable is removed.
    pub(super) fn start(words: &[OsString], variables: &[(&str, Option<String>)]) -> Result<Self, Failure> {
        adopt();
        let group = Group::here();
        let mut command = stage::command(words);
        if group == Group::Own {
            command.process_group(0);
        }
        for (name, value) in variables {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let program = words.first().cloned().unwrap_or_default();
        let failed = |error: std::io::Error| Failure {
            code: stage::code(error.kind()),
            message: stage::explain(&program, &error),
        };
        let child = command.spawn().map_err(failed)?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| Failure::own("the command has no process id"))?;
        Ok(Self { pid, group, ended: None })
    }

    pub(super) fn group(&self) -> Group {
        self.group
    }

    /// How the command ended, if it has. Also takes note of the end of what the command has left behind.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            self.note(pid, status);
        }
        self.ended
    }

    fn note(&mut self, pid: Pid, status: WaitStatus) {
        if pid == self.pid && !status.stopped() {
            self.ended = Some(ExitStatus::from_raw(status.as_raw()));
        }
    }

    /// Sends the signal to the group of the command, or to the command alone if the group is not its own.
    pub(super) fn signal(&self, signal: Signal) {
        // The number of an ended process may be that of another one by now, but not that of a group with members.
        let _ = match self.group {
            Group::Own => kill_process_group(self.pid, signal),
            Group::Shared if self.ended.is_none() => kill_process(self.pid, signal),
            Group::Shared => Ok(()),
        };
    }

    /// Whether the command stops by itself, because the terminal has asked it to, or has ended.
    pub(super) async fn stops(&mut self) -> bool {
        const TRIES: u32 = 20;
        for _ in 0..TRIES {
            while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
                if pid == self.pid && status.stopped() {
                    return true;
                }
                self.note(pid, status);
            }
            if self.ended.is_some() {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        false
    }

    /// Whether the command and all processes that it has started have ended, as far as the system tells.
    pub(super) fn is_gone(&mut self) -> bool {
        self.ended().is_some() && children().is_empty()
    }

    /// Sends the signal to what the command has left behind in a group that is not its own.
    pub(super) fn signal_rest(&self, signal: Signal) {
        if self.group == Group::Shared {
            for pid in children() {
                let _ = kill_process(pid, signal);
            }
        }
    }

    /// Kills the command and all processes that it has started. Returns when they have ended.
    pub(super) async fn kill(&mut self) {
        // A process that waits for a disk ends later: nothing can be done about that.
        const TRIES: u32 = 500;
        self.signal(Signal::KILL);
        for _ in 0..TRIES {
            let left = children();
            if self.ended().is_some() && left.is_empty() {
                return;
            }
            for pid in left {
                let _ = kill_process(pid, Signal::KILL);
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

/// Makes this process the parent of what its children leave behind, so that it can end that, too.
#[cfg(target_os = "linux")]
fn adopt() {
    use rustix::process::{getpid, set_child_subreaper};

    let _ = set_child_subreaper(Some(getpid()));
}

#[cfg(not(target_os = "linux"))]
fn adopt() {}

/// The children of this process, those that it has adopted included. None where the system does not tell.
fn children() -> Vec<Pid> {
    let own = std::process::id();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| parent(*pid) == Some(own)).filter_map(Pid::from_raw).collect()
}

/// The parent of a process that has not ended.
fn parent(pid: i32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program stands in parentheses, and may contain any character.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    fields.next()?.parse().ok().filter(|_| state != "Z" && state != "X")
}
