//! The settings of a client.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

#[cfg(doc)]
use crate::error::ErrorKind;
use crate::error::Result;
use crate::protocol::key;

mod checks;
#[cfg(feature = "serde")]
mod form;

pub use checks::{MAX_LABEL, MAX_LEASE, MIN_LEASE};
pub(crate) use checks::{check_label, check_lease, check_replicas};

/// The settings of a [`Client`](crate::Client), made by [`Config::builder`] or [`Config::default`]. All values are
/// valid. One `Config` can serve any number of clients.
///
/// | setting | default | meaning |
/// |---|---|---|
/// | [`prefix`](ConfigBuilder::prefix) | `bowline` | start of all keys and channels |
/// | [`lease`](ConfigBuilder::lease) | 30 s | lease of renewed holds, renewed every third of its length |
/// | [`command_timeout`](ConfigBuilder::command_timeout) | 3 s | longest wait for the answer to one command |
/// | [`retry_timeout`](ConfigBuilder::retry_timeout) | 10 s | how long an operation is retried while the server gives no usable answer |
/// | [`handoff_time`](ConfigBuilder::handoff_time) | 100 ms | how long a grant is handed off within a cohort of non-fair acquisitions |
/// | [`shutdown_timeout`](ConfigBuilder::shutdown_timeout) | 1 s | how long the shutdown of the runtime may block to release holds |
/// | [`label`](ConfigBuilder::label) | none | what the client is called where its holds and waiters are shown |
/// | [`acknowledged_by`](ConfigBuilder::acknowledged_by) | 0 | how many replicas must have a grant or a renewal before it counts |
/// | [`client_id`](ConfigBuilder::client_id) | random | the identity of the client in Redis, for deterministic tests |
/// | [`names_in_metrics`](ConfigBuilder::names_in_metrics) | no | whether metrics are labelled with names |
/// | [`connect_in_background`](ConfigBuilder::connect_in_background) | no | whether the client can be used before its server is up |
///
/// # Files and the environment
/// With the feature `serde`, a `Config` is read from any format, and written. Settings that are left out have their
/// defaults. Durations are text with units: `"30s"`, `"100ms"`, `"1m 30s"`. The checks and their messages are those of
/// [`build`](ConfigBuilder::build), and a name that is no setting is an error. A `Config` contains no secret.
/// ```
/// # #[cfg(feature = "serde")] {
/// let config: bowline::Config = toml::from_str("prefix = 'shop'\nlease = '20s'")?;
/// // SHOP_LOCK_PREFIX, SHOP_LOCK_LEASE and so on.
/// let config: bowline::Config = envy::prefixed("SHOP_LOCK_").from_env()?;
/// # }
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) prefix: String,
    pub(crate) lease: Duration,
    pub(crate) command_timeout: Duration,
    pub(crate) retry_timeout: Duration,
    pub(crate) handoff_time: Duration,
    pub(crate) shutdown_timeout: Duration,
    /// How many replicas must acknowledge a grant. With 0, the primary's answer is enough.
    pub(crate) replicas: u32,
    /// `None`: each client draws an identity when it connects.
    pub(crate) client_id: Option<Uuid>,
    /// What the client is called where its holds and waiters are shown. Empty: nothing.
    pub(crate) label: Arc<str>,
    /// Whether connecting returns before there is a connection.
    pub(crate) is_in_background: bool,
    /// Whether metrics have a label with the name of the primitive.
    pub(crate) names_in_metrics: bool,
}

impl Config {
    /// A builder that starts with the defaults.
    pub fn builder() -> ConfigBuilder {
        ConfigBuilder::default()
    }

    /// The longest wait for one answer. For implementations of [`Connection`](crate::Connection), which keep it.
    pub fn command_timeout(&self) -> Duration {
        self.command_timeout
    }

    /// The time limit for the connection's own work after the first connect, such as a reconnect or a heartbeat. It is
    /// at most a third of the lease, so that enough time is left for another attempt if the network drops packets
    /// silently.
    #[cfg(any(test, feature = "_redis"))]
    pub(crate) fn upkeep(&self) -> Duration {
        const SHORTEST: Duration = Duration::from_millis(500);
        self.command_timeout.min(SHORTEST.max(self.lease / 3))
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            prefix: key::DEFAULT_PREFIX.to_owned(),
            lease: Duration::from_secs(30),
            command_timeout: Duration::from_secs(3),
            retry_timeout: Duration::from_secs(10),
            handoff_time: Duration::from_millis(100),
            shutdown_timeout: Duration::from_secs(1),
            replicas: 0,
            client_id: None,
            label: "".into(),
            is_in_background: false,
            names_in_metrics: false,
        }
    }
}

/// A builder of a [`Config`]. [`build`](Self::build) checks all settings.
#[derive(Clone, Debug, Default)]
#[must_use = "call build()"]
pub struct ConfigBuilder {
    config: Config,
}

