//! The state of a server, which its handles and connections share.

use std::sync::{Arc, Mutex};
use std::task::Waker;

use super::channels::Queue;
use super::clock::Clock;
use super::interpreter::{Interpreter, Program};
use super::keyspace::Database;
use crate::connection::{ConnectionError, Reply};
use crate::mutex::lock;

/// What a subscription is about.
#[derive(Clone, Copy)]
pub(super) enum Subject {
    /// The messages of a channel.
    Channel,
    /// The changes of a key.
    Key,
}

pub(super) struct Shared {
    state: Mutex<ServerState>,
}

/// Tasks to wake. They are woken when this is dropped: a waker is foreign code, so it runs after all is unlocked.
#[must_use]
pub(super) struct Wakes(Vec<Waker>);

impl Drop for Wakes {
    fn drop(&mut self) {
        self.0.drain(..).for_each(Waker::wake);
    }
}

/// Locked while a script runs, which makes scripts atomic.
struct ServerState {
    clock: Clock,
    /// Created by the first script.
    interpreter: Option<Interpreter>,
    /// Shared with the interpreter, whose scripts reach it through `redis.call`.
    database: Arc<Mutex<Database>>,
}

impl Shared {
    pub(super) fn new(clock: Clock) -> Self {
        Self { state: Mutex::new(ServerState { clock, interpreter: None, database: Arc::default() }) }
    }

    /// Reads or changes the clock and the data, while no script runs.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut Clock, &mut Database) -> T) -> T {
        self.with_wakes(work).0
    }

    /// As [`with`](Self::with), for a caller that has locked something.
    pub(super) fn with_wakes<T>(&self, work: impl FnOnce(&mut Clock, &mut Database) -> T) -> (T, Wakes) {
        let ServerState { clock, database, .. } = &mut *lock(&self.state);
        let mut database = lock(database);
        let done = work(clock, &mut database);
        (done, Wakes(database.watches.report()))
    }

    pub(super) fn end(&self, subject: Subject, name: &str, queue: &Arc<Queue>) {
        self.with(|_, database| match subject {
            Subject::Channel => database.channels.unsubscribe(name.as_bytes(), queue),
            Subject::Key => database.watches.unwatch(name.as_bytes(), queue),
        });
    }

    pub(super) fn run<'a>(
        &self,
        program: Program<'_>,
        keys: impl Iterator<Item = &'a [u8]>,
        args: impl Iterator<Item = &'a [u8]>,
    ) -> (Result<Reply, ConnectionError>, Wakes) {
        let mut state = lock(&self.state);
        let now = state.clock.now();
        lock(&state.database).begin(now);
        let answer = state.interpreter().and_then(|interpreter| interpreter.run(program, keys, args));
        let mut database = lock(&state.database);
        let mut wakers = database.channels.take_wakers();
        wakers.extend(database.watches.report());
        (answer.map_err(|line| ConnectionError::refused(&line)), Wakes(wakers))
    }
}

impl ServerState {
    /// The error is the line that Redis would send.
    fn interpreter(&mut self) -> Result<&mut Interpreter, String> {
        match &mut self.interpreter {
            Some(interpreter) => Ok(interpreter),
            none => Ok(none.insert(Interpreter::new(&self.database).map_err(|error| format!("ERR no Lua: {error}"))?)),
        }
    }
}
