//! The processes of this machine, as far as the system tells: none where it has no `/proc`.

use std::fs;

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, getpgrp, getpid, waitid};

/// Whether the system tells which processes there are.
pub(super) const ARE_LISTED: bool = cfg!(target_os = "linux");

/// A process that has not ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Process {
    pub(super) pid: Pid,
    parent: Option<Pid>,
    pub(super) group: Option<Pid>,
    session: Option<Pid>,
    began: u64,
}

/// All that have not ended.
fn all() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(Pid::from_raw).filter_map(Process::read).collect()
}

impl Process {
    fn read(pid: Pid) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
        // The name of the program stands in parentheses, and may contain any character.
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        let of = |at: usize| fields.get(at)?.parse().ok().and_then(Pid::from_raw);
        let began = fields.get(19)?.parse().ok()?;
        let is_there = !matches!(fields.first(), Some(&"Z" | &"X"));
        is_there.then(|| Self { pid, parent: of(1), group: of(2), session: of(3), began })
    }

    /// Whether both are the same process, which may have got another parent. A later one with the same number began at
    /// another time.
    pub(super) fn is(&self, other: &Self) -> bool {
        (self.pid, self.began) == (other.pid, other.began)
    }
}

/// The children of this process, those that it has adopted included.
pub(super) fn children() -> Vec<Process> {
    let own = getpid();
    all().into_iter().filter(|process| process.parent == Some(own)).collect()
}

/// The members of this process group.
pub(super) fn in_group(group: Pid) -> Vec<Process> {
    all().into_iter().filter(|process| process.group == Some(group)).collect()
}

/// The children of this process and what they have started.
pub(super) fn descendants() -> Vec<Process> {
    // To look at all processes takes some milliseconds, and bowline seldom has children when it starts.
    let ended = waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT);
    if ended.is_err_and(|error| error == Errno::CHILD) {
        return Vec::new();
    }
    let all = all();
    let mut parents = vec![getpid()];
    let mut found = Vec::new();
    while let Some(parent) = parents.pop() {
        let children = all.iter().filter(|process| process.parent == Some(parent));
        found.extend(children.inspect(|child| parents.push(child.pid)));
    }
    found
}

/// Whether the process group of this process has no member whose parent could continue it: one in another group of
/// the same session, such as a shell. The system ignores SIGTSTP there, if it is not caught.
pub(super) fn is_group_orphaned() -> bool {
    let (all, own) = (all(), Some(getpgrp()));
    let parent = |process: &Process| all.iter().find(|parent| Some(parent.pid) == process.parent);
    let is_continued = |process: &Process| {
        parent(process).is_some_and(|parent| parent.group != own && parent.session == process.session)
    };
    !all.is_empty() && !all.iter().filter(|process| process.group == own).any(is_continued)
}
