//! The two servers, and each step on both of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline::embedded::{Content, EmbeddedConnection, Server as Embedded};
use bowline::{Arg, Call, Connection, ConnectionError, Notice, Reply, Script};
use futures::FutureExt;
use futures::StreamExt;
use futures::executor::block_on;
use futures::stream::BoxStream;
use redis::{PubSub, Value};

use crate::agree::{Key, Slack, Stored};
use crate::steps::{CLIENTS, Command, INBOX, KEYS, Step, Word};
use crate::support::server::Server;

/// A reply, or the code of an error.
type Outcome = Result<Reply, String>;

pub struct Pair {
    real: Server,
    connection: redis::Connection,
    inboxes: Vec<Inbox>,
    embedded: Embedded,
    embedded_connection: EmbeddedConnection,
    /// How often each outcome was seen.
    seen: BTreeMap<String, u64>,
}

/// One client's ears on both servers.
struct Inbox {
    channel: String,
    real: PubSub<'static>,
    embedded: Option<BoxStream<'static, Notice>>,
}

impl Pair {
    pub fn start() -> Self {
        let real = Server::start();
        KEYS.iter().for_each(|key| real.allow_forever(key));
        let mut connection = real.client();
        for script in Script::all() {
            let () = redis::cmd("SCRIPT").arg("LOAD").arg(script.source()).query(&mut connection).unwrap();
        }
        let embedded = Embedded::manual();
        let embedded_connection = embedded.connect(Arc::new(Timeless));
        let inboxes = CLIENTS.iter().map(|client| {
            // For the rest of the process: a subscription borrows its connection.
            let connection = Box::leak(Box::new(real.client()));
            Inbox { channel: format!("{INBOX}{client}"), real: connection.as_pubsub(), embedded: None }
        });
        let inboxes = inboxes.collect();
        Self { real, connection, inboxes, embedded, embedded_connection, seen: BTreeMap::new() }
    }

    pub fn version(&self) -> String {
        self.real.version()
    }

    pub fn finish(self) -> BTreeMap<String, u64> {
        self.real.finish();
        self.seen
    }

    /// Runs the steps on empty servers. The error tells what differs.
    pub fn run(&mut self, steps: &[Step]) -> Result<(), String> {
        let () = redis::cmd("FLUSHALL").query(&mut self.connection).unwrap();
        self.embedded.flush_all();
        for client in CLIENTS {
            self.deafen(client);
        }
        let mut slack = Slack::default();
        for (n, step) in steps.iter().enumerate() {
            let at = |what: String| format!("step {n}, {step:?}: {what}");
            let (real, embedded) = self.step(step, &mut slack);
            slack.outcomes(&real, &embedded).map_err(at)?;
            self.note(&real);
            let start = Instant::now();
            let real = self.real_dump();
            slack.dumps(&real, start.elapsed(), &self.embedded_dump()).map_err(at)?;
        }
        self.messages(&slack)
    }

    fn step(&mut self, step: &Step, slack: &mut Slack) -> (Outcome, Outcome) {
        match step {
            Step::Script { name, keys, args } => self.script(name, keys, args, slack),
            Step::Commands(commands) => self.eval(RUN, &packed(commands), slack),
            Step::Source(source) => self.eval(source, &[], slack),
            Step::Expire(key) => {
                let source = format!("return redis.call('PEXPIRE', '{key}', 1)");
                let outcomes = self.eval(&source, &[], slack);
                // It exists in its last millisecond.
                let end = self.time() + Duration::from_millis(3);
                while self.time() < end {
                    std::thread::sleep(Duration::from_millis(1));
                }
                self.embedded.set_clock(end);
                outcomes
            }
            Step::Outdate { tickets, ticket } => {
                let source = "if redis.pcall('ZSCORE', ARGV[1], ARGV[2]) == false then return 0 end
                    return redis.pcall('ZADD', ARGV[1], 'XX', '1000', ARGV[2])";
                self.eval(source, &[tickets.as_bytes().to_vec(), ticket.as_bytes().to_vec()], slack)
            }
            Step::Listen(client) => {
                self.listen(client);
                (Ok(Reply::Nil), Ok(Reply::Nil))
            }
            Step::Deafen(client) => {
                self.deafen(client);
                (Ok(Reply::Nil), Ok(Reply::Nil))
            }
        }
    }

    /// The real server's clock, to which the embedded one's is set before each step.
    fn time(&mut self) -> Duration {
        let (seconds, micros): (u64, u64) = redis::cmd("TIME").query(&mut self.connection).unwrap();
        Duration::from_secs(seconds) + Duration::from_micros(micros)
    }

