//! The public handle on a server.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::clock::{Clock, wall_clock};
use super::connection::EmbeddedConnection;
use super::identity::Identity;
use super::interpreter::Program;
use super::keyspace::Entry;
use super::shared::Shared;
use crate::client::Client;
use crate::config::Config;
use crate::connection::{ConnectionError, Reply};
use crate::error::Result;
use crate::runtime::Executor;

/// A server that runs bowline's scripts in this process. Clones are handles on the same server.
///
/// It executes the same Lua that is sent to Redis, one script at a time. Data types, errors, expiry and counts of
/// receivers are those of Redis: a differential test sends the same random calls to it and to real servers, and
/// compares replies, errors, keys, expiry times and messages.
///
/// # Not guaranteed
/// - Persistence: all data is lost with the last handle.
/// - Exclusion of other processes: nothing outside of this process can reach the server.
/// - Commands that bowline's scripts do not use: they are unknown.
/// - A time limit: a script that never ends is not stopped.
///
/// # Time
/// Leases, tokens and `TIME` use one clock, which stands still while a script runs. By default it starts at the wall
/// clock's time and follows [`Executor::now`] of the first executor that connects. A [`manual`] clock moves only by
/// [`advance`]. Both kinds can be [set](Self::set_clock), to test a clock that jumps.
///
/// [`manual`]: Self::manual
/// [`advance`]: Self::advance
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
}

impl Server {
    /// An empty server whose clock starts at the wall clock's time. It stands still until the first connection, and
    /// then follows the clock of that connection's executor.
    pub fn new() -> Self {
        Self::with_clock(Clock::starting_at(wall_clock()))
    }

    /// An empty server as made by [`new`](Self::new), whose clock starts `since_epoch` after the Unix epoch. A test
    /// that uses it does not depend on the time of day.
    pub fn starting_at(since_epoch: Duration) -> Self {
        Self::with_clock(Clock::starting_at(since_epoch))
    }

    /// An empty server whose clock starts at 2026-01-01 and moves only by [`advance`](Self::advance) and
    /// [`set_clock`](Self::set_clock).
    ///
    /// Clients still measure their leases with the clock of their executor.
    pub fn manual() -> Self {
        Self::with_clock(Clock::manual())
    }

    fn with_clock(clock: Clock) -> Self {
        Self { shared: Arc::new(Shared::new(clock)) }
    }

    /// Connects a client to this server with the default settings.
    ///
    /// # Errors
    /// Those of [`Client::connect`].
    ///
    /// # Cancel safety
    /// That of [`Client::connect`].
    pub fn client<E: Executor>(&self, executor: E) -> impl Future<Output = Result<Client>> + Send + use<E> {
        self.client_with(executor, Config::default())
    }

    /// Connects a client to this server with the settings in `config`.
    ///
    /// # Errors
    /// Those of [`Client::connect`].
    ///
    /// # Cancel safety
    /// That of [`Client::connect`].
    pub fn client_with<E: Executor>(
        &self,
        executor: E,
        config: Config,
    ) -> impl Future<Output = Result<Client>> + Send + use<E> {
        let executor: Arc<dyn Executor> = Arc::new(executor);
        let connection = Arc::new(self.connect(executor.clone()));
        Client::connect(executor, connection, config)
    }

    /// A connection for one client. The executor is used as a clock only.
    pub fn connect(&self, executor: Arc<dyn Executor>) -> EmbeddedConnection {
        self.shared.with(|clock, _| clock.follow(executor));
        EmbeddedConnection::new(self.shared.clone())
    }

    /// The server's time since the Unix epoch.
    pub fn now(&self) -> Duration {
        self.shared.with(|clock, _| clock.now())
    }

    /// Moves the server's clock forward. Keys that are due by then expire.
    pub fn advance(&self, by: Duration) {
        self.shared.with(|clock, _| clock.set(clock.now().saturating_add(by)));
    }

    /// Sets the server's clock forward or back, as an administrator could. The clock continues from the new time.
    pub fn set_clock(&self, since_epoch: Duration) {
        self.shared.with(|clock, _| clock.set(since_epoch));
    }

    /// Removes every key, as `FLUSHALL` does. Subscriptions continue.
    pub fn flush_all(&self) {
        self.shared.with(|_, database| database.flush());
    }

    /// Begins a new process with the same keys, as a server that stores every write does after a crash. Call
    /// [`flush_all`](Self::flush_all), too, for a server that has lost them.
    ///
    /// A [`RedLock`](crate::RedLock) notices: a new server has been up for ever, and a restarted one since then. A
    /// listing of [names](crate::Client::names) notices, too, and begins again. Connections and subscriptions continue.
    pub fn restart(&self) {
        self.shared.with(|clock, database| database.identity = Identity::started_at(clock.now()));
    }

    /// Answers every command that writes with the error `line` until `None` is set.
    ///
    /// A real server does the same after it became a replica (`READONLY ...`), if it has too few replicas
    /// (`NOREPLICAS ...`) or if it cannot store (`MISCONF ...`). Commands that read still work, and so does `PUBLISH`.
    /// A script runs until its first write.
    pub fn refuse_writes(&self, line: Option<&str>) {
        self.shared.with(|_, database| database.refusal = line.map(str::to_owned));
    }

    /// Runs a Lua script, as `EVAL` does. Tests use it to read keys or to damage them. `source` is text: bytecode is
    /// refused.
    ///
    /// # Errors
    /// [`Refused`](ConnectionError::Refused) with the code that Redis would send, if the script does not compile or
    /// raises an error.
    pub fn eval(&self, source: &str, keys: &[&[u8]], args: &[&[u8]]) -> Result<Reply, ConnectionError> {
        self.shared.run(Program::Source(source), keys.iter().copied(), args.iter().copied()).0
    }

    /// All keys that have not expired, with their values.
    pub fn dump(&self) -> BTreeMap<Vec<u8>, Entry> {
        self.shared.with(|clock, database| {
            database.begin(clock.now());
            database.dump()
        })
    }
}

impl Default for Server {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}
