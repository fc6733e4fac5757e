//! The arguments of what looks at the servers.

use std::time::Duration;

use bowline::{MAX_LEASE, MIN_LEASE};
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::duration;
use super::look::Form;

/// What doctor looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Check {
    Connect,
    Rights,
    Reachable,
    Version,
    Role,
    Eviction,
    Memory,
    Persistence,
    Replicas,
    MinReplicas,
    ReadOnly,
    Messages,
    User,
    Failover,
    Coverage,
    Clock,
}

impl Check {
    /// As in the arguments and in JSON.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// Asks the servers who they are, and tells what bowline would warn of. Exits with 1 if one does not answer.
#[derive(Debug, Args)]
pub(crate) struct Ping {
    #[command(flatten)]
    pub(crate) form: Form,
}

/// Checks the servers against docs/deployments.md of bowline, with one verdict a line.
///
/// Exits as monitors expect: 0 if all is well, 1 with a warning, 2 with something bad, and 3 if nothing is wrong, but
/// something could not be found out, or the arguments are wrong. Run it as a user who may read the settings
/// (+config|get), or most is unknown.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// The servers, as in --url.
    #[arg(value_name = "URL")]
    pub(crate) servers: Option<String>,

    /// The shortest lease in use, which a failover should not outlast: 100 ms to 24 h. Of use in a cluster only.
    #[arg(long, value_parser = lease, value_name = "TIME", default_value = "30s")]
    pub(crate) lease: Duration,

    /// Accepts what this check finds: replicas, persistence and so on. May be given several times.
    #[arg(long, value_name = "CHECK")]
    pub(crate) accept: Vec<Check>,

    /// How long to watch the servers' clocks for steps.
    #[arg(long, value_parser = duration, value_name = "TIME", default_value = "1s")]
    pub(crate) watch: Duration,

    #[command(flatten)]
    pub(crate) form: Form,
}

/// Shows the names in use in a table that follows them.
///
/// Keys: s sorts by the next column, r reverses, / filters, the arrows scroll, q ends. A wait is counted from when it
/// was first seen. The user needs the rights +scan and +info.
#[cfg(feature = "top")]
#[derive(Debug, Args)]
pub(crate) struct Top {
    /// What the names begin with.
    #[arg(default_value = "", hide_default_value = true, value_name = "START")]
    pub(crate) start: String,

    /// Only this kind.
    #[arg(long)]
    pub(crate) kind: Option<super::look::Kind>,

    /// The pause between two questions to the servers: at least 100 ms.
    #[arg(long, value_parser = every, value_name = "TIME", default_value = "1s")]
    pub(crate) every: Duration,
}

/// A lease that the library accepts.
fn lease(text: &str) -> Result<Duration, String> {
    let lease = duration(text)?;
    if (MIN_LEASE..=MAX_LEASE).contains(&lease) { Ok(lease) } else { Err("a lease is 100ms to 24h".to_owned()) }
}

/// The servers have other work to do.
#[cfg(feature = "top")]
fn every(text: &str) -> Result<Duration, String> {
    const SHORTEST: Duration = Duration::from_millis(100);
    duration(text).and_then(|time| if time < SHORTEST { Err("at least 100ms".to_owned()) } else { Ok(time) })
}
