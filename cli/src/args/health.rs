//! The arguments of what looks at the servers.

use std::time::Duration;

use clap::Args;

use super::duration;
use super::look::Form;

/// Asks the servers who they are, and tells what bowline would warn of.
#[derive(Debug, Args)]
pub(crate) struct Ping {
    #[command(flatten)]
    pub(crate) form: Form,
}

/// Checks the servers against docs/deployments.md of bowline, with one verdict a line.
///
/// Exits as monitors expect: 0 if all is well, 1 with a warning, 2 with something bad, and 3 if nothing is wrong, but
/// something could not be found out. Run it as a user who may read the settings (+config|get), or most is unknown.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// The servers, as in --url.
    #[arg(value_name = "URL")]
    pub(crate) servers: Option<String>,

    /// The shortest lease in use, which a failover should not outlast.
    #[arg(long, value_parser = duration, value_name = "TIME", default_value = "30s")]
    pub(crate) lease: Duration,

    /// Accepts what this check finds: replicas, persistence and so on. May be given several times.
    #[arg(long, value_name = "CHECK")]
    pub(crate) accept: Vec<String>,

    /// How long to watch the servers' clocks for steps.
    #[arg(long, value_parser = duration, value_name = "TIME", default_value = "1s")]
    pub(crate) watch: Duration,

    #[command(flatten)]
    pub(crate) form: Form,
}
