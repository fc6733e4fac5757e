//! The arguments of `run`.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;

use super::{duration, some_time};

/// As the table in README.md, in the form of a manual.
const EXIT_STATUS: &str = "Exit status:
    the command's own, or 128+n if it was killed by signal n
    1       the lock was not granted: --try, or the end of --timeout (-E sets another code)
    0       with --once: this period has had its run (-E sets another code)
    123     the lock was lost; the command was ended, or ended too late
    124     the command ran for longer than --at-most, and was ended
    125     bowline failed: wrong arguments, a server that cannot be used, no room for a process
    126     the command was found, and cannot be run
    127     the command was not found
    128+n   bowline got signal n while it waited, or a second one while it released";

/// Runs a command while it holds a lock.
///
/// The command finds the name in BOWLINE_NAME and the fencing token in BOWLINE_TOKEN. If the lease is about to be lost,
/// the command gets SIGTERM, and SIGKILL before anybody else can be granted the lock. The exit code is that of the
/// command, or one of those below.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_STATUS)]
pub(crate) struct Run {
    /// The name of the lock: any text of up to 512 bytes.
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub(crate) name: Option<String>,

    #[command(flatten)]
    pub(crate) mode: Mode,

    /// Does not wait: exits with the conflict exit code if the lock is not free.
    #[arg(long = "try", conflicts_with = "timeout")]
    pub(crate) no_wait: bool,

    /// Waits for that long, and then exits with the conflict exit code. Without it, it waits for as long as it takes.
    #[arg(long, value_parser = some_time, value_name = "TIME")]
    pub(crate) timeout: Option<Duration>,

    /// The lease, which is renewed while the command runs: 1 s to 24 h. It ends by itself if this machine fails.
    #[arg(long, value_parser = duration, value_name = "TIME", default_value = "30s")]
    pub(crate) lease: Duration,

    /// The time from SIGTERM to SIGKILL: at most a third of the lease. The default is 5 s, or a third of the lease if
    /// that is shorter.
    #[arg(long, value_parser = duration, value_name = "TIME")]
    pub(crate) kill_after: Option<Duration>,

    /// Ends a command that runs for longer, and exits with 124.
    #[arg(long, value_parser = some_time, value_name = "TIME")]
    pub(crate) at_most: Option<Duration>,

    /// The exit code if the lock was not granted. The default is 1. With --once, a period that has had its run is no
    /// error, and the default is 0.
    #[arg(short = 'E', long, value_name = "CODE")]
    pub(crate) conflict_exit_code: Option<u8>,

    /// What this holder is called where it is shown: up to 64 bytes. The default is the host and the process id.
    #[arg(long, value_name = "TEXT")]
    pub(crate) label: Option<String>,

    /// Shows neither the line of progress on a terminal nor a message when --timeout ends the wait. All else is told.
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// What is held. Without any of these, it is a lock.
#[derive(Debug, Default, Args)]
pub(crate) struct Mode {
    /// Reads under the read-write lock NAME: any number of readers at once, and no writer.
    #[arg(long, group = "mode")]
    pub(crate) shared: bool,

    /// Writes under the read-write lock NAME: alone.
    #[arg(long, group = "mode")]
    pub(crate) exclusive: bool,

    /// Takes N permits of the semaphore NAME, which has LIMIT.
    #[arg(long, value_parser = permits, group = "mode", value_name = "N/LIMIT")]
    pub(crate) permits: Option<(u32, u32)>,

    /// Runs at most once in each period of that length, over all machines, and never waits. Periods are those of the
    /// server's clock. A command that fails has run, too, unless --retry-on-error is given.
    #[arg(long, value_parser = duration, group = "mode", value_name = "PERIOD", conflicts_with_all = ["no_wait", "timeout"])]
    pub(crate) once: Option<Duration>,

    /// Campaigns in the election NAME, and runs the command while it leads.
    #[arg(long, group = "mode")]
    pub(crate) elect: bool,

    /// Takes all of these locks, in an order that is the same everywhere. Instead of NAME.
    #[arg(long, value_delimiter = ',', group = "mode", value_name = "A,B")]
    pub(crate) all: Vec<String>,

    /// With --once: the next call of the same period runs the command again after one that failed.
    #[arg(long, requires = "once")]
    pub(crate) retry_on_error: bool,
}

fn permits(text: &str) -> Result<(u32, u32), String> {
    let parsed = text.split_once('/').and_then(|(n, limit)| Some((n.parse().ok()?, limit.parse().ok()?)));
    parsed.ok_or_else(|| "write the number of permits and the limit as 1/4".to_owned())
}
