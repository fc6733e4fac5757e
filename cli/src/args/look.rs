//! The arguments of what reads and changes the state of names.

use std::time::Duration;

use bowline::PrimitiveKind;
use clap::{Args, Subcommand, ValueEnum};

use super::{duration, some_time};

/// What a name is the name of. Names of different kinds are independent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    Lock,
    Rw,
    Semaphore,
    Latch,
    Barrier,
    DoubleBarrier,
    Once,
    Election,
    Rate,
    Redlock,
}

impl From<Kind> for PrimitiveKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Lock => Self::Lock,
            Kind::Rw => Self::RwLock,
            Kind::Semaphore => Self::Semaphore,
            Kind::Latch => Self::Latch,
            Kind::Barrier => Self::Barrier,
            Kind::DoubleBarrier => Self::DoubleBarrier,
            Kind::Once => Self::Once,
            Kind::Election => Self::Election,
            Kind::Rate => Self::RateLimiter,
            Kind::Redlock => Self::RedLock,
        }
    }
}

/// How the state of names is shown.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Form {
    /// Writes JSON, one document. Times are in milliseconds.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Shows who holds a name and who waits for it. Exits with 1 if the name is not in use.
#[derive(Debug, Args)]
pub(crate) struct Inspect {
    pub(crate) name: String,

    /// Only this kind. Without it, all kinds that are in use under this name.
    #[arg(long)]
    pub(crate) kind: Option<Kind>,

    #[command(flatten)]
    pub(crate) form: Form,
}

/// Shows who gets a name and who loses it, as it happens, until it is stopped. The user needs the right
/// +client|tracking.
#[derive(Debug, Args)]
pub(crate) struct Watch {
    pub(crate) name: String,

    /// What the name is the name of: a lock, if this is not given.
    #[arg(long)]
    pub(crate) kind: Option<Kind>,

    /// Exits after so many changes.
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<u64>,

    #[command(flatten)]
    pub(crate) form: Lines,
}

/// How what happens is shown.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Lines {
    /// Writes JSON, one document in each line. Times are in milliseconds.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Lists the names that are in use. The user needs the rights +scan and +info.
#[derive(Debug, Args)]
pub(crate) struct Ls {
    /// What the names begin with.
    #[arg(default_value = "", hide_default_value = true, value_name = "START")]
    pub(crate) start: String,

    /// Only this kind.
    #[arg(long)]
    pub(crate) kind: Option<Kind>,

    #[command(flatten)]
    pub(crate) form: Form,
}

/// Takes a lock, its readers and writer, or permits from the holders, at most 1,000 holds a call. The holders are told,
/// and may act until then. Exits with 1 if nothing is held.
#[derive(Debug, Args)]
pub(crate) struct Release {
    pub(crate) name: String,

    /// Says that it is meant so: another program loses its lock.
    #[arg(long, required = true)]
    pub(crate) force: bool,

    /// What the name is the name of: lock, rw or semaphore. Needed only if the name is held as several of these.
    #[arg(long)]
    pub(crate) kind: Option<Kind>,

    #[command(flatten)]
    pub(crate) form: Form,
}

/// Finds clients that wait for each other. Exits with 1 if there are any.
#[derive(Debug, Args)]
pub(crate) struct Deadlocks {
    /// What the names begin with.
    #[arg(default_value = "", hide_default_value = true, value_name = "START")]
    pub(crate) start: String,

    /// Only those that still last after this time.
    #[arg(long, value_parser = duration, value_name = "TIME")]
    pub(crate) lasting: Option<Duration>,

    #[command(flatten)]
    pub(crate) form: Form,
}

/// Shows who leads in an election. Exits with 1 if nobody leads.
#[derive(Debug, Args)]
pub(crate) struct Leader {
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) form: Form,
}

/// Sets, counts down, waits for and shows latches.
#[derive(Debug, Subcommand)]
pub(crate) enum Latch {
    /// Makes a latch with this count. Exits with 1 if there is one that is not at zero.
    Set {
        name: String,
        count: u32,
        /// How long the latch lives.
        #[arg(long, value_parser = duration, value_name = "TIME", default_value = "1h")]
        ttl: Duration,
    },
    /// Counts down by one, and prints what is left.
    CountDown { name: String },
    /// Waits until the count is zero. Exits with 0 at once if there is no latch, with 1 if the time is over before, and
    /// with 125 if the latch ends before it is counted down.
    Wait {
        name: String,
        #[arg(long, value_parser = some_time, value_name = "TIME")]
        timeout: Option<Duration>,
    },
    /// Shows the count, and who waits. Exits with 1 if there is no latch.
    Show {
        name: String,
        #[command(flatten)]
        form: Form,
    },
    /// Ends a latch. Its waiters fail. Exits with 1 if there is none.
    Delete { name: String },
}
