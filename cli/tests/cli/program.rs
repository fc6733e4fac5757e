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
/// `setsid` and `env` become the program, so that the process id is that of the program and of its session. A signal
/// that the tests were started to ignore, as in the background of a script, means to the program what it always means.
pub(crate) fn bowline(url: &str, arguments: &[&str]) -> Command {
    started_by(&["setsid", "env", "--default-signal"], url, arguments)
}

/// The program, started by other ones that become it.
pub(crate) fn started_by(others: &[&str], url: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(others[0]);
    command
        .args(&others[1..])
        .arg(BOWLINE)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
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

/// Kills what belongs to a session: the command of a program that is killed, and what that has started.
pub(crate) fn kill_session(leader: Pid) {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_in_it = |pid: &i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // State, parent, group and session stand behind the name.
        let session = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(3)?.parse::<i32>().ok());
        session == Some(leader.as_raw_nonzero().get())
    };
    for pid in pids.filter(is_in_it).filter_map(Pid::from_raw) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// A program that runs. Killed with its session when it is dropped.
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
        kill_session(self.pid());
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
