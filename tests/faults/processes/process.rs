//! A process of a test: this binary again, which is told what to do by lines, and says by lines what it did.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::ms;
use crate::support::server::Server;

pub(crate) const ROLE: &str = "BOWLINE_TEST_ROLE";
pub(crate) const URL: &str = "BOWLINE_TEST_URL";
pub(crate) const LEASE_MS: &str = "BOWLINE_TEST_LEASE_MS";
pub(crate) const FILE: &str = "BOWLINE_TEST_FILE";

/// A process that holds, waits for or competes for `a`. Killed when dropped.
pub(crate) struct Process {
    child: Child,
    input: ChildStdin,
    pub(crate) lines: Receiver<String>,
}

impl Process {
    pub(crate) fn start(server: &Server, role: &str, lease: Duration, file: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "processes::child", "--nocapture"])
            .env(ROLE, role)
            .env(URL, server.url())
            .env(LEASE_MS, lease.as_millis().to_string())
            .env(FILE, file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (said, lines) = mpsc::channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // The child's test harness prints too, sometimes on the same line.
                if let Some((_, line)) = line.split_once("> ")
                    && said.send(line.to_owned()).is_err()
                {
                    return;
                }
            }
        });
        let input = child.stdin.take().unwrap();
        Self { child, input, lines }
    }

    pub(crate) fn with(server: &Server, role: &str, lease: Duration) -> Self {
        Self::start(server, role, lease, Path::new(""))
    }

    /// The rest of the next line, which begins with `what`.
    pub(crate) fn hear(&self, what: &str) -> String {
        let line = self.lines.recv_timeout(ms(20_000)).unwrap_or_else(|error| panic!("waiting for {what:?}: {error}"));
        let rest = line.strip_prefix(what).unwrap_or_else(|| panic!("{line:?} instead of {what:?}"));
        rest.trim().to_owned()
    }

    pub(crate) fn hear_token(&self) -> u64 {
        self.hear("granted").parse().unwrap()
    }

    pub(crate) fn tell(&mut self, what: &str) {
        writeln!(self.input, "{what}").unwrap();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn finish(mut self) {
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Reached if a test has failed. A stopped process can be killed, too.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
