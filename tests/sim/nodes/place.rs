//! One server: the embedded one, and how it becomes a copy of another.

use std::sync::Arc;
use std::time::Duration;

use bowline::embedded::{Content, EmbeddedConnection, Entry, Server};
use bowline::{Connection, Notice};
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};

use crate::executor::{Machine, Process};
use crate::judge::view::Dump;
use crate::network::at_once;
use crate::storm::READONLY;

/// Where a server that is replicated tells of everything that it publishes, and that a script has written.
const STREAM: &str = "everything";

/// Stands before a script of such a server. `PUBLISH` is replicated whether it has a subscriber or not.
pub const SPY: &str = r"local redis = (function(server)
  local writes, wrote = {DEL = 1, HDEL = 1, HSET = 1, LPUSH = 1, LREM = 1, PEXPIRE = 1, RPUSH = 1, SET = 1, UNLINK = 1, ZADD = 1, ZREM = 1}, false
  local function spied(run)
    return function(command, ...)
      if command == 'PUBLISH' then
        local channel, message = ...
        server.call('PUBLISH', 'everything', channel .. '\n' .. message)
      end
      local reply = run(command, ...)
      if not wrote and writes[command] and reply ~= 0 and not (type(reply) == 'table' and reply.err) then
        wrote = true
        server.call('PUBLISH', 'everything', '')
      end
      return reply
    end
  end
  return {call = spied(server.call), pcall = spied(server.pcall)}
end)(redis)
";

/// Stands before a script at a server of a cluster that shards messages. The embedded server has no shard channels:
/// here they are channels that no other server hears.
pub const SHARDED: &str = r"local redis = (function(server)
  local function sharded(run)
    return function(command, ...)
      if command == 'SPUBLISH' then return run('PUBLISH', ...) end
      if command == 'PUBSUB' and ... == 'SHARDNUMSUB' then return run(command, 'NUMSUB', select(2, ...)) end
      return run(command, ...)
    end
  end
  return {call = sharded(server.call), pcall = sharded(server.pcall)}
end)(redis)
";

/// Stands before a script at a server from which a slot is moving away. A key that is not there belongs to another
/// server, also for the script that has deleted it.
pub const LOCAL_KEYS: &str = r"local redis = (function(server)
  local known = {}
  for _, key in ipairs(KEYS) do known[key] = true end
  local function checked(run, fail)
    return function(...)
      for _, word in ipairs({...}) do
        if known[word] and server.call('EXISTS', word) == 0 then
          return fail({err = 'ERR Script attempted to access a non local key in a cluster node'})
        end
      end
      return run(...)
    end
  end
  return {call = checked(server.call, error), pcall = checked(server.pcall, function(failure) return failure end)}
end)(redis)
";

/// Writes one key as it is elsewhere.
const RESTORE: &str = r"
redis.call('DEL', KEYS[1])
local command, ttl, step = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
for i = 4, #ARGV, step do redis.call(command, KEYS[1], unpack(ARGV, i, i + step - 1)) end
if #ARGV > 3 and ttl > 0 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
";

pub struct Place {
    pub server: Server,
    pub connection: Arc<EmbeddedConnection>,
    /// Its clock.
    pub clock: Process,
    /// What is published there.
    published: BoxStream<'static, Notice>,
    /// Counts what it has written; of a replica, the number of the last write that has arrived.
    pub written: u64,
    /// How often it was demoted.
    pub demoted: u64,
}

/// What a script has published, by the channels.
pub type Messages = Vec<(String, String)>;

pub fn dump(server: &Server) -> Dump {
    let text = |key: Vec<u8>| String::from_utf8(key).unwrap();
    server.dump().into_iter().map(|(key, entry)| (text(key), entry)).collect()
}

impl Place {
    /// Its clock shows that time, and goes wrong by so many millionths.
    pub fn new(machine: &Arc<Machine>, time: Duration, millionths: i64) -> Self {
        let (server, clock) = (Server::starting_at(time), machine.clock(millionths));
        let connection = Arc::new(server.connect(machine.process(clock)));
        let published = at_once(connection.subscribe(STREAM)).unwrap();
        Self { server, connection, clock, published, written: 0, demoted: 0 }
    }

    /// Makes it what it should be, key by key. It takes no writes of clients afterwards.
    pub fn follow(&self, wanted: &Dump) {
        self.server.refuse_writes(None);
        let found = dump(&self.server);
        let gone = found.keys().filter(|key| !wanted.contains_key(*key));
        gone.for_each(|key| self.restore(key, None));
        let differs = wanted.iter().filter(|(key, entry)| found.get(*key) != Some(entry));
        differs.for_each(|(key, entry)| self.restore(key, Some(entry)));
        self.server.refuse_writes(Some(READONLY));
    }

    /// Writes one key, or removes it.
    pub fn restore(&self, key: &str, entry: Option<&Entry>) {
        let now = self.server.now();
        let ttl = entry.and_then(|entry| entry.expires).map(|ends| ends.as_millis() as i64 - now.as_millis() as i64);
        let text = |bytes: &Vec<u8>| String::from_utf8(bytes.clone()).unwrap();
        let (command, step, items): (_, _, Vec<String>) = match entry.map(|entry| &entry.content) {
            // The key is about to expire.
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

    /// What has been published since the last time, and whether something was written.
    pub fn news(&mut self) -> (Messages, bool) {
        let (mut messages, mut wrote) = (Vec::new(), false);
        while let Some(Some(Notice::Message(message))) = self.published.next().now_or_never() {
            let message = String::from_utf8(message).unwrap();
            match message.split_once('\n') {
                Some((channel, message)) => messages.push((channel.to_owned(), message.to_owned())),
                None => wrote = true,
            }
        }
        (messages, wrote)
    }

    /// Publishes what its master has published.
    pub fn repeat(&self, messages: &Messages) {
        for (channel, message) in messages {
            let published = [channel.as_bytes(), message.as_bytes()];
            self.server.eval("return redis.call('PUBLISH', ARGV[1], ARGV[2])", &[], &published).unwrap();
        }
    }
}
