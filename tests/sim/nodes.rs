//! The servers behind the one address: a primary and, where a run has failovers, a replica that is behind it.
//!
//! What a script writes arrives at the replica later, and so does every message that it publishes, whether somebody heard
//! it at the primary or not; as with Redis, which replicates both.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bowline::embedded::{Content, EmbeddedConnection, Entry, Server};
use bowline::{Connection, Notice};
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};

use crate::executor::{Machine, WORLD};
use crate::judge::view::Dump;
use crate::network::at_once;
use crate::storm::READONLY;

/// One of the servers. The first is the primary until a failover.
pub type Node = usize;

/// Where a primary with a replica is told of everything that is published.
const STREAM: &str = "everything";

/// Stands before a script of such a primary.
pub const SPY: &str = r"local redis = (function(server)
  local function spied(run)
    return function(command, ...)
      if command == 'PUBLISH' then
        local channel, message = ...
        server.call('PUBLISH', 'everything', channel .. '\n' .. message)
      end
      return run(command, ...)
    end
  end
  return {call = spied(server.call), pcall = spied(server.pcall)}
end)(redis)
";

/// Writes one key as it is elsewhere.
const RESTORE: &str = r"
redis.call('DEL', KEYS[1])
local command, ttl, step = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
for i = 4, #ARGV, step do redis.call(command, KEYS[1], unpack(ARGV, i, i + step - 1)) end
if #ARGV > 3 and ttl > 0 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
";

pub struct Nodes {
    machine: Arc<Machine>,
    state: Mutex<State>,
}

struct State {
    nodes: Vec<Place>,
    primary: Node,
    /// How late what the primary does arrives at the replica.
    lag: Duration,
    on_the_way: VecDeque<Record>,
}

struct Place {
    server: Server,
    connection: Arc<EmbeddedConnection>,
    /// What is published there.
    published: BoxStream<'static, Notice>,
}

/// What a script has left, and the messages that it has published, by their channels.
struct Record {
    due: Duration,
    dump: Dump,
    messages: Vec<(String, String)>,
}

pub fn dump(server: &Server) -> Dump {
    let text = |key: Vec<u8>| String::from_utf8(key).unwrap();
    server.dump().into_iter().map(|(key, entry)| (text(key), entry)).collect()
}

impl Place {
    fn new(machine: &Arc<Machine>, time: Duration) -> Self {
        let server = Server::starting_at(time);
        let connection = Arc::new(server.connect(machine.process(WORLD)));
        let published = at_once(connection.subscribe(STREAM)).unwrap();
        Self { server, connection, published }
    }

    /// Makes it what it should be, key by key.
    fn become_as(&self, wanted: &Dump) {
        let found = dump(&self.server);
        let gone = found.keys().filter(|key| !wanted.contains_key(*key));
        gone.for_each(|key| self.restore(key, None));
        let differs = wanted.iter().filter(|(key, entry)| found.get(*key) != Some(entry));
        differs.for_each(|(key, entry)| self.restore(key, Some(entry)));
    }

    fn restore(&self, key: &str, entry: Option<&Entry>) {
        let now = self.server.now();
        let ttl = entry.and_then(|entry| entry.expires).map(|ends| ends.as_millis() as i64 - now.as_millis() as i64);
        let text = |bytes: &Vec<u8>| String::from_utf8(bytes.clone()).unwrap();
        let (command, step, items): (_, _, Vec<String>) = match entry.map(|entry| &entry.content) {
            // It is about to expire.
            _ if ttl.is_some_and(|ttl| ttl <= 0) => ("DEL", 1, Vec::new()),
            Some(Content::String(value)) => ("SET", 1, vec![text(value)]),
            Some(Content::List(items)) => ("RPUSH", 1, items.iter().map(text).collect()),
            Some(Content::Hash(fields)) => ("HSET", 2, fields.iter().flat_map(|(f, v)| [text(f), text(v)]).collect()),
            Some(Content::SortedSet(members)) => {
                ("ZADD", 2, members.iter().flat_map(|(m, score)| [score.to_string(), text(m)]).collect())
            }
            _ => ("DEL", 1, Vec::new()),
        };
        let mut args = vec![command.to_owned(), ttl.unwrap_or(0).to_string(), step.to_string()];
        args.extend(items);
        let args: Vec<&[u8]> = args.iter().map(String::as_bytes).collect();
        self.server.eval(RESTORE, &[key.as_bytes()], &args).unwrap();
    }

