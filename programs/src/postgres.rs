//! A PostgreSQL server of one program, in a directory that is removed at its end.

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;

/// A server that listens on a free port of this machine. Its user `postgres` needs no password.
#[derive(Debug)]
pub struct Postgres {
    process: Child,
    port: u16,
    /// Removed after the process has ended.
    _directory: TempDir,
}

impl Postgres {
    /// Starts a server. It may not accept connections yet. `None`: PostgreSQL is not installed.
    ///
    /// # Errors
    /// The server could not be started.
    pub fn start() -> io::Result<Option<Self>> {
        let Some(programs) = programs() else { return Ok(None) };
        let directory = tempfile::tempdir()?;
        let owner = owner()?;
        if let Some((user, group)) = owner {
            chown(directory.path(), Some(user), Some(group))?;
        }
        let data = directory.path().join("data");
        let made = command(&programs.join("initdb"), owner)
            .args(["--auth=trust", "--username=postgres", "--no-sync", "--pgdata"].map(OsStr::new))
            .arg(&data)
            .status()?;
        if !made.success() {
            return Err(io::Error::other(format!("initdb: {made}")));
        }
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let process = command(&programs.join("postgres"), owner)
            .args(["-D".as_ref(), data.as_os_str(), "-k".as_ref(), directory.path().as_os_str()])
            .args(["-p", &port.to_string(), "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"])
            .spawn()?;
        Ok(Some(Self { process, port, _directory: directory }))
    }

    /// The URL of its database.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // Ends at once, and gives its shared memory back.
        let pid = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw);
        if pid.is_some_and(|pid| kill_process(pid, Signal::QUIT).is_ok()) {
            let _ = self.process.wait();
        }
    }
}

/// The directory of `initdb` and `postgres`. Debian does not have it in the path.
fn programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let debian = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let versions = debian.map(|version| version.path().join("bin"));
    std::env::split_paths(&path).chain(versions).find(|directory| directory.join("initdb").exists())
}

fn command(program: &Path, owner: Option<(u32, u32)>) -> Command {
    let mut command = Command::new(program);
    // Root may not be able to enter the directory of another user.
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Some((user, group)) = owner {
        command.uid(user).gid(group);
    }
    command
}

/// PostgreSQL refuses to run as root. The user `postgres` comes with the package.
fn owner() -> io::Result<Option<(u32, u32)>> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    let id = |flag: &str| -> io::Result<u32> {
        let output = Command::new("id").args([flag, "postgres"]).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        text.trim().parse().map_err(|_| io::Error::new(ErrorKind::NotFound, "there is no user `postgres`"))
    };
    Ok(Some((id("-u")?, id("-g")?)))
}
