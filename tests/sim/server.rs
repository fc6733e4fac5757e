//! The embedded server in the simulation, looked at after every script.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::embedded::{Content, EmbeddedConnection, Entry, Server};
use bowline::{Arg, Call, Connection, ConnectionError, Notice, Reply};
use futures::stream::BoxStream;

use crate::executor::{Machine, WORLD};
use crate::network::{Backend, at_once};
use crate::scripts::Scripts;

pub struct SimServer {
    machine: Arc<Machine>,
    server: Server,
    scripts: Scripts,
    connection: EmbeddedConnection,
    frozen_until: Mutex<Duration>,
    /// Evictions break the queue's consistency until the next script looks.
    evicted: Mutex<bool>,
    violation: Mutex<Option<String>>,
}

impl SimServer {
    pub fn new(machine: &Arc<Machine>, scripts: Scripts) -> Arc<Self> {
        let server = Server::starting_at(Duration::from_secs(1_800_000_000));
        let connection = server.connect(machine.process(WORLD));
        Arc::new(Self {
            machine: machine.clone(),
            server,
            scripts,
            connection,
            frozen_until: Mutex::default(),
            evicted: Mutex::new(false),
            violation: Mutex::default(),
        })
    }

    pub fn violation(&self) -> Option<String> {
        self.violation.lock().unwrap().clone()
    }

    fn dump(&self) -> BTreeMap<String, Entry> {
        let text = |key: Vec<u8>| String::from_utf8(key).unwrap();
        self.server.dump().into_iter().map(|(key, entry)| (text(key), entry)).collect()
    }

    pub fn keys(&self) -> Vec<String> {
        self.dump().into_keys().collect()
    }

    /// How many tickets of a name stand in the queue.
    pub fn waiters(&self, name: &str) -> usize {
        match self.dump().remove(&format!("bowline:lock:{{{name}}}:queue")).map(|entry| entry.content) {
            Some(Content::List(tickets)) => tickets.len(),
            _ => 0,
        }
    }

    /// The server stands still: requests that reach it are executed afterwards.
    pub fn freeze(&self, duration: Duration) {
        *self.frozen_until.lock().unwrap() = self.machine.now() + duration;
    }

    pub fn flush(&self) {
        self.server.flush_all();
    }

    /// Drops one key, as a server that is short of memory may.
    pub fn evict(&self, draw: u64) -> Option<String> {
        let keys = self.keys();
        let key = keys.get(draw as usize % keys.len().max(1))?;
        *self.evicted.lock().unwrap() = true;
        self.server.eval("return redis.call('DEL', KEYS[1])", &[key.as_bytes()], &[]).unwrap();
        Some(key.clone())
    }

    pub fn now(&self) -> Duration {
        self.server.now()
    }

    pub fn step_clock(&self, by: Duration, forward: bool) {
        let now = self.server.now();
        self.server.set_clock(if forward { now + by } else { now - by });
    }

    fn run(&self, call: Call<'_>) -> Result<Reply, ConnectionError> {
        let Some(source) = self.scripts.altered(call.script) else { return at_once(self.connection.run(call)) };
        let keys: Vec<&[u8]> = call.keys.iter().map(|key| key.as_bytes()).collect();
        let args = call.args.iter().map(|arg| match arg {
            Arg::Text(text) => (*text).to_owned(),
            Arg::Number(number) => number.to_string(),
        });
        let args: Vec<String> = args.collect();
        let args: Vec<&[u8]> = args.iter().map(String::as_bytes).collect();
        self.server.eval(source, &keys, &args)
    }

    /// I9 and I12: every key has a TTL, and list and sorted set hold the same tickets, each once.
    fn check(&self, script: &str) {
        let dump = self.dump();
        let mut found =
            dump.iter().find(|(_, entry)| entry.expires.is_none()).map(|(key, _)| format!("I9 {key} for ever"));
        for (key, entry) in dump.iter().filter(|(key, _)| key.ends_with(":queue")) {
            let Content::List(list) = &entry.content else { continue };
            let zset = match dump.get(&key.replace(":queue", ":tickets")).map(|entry| &entry.content) {
                Some(Content::SortedSet(members)) => members.iter().map(|(member, _)| member.clone()).collect(),
                _ => BTreeSet::new(),
            };
            let unique: BTreeSet<Vec<u8>> = list.iter().cloned().collect();
            if (unique.len() != list.len() || unique != zset) && !*self.evicted.lock().unwrap() {
                found.get_or_insert(format!(
                    "I12 {key}: {} tickets in the list, {} in the set",
                    list.len(),
                    zset.len()
                ));
            }
        }
        if let Some(found) = found {
            self.violation.lock().unwrap().get_or_insert(format!("{found}, after {script}"));
        }
    }
}

impl Backend for SimServer {
    fn execute(&self, _: usize, call: Call<'_>) -> Result<Reply, ConnectionError> {
        let reply = self.run(call);
        self.check(call.script.name());
        reply
    }

    fn listen(&self, channel: &str) -> BoxStream<'static, Notice> {
        at_once(self.connection.subscribe(channel)).unwrap()
    }

    fn frozen_for(&self) -> Duration {
        self.frozen_until.lock().unwrap().saturating_sub(self.machine.now())
    }
}
