//! A server in this process, for tests and for programs that are alone: the same scripts, no network, no Redis.
//!
//! ```
//! # #[cfg(feature = "tokio")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> bowline::Result<()> {
//! use std::time::Duration;
//!
//! use bowline::{embedded::Server, tokio::Tokio};
//!
//! let server = Server::new();
//! let client = server.client(Tokio::current()?).await?;
//!
//! let guard = client.lock("orders:42").lock().expires_after(Duration::from_secs(10)).await?;
//! // What happens to a holder that was paused for too long?
//! server.advance(Duration::from_secs(11));
//! assert!(client.lock("orders:42").try_lock().await?.is_some());
//! # drop(guard);
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "tokio"))]
//! # fn main() {}
//! ```

mod channels;
mod clock;
mod commands;
mod connection;
mod convert;
mod interpreter;
mod keyspace;
mod number;
mod values;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::client::Client;
use crate::config::Config;
use crate::connection::{ConnectionError, Reply};
use crate::error::Result;
use crate::mutex::lock;
use crate::runtime::Executor;

use channels::Queue;
use clock::Clock;
pub use connection::EmbeddedConnection;
use interpreter::{Interpreter, Program};
use keyspace::Database;
pub use keyspace::{Content, Entry};

/// A server that runs bowline's scripts in this process. Clones are the same server.
///
/// It executes exactly the Lua that is sent to Redis, one script at a time, on data types, errors, expiry and receiver
/// counts that are Redis' own: a test sends the same random calls to it and to real servers and compares everything.
///
/// # What it is not
/// - It stores nothing: what it knows is gone with its last handle.
/// - Nothing outside of this process can reach it, so locks exclude only what is in the process.
/// - It knows the commands, and the forms of them, that the scripts use, and no others.
/// - A script that never ends is not stopped.
///
/// # Time
/// One clock counts for leases, tokens and `TIME`, and it stands still while a script runs. By default it starts at
/// the wall clock and goes on as [`Executor::now`] does for the first executor that is connected; a [`manual`] one
/// moves by [`advance`] only. Both can be set, to see what a clock that jumps does.
///
/// [`manual`]: Self::manual
/// [`advance`]: Self::advance
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
}

/// Held while a script runs, and that makes scripts atomic.
struct State {
    clock: Clock,
    /// Made by the first script.
    interpreter: Option<Interpreter>,
    /// Shared with the interpreter, whose scripts reach it through `redis.call`.
    database: Arc<Mutex<Database>>,
}

impl Server {
    /// An empty server whose clock starts at the wall clock's time, and goes as that of the first executor that
    /// [`connect`](Self::connect) is given. Until then it stands.
    pub fn new() -> Self {
        Self::with_clock(Clock::starting_at(clock::wall_clock()))
    }

    /// As [`new`](Self::new), but starting this long after the Unix epoch: nothing depends on when it runs.
    pub fn starting_at(since_epoch: Duration) -> Self {
        Self::with_clock(Clock::starting_at(since_epoch))
    }

    /// An empty server whose clock moves by hand only, from a fixed date on (2026-01-01).
    ///
    /// Clients measure their leases on their executor's clock, which this one has nothing to do with.
    pub fn manual() -> Self {
        Self::with_clock(Clock::manual())
    }

    fn with_clock(clock: Clock) -> Self {
        let state = State { clock, interpreter: None, database: Arc::default() };
        Self { shared: Arc::new(Shared { state: Mutex::new(state) }) }
    }

    /// A client of this server, with the default settings.
    ///
    /// # Errors
    /// Those of [`Client::connect`].
    ///
    /// # Cancel safety
    /// That of [`Client::connect`].
    pub fn client<E: Executor>(&self, executor: E) -> impl Future<Output = Result<Client>> + Send + use<E> {
        self.client_with(executor, Config::default())
    }

    /// As [`client`](Self::client), with settings of one's own.
    ///
    /// # Errors
    /// As [`client`](Self::client).
    ///
    /// # Cancel safety
    /// As [`client`](Self::client).
    pub fn client_with<E: Executor>(
        &self,
        executor: E,
        config: Config,
    ) -> impl Future<Output = Result<Client>> + Send + use<E> {
        let executor: Arc<dyn Executor> = Arc::new(executor);
        let connection = Arc::new(self.connect(executor.clone()));
        Client::connect(executor, connection, config)
    }

