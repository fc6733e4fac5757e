//! The command: a process, and what belongs to it.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::ExitStatus;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, kill_process_group, wait};

use super::processes::{self, Process};
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
    pub(super) fn here() -> Self {
        if File::open("/dev/tty").is_ok() { Self::Shared } else { Self::Own }
    }
}

/// A command that was started.
pub(super) struct Child {
    pid: Pid,
    group: Group,
    ended: Option<ExitStatus>,
    /// Whether a SIGTERM was sent to the command, and to its group if that is its own.
    has_got_sigterm: bool,
    /// The members of that group that have got the last SIGTERM, as far as the system tells.
    got_sigterm: Vec<Process>,
    /// What this process had started before it became bowline, as the background jobs of a shell that has run
    /// `exec bowline`.
    others: Vec<Process>,
    /// What the command has left behind and was asked to end.
    asked: Vec<Process>,
    /// Why the command cannot be ended, as one that runs as another user.
    refusal: Option<Errno>,
}

impl Child {
    /// Starts the command with these variables in its environment. Without a value, a variable is removed.
    pub(super) fn start(words: &[OsString], variables: &[(&str, Option<String>)]) -> Result<Self, Failure> {
        let others = processes::descendants();
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
        let failed =
            |error: std::io::Error| Failure { code: stage::code(&error), message: stage::explain(&program, &error) };
        let child = command.spawn().map_err(failed)?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| Failure::own("the command has no process id"))?;
        let (got_sigterm, asked) = (Vec::new(), Vec::new());
        Ok(Self { pid, group, ended: None, has_got_sigterm: false, got_sigterm, others, asked, refusal: None })
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
    pub(super) fn signal(&mut self, signal: Signal) {
        if signal == Signal::TERM {
            self.has_got_sigterm = true;
            if self.group == Group::Own {
                // Listed before. A process that starts after this and before the signal may be asked twice.
                self.got_sigterm = processes::in_group(self.pid);
            }
        }
        // The number of an ended process, and of its group, may be that of another one by now. Those of children that
        // have not been waited for are theirs.
        match (self.group, self.ended) {
            (Group::Own, Some(_)) if processes::ARE_LISTED => {
                let group = Some(self.pid);
                for member in self.left().into_iter().filter(|process| process.group == group) {
                    self.note_refusal(kill_process(member.pid, signal));
                }
            }
            (Group::Own, _) => self.note_refusal(kill_process_group(self.pid, signal)),
            (Group::Shared, None) => self.note_refusal(kill_process(self.pid, signal)),
            (Group::Shared, Some(_)) => {}
        }
    }

    pub(super) fn has_got_sigterm(&self) -> bool {
        self.has_got_sigterm
    }

    fn note_refusal(&mut self, sent: rustix::io::Result<()>) {
        // A process that has ended in the meantime cannot get a signal either.
        self.refusal = sent.err().filter(|error| *error == Errno::PERM).or(self.refusal);
    }

    /// Why a signal could not be sent.
    pub(super) fn refusal(&self) -> Option<Errno> {
        self.refusal
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

    /// The command and what it has left behind, as far as the system tells.
    fn left(&self) -> Vec<Process> {
        let children = processes::children().into_iter();
        children.filter(|child| !self.others.iter().any(|other| other.is(child))).collect()
    }

    /// Whether the command and all processes that it has started have ended, as far as the system tells.
    pub(super) fn is_gone(&mut self) -> bool {
        self.ended().is_some() && self.left().is_empty()
    }

    /// Asks what the command has left behind to end, each process once, unless it has got that with the group.
    pub(super) fn terminate_rest(&mut self) {
        for process in self.left() {
            if self.asked.iter().any(|asked| asked.is(&process)) {
                continue;
            }
            if !self.got_sigterm.iter().any(|member| member.is(&process)) {
                self.note_refusal(kill_process(process.pid, Signal::TERM));
            }
            // A stopped process would not see it.
            self.note_refusal(kill_process(process.pid, Signal::CONT));
            self.asked.push(process);
        }
    }

    /// Kills the command and all processes that it has started. Returns when they have ended, or cannot be ended: one
    /// that waits for a disk, or runs as another user.
    pub(super) async fn kill(&mut self) {
        const TRIES: u32 = 500;
        self.signal(Signal::KILL);
        for _ in 0..TRIES {
            if self.is_gone() {
                return;
            }
            for process in self.left() {
                self.note_refusal(kill_process(process.pid, Signal::KILL));
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
