//! The two servers, and each step on both of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline::embedded::{EmbeddedConnection, Server as Embedded};
use bowline::{Arg, Call, Connection, ConnectionError, Reply, Script};
use futures::executor::block_on;
use redis::Value;

use crate::agree::Slack;
use crate::steps::{CLIENTS, Command, INBOX, KEYS, Step, Word};
use crate::support::server::Server;
use inboxes::Inbox;
use packed::{RUN, packed};

mod dumps;
mod inboxes;
mod packed;

/// A reply, or the code of an error.
type Outcome = Result<Reply, String>;

pub struct Pair {
    real: Server,
    /// Redis 6.
    is_old: bool,
    connection: redis::Connection,
    inboxes: Vec<Inbox>,
    embedded: Embedded,
    embedded_connection: EmbeddedConnection,
    /// How often each outcome was seen.
    seen: BTreeMap<String, u64>,
}

impl Pair {
    pub fn start() -> Self {
        let real = Server::start();
        let is_old = real.version().starts_with("redis 6");
        KEYS.iter().for_each(|key| real.allow_forever(key));
        let mut connection = real.client();
        for script in Script::all() {
            let () = redis::cmd("SCRIPT").arg("LOAD").arg(script.source()).query(&mut connection).unwrap();
        }
        let embedded = Embedded::manual();
        let embedded_connection = embedded.connect(Arc::new(Timeless));
        let inboxes = CLIENTS.iter().map(|client| {
            // Leaked on purpose, because the subscription borrows the connection for the rest of the process.
            let connection = Box::leak(Box::new(real.client()));
            Inbox { channel: format!("{INBOX}{client}"), real: connection.as_pubsub(), embedded: None }
        });
        let inboxes = inboxes.collect();
        Self { real, is_old, connection, inboxes, embedded, embedded_connection, seen: BTreeMap::new() }
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

    /// Redis 6.2 does not know an option of `PEXPIRE`, and no script uses it there.
    fn known(&self, commands: &[Command]) -> Vec<Command> {
        let is_new = |command: &&Command| match command.words.last() {
            Some(Word::Text(word)) => word.eq_ignore_ascii_case(b"GT"),
            _ => false,
        };
        commands.iter().filter(|command| !(self.is_old && is_new(command))).cloned().collect()
    }

    fn step(&mut self, step: &Step, slack: &mut Slack) -> (Outcome, Outcome) {
        match step {
            Step::Script { name, keys, args } => self.script(name, keys, args, slack),
            Step::Commands(commands) => self.eval(RUN, &packed(&self.known(commands)), slack),
            Step::Source(source) => self.eval(source, &[], slack),
            Step::Expire(key) => {
                let source = format!("return redis.call('PEXPIRE', '{key}', 1)");
                let outcomes = self.eval(&source, &[], slack);
                // A key still exists in its last millisecond.
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
            Step::Readonly(step) => {
                self.role(&["127.0.0.1", "1"]);
                self.embedded.refuse_writes(Some("READONLY You can't write against a read only replica."));
                let outcomes = self.step(step, slack);
                self.role(&["NO", "ONE"]);
                self.embedded.refuse_writes(None);
                outcomes
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

    fn role(&mut self, master: &[&str]) {
        let () = redis::cmd("REPLICAOF").arg(master).query(&mut self.connection).unwrap();
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
        // A clock that was set back meanwhile is as far from the start.
        slack.widen(self.time().abs_diff(before));
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
        let call = Call::new(script, &keys, &args);
        let embedded = block_on(self.embedded_connection.run(call)).map_err(code_of);
        if matches!(name, "lock_vote" | "lock_view" | "lock_vote_claim") {
            (real.map(timeless), embedded.map(timeless))
        } else {
            (real, embedded)
        }
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
}

/// The reply of a vote or a look without the identity and the uptime of the server's process, which differ.
fn timeless(reply: Reply) -> Reply {
    let Reply::Array(mut items) = reply else { panic!("{reply:?}") };
    let [_, _, run_id, uptime, saved, micros, ..] = &mut items[..] else { panic!("{items:?}") };
    assert!(matches!(run_id, Reply::Bytes(id) if id.len() == 40), "{run_id:?}");
    assert!(matches!(uptime, Reply::Integer(seconds) if *seconds >= 0), "{uptime:?}");
    assert!(matches!(saved, Reply::Integer(seconds) if *seconds > 0), "{saved:?}");
    let Reply::Integer(micros) = micros else { panic!("{micros:?}") };
    // As in all other replies.
    *micros /= 1000;
    (*run_id, *uptime, *saved) = (Reply::Nil, Reply::Nil, Reply::Nil);
    Reply::Array(items)
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

/// The embedded server's clock is set by hand, so the executor is never asked for the time.
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
        panic!("the clock is set by hand");
    }

    fn block_on(&self, _: futures::future::BoxFuture<'_, ()>) -> bowline::Result<()> {
        panic!("nothing blocks");
    }
}