    /// A connection for one client. The executor is asked for the time and nothing else.
    pub fn connect(&self, executor: Arc<dyn Executor>) -> EmbeddedConnection {
        lock(&self.shared.state).clock.follow(executor);
        EmbeddedConnection::new(self.clone())
    }

    /// The server's time, since the Unix epoch.
    pub fn now(&self) -> Duration {
        lock(&self.shared.state).clock.now()
    }

    /// Moves the server's clock forward, and expires what is due by then.
    pub fn advance(&self, by: Duration) {
        let mut state = lock(&self.shared.state);
        let now = state.clock.now();
        state.clock.set(now.saturating_add(by));
    }

    /// Sets the server's clock, forward or back, as an administrator would. It goes on from there.
    pub fn set_clock(&self, since_epoch: Duration) {
        lock(&self.shared.state).clock.set(since_epoch);
    }

    /// Removes every key, as `FLUSHALL` does. Subscriptions stay.
    pub fn flush_all(&self) {
        let state = lock(&self.shared.state);
        lock(&state.database).flush();
    }

    /// From now on every command that writes is answered with this line, as a real server does that was made a replica
    /// (`READONLY ...`), has too few replicas (`NOREPLICAS ...`) or cannot store (`MISCONF ...`). Commands that read go on,
    /// and so does `PUBLISH`; scripts run until they write. `None` ends it.
    pub fn refuse_writes(&self, line: Option<&str>) {
        let state = lock(&self.shared.state);
        lock(&state.database).refusal = line.map(str::to_owned);
    }

    /// Runs a Lua script of the caller's, as `EVAL` does: to look at keys, or to damage them.
    ///
    /// # Errors
    /// [`Refused`](ConnectionError::Refused), with Redis' code, if it does not compile or raises an error.
    pub fn eval(&self, source: &str, keys: &[&[u8]], args: &[&[u8]]) -> Result<Reply, ConnectionError> {
        self.run(Program::Source(source), keys.iter().copied(), args.iter().copied())
    }

    /// Everything that is stored and has not expired, by key.
    pub fn dump(&self) -> BTreeMap<Vec<u8>, Entry> {
        let state = lock(&self.shared.state);
        let now = state.clock.now();
        let mut database = lock(&state.database);
        database.begin(now);
        database.dump()
    }

    fn run<'a>(
        &self,
        program: Program<'_>,
        keys: impl Iterator<Item = &'a [u8]>,
        args: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Reply, ConnectionError> {
        let (answer, wakers) = {
            let mut state = lock(&self.shared.state);
            let state = &mut *state;
            let now = state.clock.now();
            lock(&state.database).begin(now);
            let answer = run(&mut state.interpreter, &state.database, program, keys, args);
            let wakers = lock(&state.database).channels.take_wakers();
            (answer, wakers)
        };
        // A waker is other people's code, so it runs when the server is unlocked.
        wakers.into_iter().for_each(std::task::Waker::wake);
        answer.map_err(|line| ConnectionError::refused(&line))
    }

    fn subscribe(&self, channel: &str, queue: &Arc<Queue>) {
        let state = lock(&self.shared.state);
        lock(&state.database).channels.subscribe(channel.as_bytes(), queue);
    }

    fn unsubscribe(&self, channel: &str, queue: &Arc<Queue>) {
        let state = lock(&self.shared.state);
        lock(&state.database).channels.unsubscribe(channel.as_bytes(), queue);
    }
}

/// The error is the line that Redis would send.
fn run<'a>(
    interpreter: &mut Option<Interpreter>,
    database: &Arc<Mutex<Database>>,
    program: Program<'_>,
    keys: impl Iterator<Item = &'a [u8]>,
    args: impl Iterator<Item = &'a [u8]>,
) -> Result<Reply, String> {
    let interpreter = match interpreter {
        Some(interpreter) => interpreter,
        None => interpreter.insert(Interpreter::new(database).map_err(|error| format!("ERR no Lua: {error}"))?),
    };
    interpreter.run(program, keys, args)
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

#[cfg(test)]
mod tests;
