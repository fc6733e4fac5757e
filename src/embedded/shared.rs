//! The state of a server, which its handles and connections share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::channels::Queue;
use super::clock::Clock;
use super::identity::Identity;
use super::interpreter::{Interpreter, Program};
use super::keyspace::{Database, Entry};
use crate::connection::{ConnectionError, Reply};
use crate::mutex::lock;
use crate::runtime::Executor;

pub(super) struct Shared {
    state: Mutex<ServerState>,
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

    pub(super) fn follow(&self, executor: Arc<dyn Executor>) {
        lock(&self.state).clock.follow(executor);
    }

    pub(super) fn now(&self) -> Duration {
        lock(&self.state).clock.now()
    }

    pub(super) fn advance(&self, by: Duration) {
        let mut state = lock(&self.state);
        let now = state.clock.now();
        state.clock.set(now.saturating_add(by));
    }

    pub(super) fn set_clock(&self, since_epoch: Duration) {
        lock(&self.state).clock.set(since_epoch);
    }

    pub(super) fn flush(&self) {
        self.with_database(Database::flush);
    }

    pub(super) fn refuse_writes(&self, line: Option<String>) {
        self.with_database(|database| database.refusal = line);
    }

    pub(super) fn restart(&self) {
        let now = self.now();
        self.with_database(|database| database.identity = Identity::started_at(now));
    }

    pub(super) fn dump(&self) -> BTreeMap<Vec<u8>, Entry> {
        let state = lock(&self.state);
        let mut database = lock(&state.database);
        database.begin(state.clock.now());
        database.dump()
    }

    pub(super) fn subscribe(&self, channel: &str, queue: &Arc<Queue>) {
        self.with_database(|database| database.channels.subscribe(channel.as_bytes(), queue));
    }

    pub(super) fn unsubscribe(&self, channel: &str, queue: &Arc<Queue>) {
        self.with_database(|database| database.channels.unsubscribe(channel.as_bytes(), queue));
    }

    pub(super) fn run<'a>(
        &self,
        program: Program<'_>,
        keys: impl Iterator<Item = &'a [u8]>,
        args: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Reply, ConnectionError> {
        let (answer, wakers) = {
            let mut state = lock(&self.state);
            let now = state.clock.now();
            lock(&state.database).begin(now);
            let answer = state.run(program, keys, args);
            let wakers = lock(&state.database).channels.take_wakers();
            (answer, wakers)
        };
        // A waker is foreign code, so it runs after the server is unlocked.
        wakers.into_iter().for_each(std::task::Waker::wake);
        answer.map_err(|line| ConnectionError::refused(&line))
    }

    fn with_database<T>(&self, work: impl FnOnce(&mut Database) -> T) -> T {
        let state = lock(&self.state);
        work(&mut lock(&state.database))
    }
}

impl ServerState {
    /// The error is the line that Redis would send.
    fn run<'a>(
        &mut self,
        program: Program<'_>,
        keys: impl Iterator<Item = &'a [u8]>,
        args: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Reply, String> {
        let interpreter = match &mut self.interpreter {
            Some(interpreter) => interpreter,
            none => none.insert(Interpreter::new(&self.database).map_err(|error| format!("ERR no Lua: {error}"))?),
        };
        interpreter.run(program, keys, args)
    }
}