impl ConfigBuilder {
    /// The start of all keys and channels: 1 to 64 bytes, without spaces, control characters and `{}*?[]`. The default
    /// is `bowline`. Clients with different prefixes do not affect each other.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.config.prefix = prefix.into();
        self
    }

    /// The lease of holds that set [none of their own](crate::Acquire::lease): [100 ms](MIN_LEASE) to [24
    /// h](MAX_LEASE). The default is 30 s.
    ///
    /// The watchdog renews it every third of its length. The lease limits how long a crashed holder blocks others. It
    /// does not limit how long a hold may last.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.config.lease = lease;
        self
    }

    /// The longest wait for the answer to one command, including connecting: 10 ms to 10 min. The default is 3 s. An
    /// operation waits for less if its own time is over before: see [`retry_timeout`](Self::retry_timeout).
    ///
    /// Set it to at most half of the shortest renewed lease, or better to a tenth: an unanswered renewal is sent again
    /// and needs time for that. A renewal waits for half of what is left of its lease at most, but for at least 100 ms.
    /// Every other command on a silent connection waits for the whole timeout.
    pub fn command_timeout(mut self, timeout: Duration) -> Self {
        self.config.command_timeout = timeout;
        self
    }

    /// How long an operation is retried while the server gives no usable answer: up to 24 h. The default is 10 s.
    ///
    /// After that time, to the precision of the runtime's timers, the operation fails with
    /// [`Unavailable`](ErrorKind::Unavailable) or with the server's refusal. This holds for every operation of every
    /// primitive, whatever the client waits for: an answer, a connection, or the end of a pause between two requests. A
    /// request that is cut off in this way may still be executed. With zero, no request is sent again, and each waits
    /// for the [`command_timeout`](Self::command_timeout) at most.
    ///
    /// The time counts from the first request that got no usable answer. For an acquisition that waits in the queue,
    /// that is the first heartbeat of its ticket without an answer: one is sent when a connection is lost, and every
    /// few seconds otherwise. A party [`Inside`](crate::Inside) has its lease, if that ends later. The members of a
    /// [cohort](crate::Acquire::non_fair) share its requests: those that waited when the request began fail with it,
    /// and for one that joins later the time counts from when it joined. A [`RedLock`](crate::RedLock) counts the time
    /// without a majority of its masters, and asks each of them for at most a quarter of it. Waiting for the replicas
    /// of [`acknowledged_by`](Self::acknowledged_by) has a limit of its own, and waiting for a lock that others hold
    /// has [`Acquire::timeout`](crate::Acquire::timeout). Of an operation with both limits, the one that is over first
    /// decides.
    pub fn retry_timeout(mut self, retry_timeout: Duration) -> Self {
        self.config.retry_timeout = retry_timeout;
        self
    }

    /// How long after a grant the hold is handed off within a cohort before other waiters have their turn: up to 10 s.
    /// The default is 100 ms. Zero turns the hand-off off.
    pub fn handoff_time(mut self, time: Duration) -> Self {
        self.config.handoff_time = time;
        self
    }

    /// How long the thread that shuts down the runtime may block to release holds and leave queues: up to 10 s. The
    /// default is 1 s. With zero nothing is released, and the holds end with their leases.
    ///
    /// This is a last resort for a program that returns from `main` without [`close`](crate::Client::close). It works
    /// only if the runtime is shut down: tokio's is at the end of `#[tokio::main]`, those of smol and async-std never
    /// are. A process that is killed or calls [`exit`](std::process::exit) releases nothing.
    /// [`close`](crate::Client::close), [`Client::scope`](crate::Client::scope) and
    /// [`Acquire::run`](crate::Acquire::run) release on every runtime.
    pub fn shutdown_timeout(mut self, timeout: Duration) -> Self {
        self.config.shutdown_timeout = timeout;
        self
    }

    /// How many replicas must acknowledge each grant and each renewal before it counts, up to 100. The default, 0,
    /// waits for none.
    ///
    /// A primary that fails may lose its last writes: those that no replica has. With this set, a guard is handed out
    /// only when that many replicas have the grant, and a lease grows only when they have its renewal. If it is set to
    /// the number of replicas, a failover to any of them keeps every hold. With fewer, it keeps those of the replica
    /// that is promoted. Redis remains a store that can lose data in other ways, so the
    /// [token](crate::LockGuard::token) stays the proof.
    ///
    /// A lone acquisition needs no extra round trip: its request waits for the replicas. Acquisitions at the same time
    /// share one more. `WAIT` runs on a connection of its own for each number of replicas. An acquisition that is not
    /// acknowledged within [`retry_timeout`](Self::retry_timeout), or [`command_timeout`](Self::command_timeout) if
    /// that is longer, is released, and fails with [`Unacknowledged`](ErrorKind::Unacknowledged). So does one whose
    /// lease ends before. The user needs the right to run `WAIT`, which is checked when the client connects. Whether
    /// there are enough replicas is not.
    ///
    /// One acquisition can choose differently: [`Acquire::acknowledged_by`](crate::Acquire::acknowledged_by).
    pub fn acknowledged_by(mut self, replicas: u32) -> Self {
        self.config.replicas = replicas;
        self
    }

    /// The identity of the client in Redis, for deterministic tests. By default, and with a nil `id`, each client draws
    /// a random identity when it connects.
    ///
    /// Two connected clients with one identity would confuse their holds. Connecting with the identity of a connected
    /// client therefore fails with [`ClientIdInUse`](ErrorKind::ClientIdInUse): see
    /// [`Client::connect`](crate::Client::connect). A program that starts again must not use the identity of its last
    /// run either. It numbers its calls from the start, and the server would take them for late copies of calls that it
    /// remembers: for some minutes, and by a [`Once`](crate::Once) for as long as its keys live.
    pub fn client_id(mut self, id: Uuid) -> Self {
        self.config.client_id = Some(id).filter(|id| !id.is_nil());
        self
    }

    /// What the client is called where its holds and waiters are shown, such as the name of its host: up to 64 bytes
    /// ([`MAX_LABEL`]) without control characters. By default it has no label.
    ///
    /// `inspect` shows the labels of those who hold and wait, and that of a [`RedLock`](crate::RedLock) those who hold.
    /// It asks for them by a second command, and shows none if that fails. The label is the default label of
    /// [`Election::label`](crate::Election::label). If an acquisition with a [timeout](crate::Acquire::timeout) of 100
    /// ms or more times out, its [error](crate::Error) says who held the name shortly before, and how many were before
    /// it in the queue. For that, it sends two commands when nine tenths of its timeout are over, or 1 s before the
    /// end if that is later. Of more than 16 that would ask at the same time, only 16 do. A `RedLock` does not ask.
    ///
    /// The client stores its label when it connects, and then every 5 min: one command. A label that the server has
    /// lost, in a failover for example, is therefore missing for up to 5 min. It is removed when the client is closed
    /// or dropped, if the server answers. That of a client that was killed lasts 15 min by the server's clock.
    /// Everybody who may read from the server can read it.
    pub fn label(mut self, label: impl Into<Arc<str>>) -> Self {
        self.config.label = label.into();
        self
    }

    /// Whether the metrics of waits and holds have a label with the name of the primitive. The default is `false`,
    /// because each name becomes a series of its own. Without the feature `metrics`, the setting has no effect.
    pub fn names_in_metrics(mut self, yes: bool) -> Self {
        self.config.names_in_metrics = yes;
        self
    }

    /// Whether connecting returns at once, and goes on in the background until it has succeeded. The default is
    /// `false`: connecting fails if the server is down.
    ///
    /// Set it for a program that may start before its server, or for the masters of a [`RedLock`](crate::RedLock),
    /// which can do without a minority of them. Everything that connecting does is done as soon as the server can be
    /// reached: the login, the checks of the server and of the user's rights, the subscription. Attempts follow each
    /// other with growing, jittered pauses of up to about 1 s, and do not end before the client is
    /// [closed](crate::Client::close) or dropped.
    ///
    /// Until then:
    /// - Connecting fails with [`InvalidInput`](ErrorKind::InvalidInput) only, such as for an invalid URL.
    /// - Operations wait for the connection, for the [`retry_timeout`](Self::retry_timeout) at most. After that they
    ///   fail with [`Unavailable`](ErrorKind::Unavailable) and the reason why the last attempt failed.
    /// - If an attempt failed with an error that time does not mend, such as [`Denied`](ErrorKind::Denied) for a wrong
    ///   password or a missing right, each operation fails with that error at once. Attempts go on, so that no new
    ///   client is needed once the setup is corrected.
    /// - [`Client::warnings`](crate::Client::warnings) is empty.
    ///
    /// The first of several attempts that fail for the same reason is logged by the feature `tracing`. To see at the
    /// start of the program whether the server can be used, [`inspect`](crate::Lock::inspect) any lock.
    ///
    /// # Examples
    /// ```no_run
    /// # #[cfg(feature = "tokio")]
    /// # async fn example() -> bowline::Result<()> {
    /// let config = bowline::Config::builder().connect_in_background(true).build()?;
    /// let client = bowline::tokio::connect_with("redis://127.0.0.1/", config).await?;
    /// // Waits until the server is up, or fails after the retry_timeout.
    /// let guard = client.lock("orders:42").lock().await?;
    /// # guard.release().await }
    /// ```
    pub fn connect_in_background(mut self, in_background: bool) -> Self {
        self.config.is_in_background = in_background;
        self
    }

    /// Checks the settings and makes the `Config`.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput), with a message that names the setting.
    pub fn build(self) -> Result<Config> {
        let Config { prefix, label, lease, command_timeout, retry_timeout, .. } = &self.config;
        key::check_prefix(prefix).map_err(|error| error.during("config"))?;
        check_lease("config", *lease)?;
        let Config { handoff_time, shutdown_timeout, replicas, .. } = self.config;
        checks::check_times(*command_timeout, *retry_timeout, handoff_time, shutdown_timeout)?;
        check_replicas("config", replicas)?;
        check_label("config", label)?;
        Ok(self.config)
    }
}

#[cfg(test)]
mod tests;
