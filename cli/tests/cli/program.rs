//! The program as a child process, and what the tests see of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use bowline_testkit::server::Server;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

pub(crate) const BOWLINE: &str = env!("CARGO_BIN_EXE_bowline");

/// As cron has it: without a terminal, and with nothing in the environment that the test has not set.
///
/// `setsid` becomes the program, so that the process id is that of the program.
pub(crate) fn bowline(url: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("setsid");
    command.arg(BOWLINE).args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    clean(&mut command).env("BOWLINE_URL", url);
    command
}

/// Removes what the environment of the tests may say to the program.
pub(crate) fn clean(command: &mut Command) -> &mut Command {
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("BOWLINE")) {
        command.env_remove(name);
    }
    command.env("HOME", "/nonexistent").env("LC_ALL", "C").env_remove("XDG_CONFIG_HOME").env_remove("NO_COLOR")
}

pub(crate) fn output(url: &str, arguments: &[&str]) -> Output {
    bowline(url, arguments).output().unwrap()
}

/// The exit code of the program, with what it has written.
pub(crate) fn code(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// A program that runs. Killed when it is dropped.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        Self(command.spawn().unwrap())
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(self.0.id().try_into().unwrap()).unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Waits for the end.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        until("the program ends", || {
            status = self.0.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits for what must become true.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(30), "not within 30 s: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A folder in which commands leave traces.
pub(crate) struct Traces(TempDir);

impl Traces {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The path as part of a shell's command.
    pub(crate) fn word(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        fs::read_to_string(self.path(name)).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    pub(crate) fn until(&self, name: &str) {
        until(&format!("{name} is written"), || fs::metadata(self.path(name)).is_ok_and(|file| file.len() > 0));
    }
}

/// The processes whose arguments contain this text.
pub(crate) fn processes(text: &str) -> Vec<i32> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let has = |pid: &i32| {
        let arguments = fs::read(Path::new("/proc").join(pid.to_string()).join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&arguments).contains(text)
    };
    pids.filter(has).collect()
}

/// The keys of holds, queues and tickets. Counters and labels outlive their programs.
pub(crate) fn left(server: &Server) -> Vec<String> {
    let stays = |key: &String| [":fence", ":changes", "{labels}", ":leases"].iter().any(|part| key.contains(part));
    server.keys().into_iter().filter(|key| !stays(key)).collect()
}

/// The number of waiters for a lock.
pub(crate) fn waiters(server: &Server, name: &str) -> usize {
    let key = format!("bowline:lock:{{{name}}}:queue");
    let kind: String = redis::cmd("TYPE").arg(&key).query(&mut server.client()).unwrap();
    let count = match kind.as_str() {
        "list" => "LLEN",
        "zset" => "ZCARD",
        "none" => return 0,
        other => panic!("a queue of the type {other}"),
    };
    redis::cmd(count).arg(&key).query(&mut server.client()).unwrap()
}
