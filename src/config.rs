//! The settings of a client, checked once.

use std::time::Duration;

use uuid::Uuid;

use crate::error::{Error, ErrorKind, Result};
use crate::protocol::key;

/// The settings of a [`Client`](crate::Client). Made by [`Config::builder`], or [`Config::default`]; every value is valid once built. Clones may serve
/// as many clients as there are to be.
///
/// | setting | default | meaning |
/// |---|---|---|
/// | [`prefix`](ConfigBuilder::prefix) | `bowline` | what all keys and channels start with |
/// | [`lease`](ConfigBuilder::lease) | 30 s | lease of renewed holds; renewed every third of it |
/// | [`command_timeout`](ConfigBuilder::command_timeout) | 3 s | longest wait for the answer to one command |
/// | [`retry_timeout`](ConfigBuilder::retry_timeout) | 10 s | how long an operation keeps trying while the server gives no answer |
/// | [`handoff_time`](ConfigBuilder::handoff_time) | 100 ms | how long what was granted is handed on among the client's own non-fair acquisitions |
/// | [`shutdown_timeout`](ConfigBuilder::shutdown_timeout) | 250 ms | how long the end of the runtime may wait for what is held to be released |
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) prefix: String,
    pub(crate) lease: Duration,
    pub(crate) command_timeout: Duration,
    pub(crate) retry_timeout: Duration,
    pub(crate) handoff_time: Duration,
    pub(crate) shutdown_timeout: Duration,
    /// Only if the user has set one: else each client draws its own.
    pub(crate) client_id: Option<Uuid>,
}

impl Config {
    /// Starts from the defaults.
    pub fn builder() -> ConfigBuilder {
        ConfigBuilder::default()
    }

    /// How long the connections' own work may take, after the first: an attempt to connect, a heartbeat. No longer than a third
    /// of the lease: what is lost in a black hole must leave time for another attempt.
    #[cfg(any(test, feature = "_redis"))]
    pub(crate) fn upkeep(&self) -> Duration {
        const SHORTEST: Duration = Duration::from_millis(500);
        self.command_timeout.min(SHORTEST.max(self.lease / 3))
    }
}

/// The defaults.
impl Default for Config {
    fn default() -> Self {
        Self {
            prefix: "bowline".to_owned(),
            lease: Duration::from_secs(30),
            command_timeout: Duration::from_secs(3),
            retry_timeout: Duration::from_secs(10),
            handoff_time: Duration::from_millis(100),
            shutdown_timeout: Duration::from_millis(250),
            client_id: None,
        }
    }
}

/// Builds a [`Config`].
#[derive(Clone, Debug, Default)]
#[must_use = "call build()"]
pub struct ConfigBuilder {
    config: Config,
}

impl ConfigBuilder {
    /// What all keys and channels start with: 1 to 64 bytes, without spaces, control characters and `{}*?[]`. Clients with
    /// different prefixes do not see each other.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.config.prefix = prefix.into();
        self
    }

    /// The lease of holds that ask for [none of their own](crate::Acquire::lease), [100 ms](MIN_LEASE) to [24 h](MAX_LEASE). The watchdog
    /// renews it every third of its length, so it bounds how long a crashed holder blocks the others, not how long
    /// a hold may last.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.config.lease = lease;
        self
    }

    /// How long one command may take, connecting included, 10 ms to 10 min.
    ///
    /// It should be at most half of the shortest renewed lease, better a tenth: a renewal whose answer does not come is sent
    /// again, and needs time for that. A renewal is not waited for longer than its lease allows, whatever is set here; what else
    /// hangs on a silent connection is.
    pub fn command_timeout(mut self, timeout: Duration) -> Self {
        self.config.command_timeout = timeout;
        self
    }

    /// How long an operation keeps trying while the server gives no usable answer, before it fails with
    /// [`Unavailable`](ErrorKind::Unavailable) or the server's refusal; up to 24 h. Waiting for a lock that others
    /// hold is not limited by this.
    pub fn retry_timeout(mut self, retry_timeout: Duration) -> Self {
        self.config.retry_timeout = retry_timeout;
        self
    }

    /// For how long after its grant a lock, a write, or permits of a semaphore may be handed on among
    /// [non-fair](crate::Acquire::non_fair) acquisitions of this client, before the acquisitions of other
    /// clients have their turn; up to 10 s. Zero hands nothing on.
    pub fn handoff_time(mut self, time: Duration) -> Self {
        self.config.handoff_time = time;
        self
    }

    /// For how long the thread that shuts the runtime down may block, so that a program that returns from `main` without
    /// [`close`](crate::Client::close) still releases what it holds and leaves the queues that it waits in; up to 10 s.
    /// Zero releases nothing then, and the holds end with their leases.
    ///
    /// A last resort: it works only where a runtime is shut down (tokio's is, at the end of `#[tokio::main]`; those of smol and
    /// async-std never are), and a server that does not answer within this time is not waited for.
    /// [`close`](crate::Client::close), [`Client::scope`](crate::Client::scope) and [`Acquire::run`](crate::Acquire::run) are
    /// awaited, on every runtime. A process that is killed or calls [`exit`](std::process::exit) releases nothing.
    pub fn shutdown_timeout(mut self, timeout: Duration) -> Self {
        self.config.shutdown_timeout = timeout;
        self
    }

    /// The identity of the client in Redis, for deterministic tests. Without it, and with a nil one, each client draws an
    /// identity of its own when it connects, so that one `Config` may serve many clients.
    ///
    /// Two living clients with one identity would take each other's holds for their own, so connecting with the identity of a
    /// living client fails with [`ClientIdInUse`](ErrorKind::ClientIdInUse): see [`Client::connect`](crate::Client::connect).
    pub fn client_id(mut self, id: Uuid) -> Self {
        self.config.client_id = Some(id).filter(|id| !id.is_nil());
        self
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput), naming the setting.
    pub fn build(self) -> Result<Config> {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        let config = &self.config;
        key::check_prefix(&config.prefix).map_err(|error| error.during("config"))?;
        check_lease("config", config.lease)?;
        if !(Duration::from_millis(10)..=Duration::from_secs(600)).contains(&config.command_timeout) {
            return Err(invalid("config", "command_timeout must be 10 ms to 10 min"));
        }
        if config.retry_timeout > DAY {
            return Err(invalid("config", "retry_timeout must be at most 24 h"));
        }
        if config.handoff_time > Duration::from_secs(10) {
            return Err(invalid("config", "handoff_time must be at most 10 s"));
        }
        if config.shutdown_timeout > Duration::from_secs(10) {
            return Err(invalid("config", "shutdown_timeout must be at most 10 s"));
        }
        Ok(self.config)
    }
}

/// The shortest lease: shorter ones would end between two commands on an ordinary network.
pub const MIN_LEASE: Duration = Duration::from_millis(100);

/// The longest lease. The fencing counter in Redis is kept for twice the lease after a grant, 1 h at least.
pub const MAX_LEASE: Duration = Duration::from_secs(24 * 60 * 60);

pub(crate) fn check_lease(operation: &'static str, lease: Duration) -> Result<()> {
    if (MIN_LEASE..=MAX_LEASE).contains(&lease) {
        Ok(())
    } else {
        Err(invalid(operation, format!("a lease must be 100 ms to 24 h, not {lease:?}")))
    }
}

fn invalid(operation: &'static str, reason: impl Into<String>) -> Error {
    Error::because(ErrorKind::InvalidInput, operation, reason)
}

#[cfg(test)]
mod tests;