    fn real(&mut self, command: &redis::Cmd, slack: &mut Slack) -> Outcome {
        let before = self.time();
        self.embedded.set_clock(before);
        let answer: Result<Value, _> = command.query(&mut self.connection);
        slack.widen(self.time() - before);
        match answer {
            Ok(value) => Ok(reply(value)),
            Err(error) => {
                let code = error.code().unwrap_or_else(|| panic!("{error}"));
                Err(code_of(ConnectionError::refused(&format!("{code} {}", error.detail().unwrap_or_default()))))
            }
        }
    }

    fn script(&mut self, name: &str, keys: &[String], args: &[String], slack: &mut Slack) -> (Outcome, Outcome) {
        let script = Script::all().find(|script| script.name() == name).unwrap();
        let mut command = redis::cmd("EVALSHA");
        command.arg(script.sha1()).arg(keys.len()).arg(keys).arg(args);
        let real = self.real(&command, slack);
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let args: Vec<Arg<'_>> = args.iter().map(|arg| arg.parse().map_or(Arg::Text(arg), |n| same(arg, n))).collect();
        let call = Call { script, keys: &keys, args: &args };
        let embedded = block_on(self.embedded_connection.run(call)).map_err(code_of);
        (real, embedded)
    }

    fn eval(&mut self, source: &str, args: &[Vec<u8>], slack: &mut Slack) -> (Outcome, Outcome) {
        let real = self.real(redis::cmd("EVAL").arg(source).arg(0).arg(args), slack);
        let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
        let embedded = self.embedded.eval(source, &[], &args).map_err(code_of);
        (real, embedded)
    }

    fn note(&mut self, outcome: &Outcome) {
        let mut note = |what: &str| *self.seen.entry(what.to_owned()).or_default() += 1;
        match outcome {
            Err(code) => note(&format!("-{code}")),
            Ok(Reply::Array(items)) => match items.first() {
                Some(Reply::Bytes(word)) => note(&String::from_utf8_lossy(word)),
                Some(Reply::Integer(1_000_000_000_000..)) => note("now"),
                _ => note("a list"),
            },
            Ok(_) => note("a value"),
        }
    }

    fn real_dump(&mut self) -> BTreeMap<Vec<u8>, Key> {
        type Row = (Vec<u8>, String, i64, Vec<Vec<u8>>);
        let rows: Vec<Row> = redis::cmd("EVAL").arg(DUMP).arg(0).query(&mut self.connection).unwrap();
        let key = |(key, kind, expires, items): Row| {
            let pairs = || items.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone()));
            let stored = match kind.as_str() {
                "string" => Stored::String(items[0].clone()),
                "list" => Stored::List(items),
                "hash" => Stored::Hash(pairs().collect()),
                "zset" => Stored::SortedSet(pairs().map(|(member, score)| (member, float(&score))).collect()),
                other => panic!("{other}"),
            };
            (key, Key { stored, expires: (expires >= 0).then_some(expires) })
        };
        rows.into_iter().map(key).collect()
    }

    fn embedded_dump(&self) -> BTreeMap<Vec<u8>, Key> {
        let dump = self.embedded.dump().into_iter();
        dump.map(|(key, entry)| {
            let stored = match entry.content {
                Content::String(text) => Stored::String(text),
                Content::List(items) => Stored::List(items),
                Content::Hash(fields) => Stored::Hash(fields.into_iter().collect()),
                Content::SortedSet(members) => Stored::SortedSet(members.into_iter().collect()),
                other => panic!("{other:?}"),
            };
            (key, Key { stored, expires: entry.expires.map(|at| at.as_millis().try_into().unwrap()) })
        })
        .collect()
    }

    // --- messages

    fn inbox(&mut self, client: &str) -> &mut Inbox {
        &mut self.inboxes[CLIENTS.iter().position(|known| *known == client).unwrap()]
    }

    fn listen(&mut self, client: &str) {
        let channel = self.inbox(client).channel.clone();
        if self.inbox(client).embedded.is_none() {
            let stream = block_on(self.embedded_connection.subscribe(&channel)).unwrap();
            let inbox = self.inbox(client);
            inbox.real.subscribe(&channel).unwrap();
            inbox.embedded = Some(stream);
        }
    }

    /// What has come is forgotten.
    fn deafen(&mut self, client: &str) {
        let inbox = self.inbox(client);
        if inbox.embedded.take().is_some() {
            inbox.real.unsubscribe(&inbox.channel).unwrap();
            inbox.real.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
            while inbox.real.get_message().is_ok() {}
            inbox.real.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        }
    }

    /// Everything that was published to those who listen.
    fn messages(&mut self, slack: &Slack) -> Result<(), String> {
        for inbox in &mut self.inboxes {
            let Some(stream) = &mut inbox.embedded else { continue };
            let count: u64 = redis::cmd("PUBLISH").arg(&inbox.channel).arg("end").query(&mut self.connection).unwrap();
            assert_eq!(count, 1);
            let mut real: Vec<Vec<u8>> = Vec::new();
            loop {
                match inbox.real.get_message().unwrap().get_payload::<Vec<u8>>().unwrap() {
                    end if end == b"end" => break,
                    message => real.push(message),
                }
            }
            let mut embedded = Vec::new();
            while let Some(Some(Notice::Message(message))) = stream.next().now_or_never() {
                embedded.push(message);
            }
            *self.seen.entry("message".to_owned()).or_default() += real.len() as u64;
            slack.messages(&real, &embedded).map_err(|what| format!("{}: {what}", inbox.channel))?;
        }
        Ok(())
    }
}