    /// What has been published since the last time.
    fn messages(&mut self) -> Vec<(String, String)> {
        let mut messages = Vec::new();
        while let Some(Some(Notice::Message(message))) = self.published.next().now_or_never() {
            let message = String::from_utf8(message).unwrap();
            let (channel, message) = message.split_once('\n').unwrap();
            messages.push((channel.to_owned(), message.to_owned()));
        }
        messages
    }
}

impl State {
    fn has_replica(&self) -> bool {
        self.nodes.len() > 1
    }

    /// The replica executes what has arrived.
    fn arrive(&mut self, record: Record) {
        let replica = &self.nodes[1 - self.primary];
        replica.server.refuse_writes(None);
        replica.become_as(&record.dump);
        replica.server.refuse_writes(Some(READONLY));
        for (channel, message) in record.messages {
            let published = [channel.as_bytes(), message.as_bytes()];
            replica.server.eval("return redis.call('PUBLISH', ARGV[1], ARGV[2])", &[], &published).unwrap();
        }
    }
}

impl Nodes {
    pub fn new(machine: &Arc<Machine>) -> Self {
        let primary = Place::new(machine, Duration::from_secs(1_800_000_000));
        let state = State { nodes: vec![primary], primary: 0, lag: Duration::ZERO, on_the_way: VecDeque::new() };
        Self { machine: machine.clone(), state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Where the address leads.
    pub fn primary(&self) -> Node {
        self.lock().primary
    }

    pub fn has_replica(&self) -> bool {
        self.lock().has_replica()
    }

    /// The primary.
    pub fn server(&self) -> Server {
        let state = self.lock();
        state.nodes[state.primary].server.clone()
    }

    pub fn at(&self, node: Node) -> (Server, Arc<EmbeddedConnection>) {
        let place = &self.lock().nodes[node];
        (place.server.clone(), place.connection.clone())
    }

    pub fn set_clock(&self, now: Duration) {
        self.lock().nodes.iter().for_each(|place| place.server.set_clock(now));
    }

    /// From now on there is a replica, which is as far behind.
    pub fn replicate(&self, lag: Duration) {
        let mut state = self.lock();
        let primary = state.nodes[state.primary].server.clone();
        if !state.has_replica() {
            let replica = Place::new(&self.machine, primary.now());
            replica.become_as(&dump(&primary));
            replica.server.refuse_writes(Some(READONLY));
            state.nodes.push(replica);
        }
        state.lag = lag;
    }

    /// The primary has changed, or published something.
    pub fn changed(self: &Arc<Self>) {
        let mut state = self.lock();
        if !state.has_replica() {
            return;
        }
        let primary = state.primary;
        let (dump, messages) = (dump(&state.nodes[primary].server), state.nodes[primary].messages());
        let last = state.on_the_way.back().map_or(Duration::ZERO, |record| record.due);
        let due = (self.machine.now() + state.lag).max(last);
        state.on_the_way.push_back(Record { due, dump, messages });
        drop(state);
        let (nodes, world) = (self.clone(), self.machine.process(WORLD));
        self.machine.process(WORLD).spawn(Box::pin(async move {
            world.sleep(due.saturating_sub(nodes.machine.now())).await;
            let mut state = nodes.lock();
            while state.on_the_way.front().is_some_and(|record| record.due <= nodes.machine.now()) {
                let record = state.on_the_way.pop_front().unwrap();
                state.arrive(record);
            }
        }));
    }

    /// The replica becomes the primary, and the other way round. What has not arrived is `lost`, or arrives before. Those
    /// who are connected stay where they are. Says what has become of the last writes.
    pub fn fail_over(&self, lost: bool) -> String {
        let mut state = self.lock();
        let mut told = String::new();
        let records: Vec<Record> = state.on_the_way.drain(..).collect();
        let _ = write!(told, "{} writes {}", records.len(), if lost { "are lost" } else { "arrive before" });
        for record in records.into_iter().filter(|_| !lost) {
            state.arrive(record);
        }
        state.primary = 1 - state.primary;
        let primary = state.primary;
        let (new, old) = (&state.nodes[primary], &state.nodes[1 - primary]);
        new.server.refuse_writes(None);
        old.server.refuse_writes(None);
        old.become_as(&dump(&new.server));
        old.server.refuse_writes(Some(READONLY));
        told
    }
}