/// As a number, if that is the same on the wire.
fn same(arg: &str, number: u64) -> Arg<'_> {
    if number.to_string() == arg { Arg::Number(number) } else { Arg::Text(arg) }
}

/// The error's code. Before 7.0 an error that no command gave may come without one.
fn code_of(error: ConnectionError) -> String {
    match error {
        ConnectionError::Refused { code, .. } if code.bytes().all(|byte| byte.is_ascii_uppercase()) => code,
        ConnectionError::Refused { .. } => "ERR".to_owned(),
        other => panic!("{other}"),
    }
}

fn float(text: &[u8]) -> f64 {
    std::str::from_utf8(text).unwrap().parse().unwrap()
}

fn reply(value: Value) -> Reply {
    match value {
        Value::Nil => Reply::Nil,
        Value::Int(number) => Reply::Integer(number),
        Value::BulkString(bytes) => Reply::Bytes(bytes),
        Value::SimpleString(text) => Reply::Bytes(text.into_bytes()),
        Value::Okay => Reply::Bytes(b"OK".to_vec()),
        Value::Array(items) => Reply::Array(items.into_iter().map(reply).collect()),
        other => panic!("{other:?}"),
    }
}

/// For each command: how it is called, the number of its words, and each word with its type.
fn packed(commands: &[Command]) -> Vec<Vec<u8>> {
    let mut args = Vec::new();
    for Command { raises, words } in commands {
        args.push(if *raises { b"call".to_vec() } else { b"pcall".to_vec() });
        args.push(words.len().to_string().into_bytes());
        for word in words {
            let (kind, text) = match word {
                Word::Text(text) => ("text", text.clone()),
                Word::Number(number) => ("number", number.as_bytes().to_vec()),
                Word::False => ("false", Vec::new()),
                Word::Table => ("table", Vec::new()),
            };
            args.extend([kind.as_bytes().to_vec(), text]);
        }
    }
    args
}

/// Runs what `packed` has packed, and returns every reply with its type in Lua.
const RUN: &str = "
local function show(value)
  local kind = type(value)
  if kind == 'number' or kind == 'string' then return {kind, value} end
  if kind ~= 'table' then return {kind, tostring(value)} end
  -- Before 7.0 an error of no command has no code.
  if value.err then return {'error', string.match(value.err, '^-?(%u+) ') or 'ERR'} end
  if value.ok then return {'status', value.ok} end
  local shown = {'table'}
  for i, item in ipairs(value) do shown[i + 1] = show(item) end
  return shown
end
local replies, at = {}, 1
while at <= #ARGV do
  local call, count, words = ARGV[at], tonumber(ARGV[at + 1]), {}
  at = at + 2
  for i = 1, count do
    local kind, word = ARGV[at], ARGV[at + 1]
    if kind == 'number' then word = tonumber(word) elseif kind == 'false' then word = false
    elseif kind == 'table' then word = {} end
    words[i] = word
    at = at + 2
  end
  replies[#replies + 1] = show(redis[call](unpack(words, 1, count)))
end
return replies
";

/// Key, type, expiry (server ms, -1 is never) and content of every key.
const DUMP: &str = "
local rows = {}
for i, key in ipairs(redis.call('KEYS', '*')) do
  local time, ttl, kind, items = redis.call('TIME'), redis.call('PTTL', key), redis.call('TYPE', key).ok, {}
  if kind == 'string' then items = {redis.call('GET', key)}
  elseif kind == 'list' then items = redis.call('LRANGE', key, 0, -1)
  elseif kind == 'hash' then items = redis.call('HGETALL', key)
  elseif kind == 'zset' then items = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') end
  if ttl >= 0 then ttl = ttl + time[1] * 1000 + math.floor(time[2] / 1000) end
  rows[i] = {key, kind, ttl, items}
end
return rows
";

/// The embedded server's clock is set by hand, so nobody is asked for the time.
#[derive(Debug)]
struct Timeless;

impl bowline::Executor for Timeless {
    fn spawn(&self, _: futures::future::BoxFuture<'static, ()>) {
        panic!("nothing is spawned");
    }

    fn sleep(&self, _: Duration) -> futures::future::BoxFuture<'static, ()> {
        panic!("nothing sleeps");
    }

    fn now(&self) -> std::time::Instant {
        panic!("nobody asks");
    }

    fn block_on(&self, _: futures::future::BoxFuture<'_, ()>) -> bowline::Result<()> {
        panic!("nothing blocks");
    }
}
