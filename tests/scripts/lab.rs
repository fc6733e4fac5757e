//! One lock on a server of its own, the scripts as typed calls, and what must hold after each of them.

use std::collections::BTreeSet;

use bowline::{ConnectionError, Script, wire};
use redis::{Connection, Value};

use crate::support::server::Server;

mod attempt;
mod calls;
mod check;
mod clock;
mod dump;
mod inbox;
mod outcome;

pub use attempt::{Attempt, LEASE, TICKET_TTL, attempt, grant};
pub use check::Around;
pub use inbox::{Inbox, channel};
pub use outcome::{
    Acquired, Ahead, CANCEL_GONE, CANCEL_RELEASED, CANCELLED, Cancelled, Forced, HeartbeatReply, Inspected, NOT_HELD,
    RELEASED, Released, Renewed, State, Words, is_held,
};

pub struct Lab {
    pub server: Server,
    pub connection: Connection,
    /// Those of the primitive, in the order of its scripts; of a lock: lock, queue, tickets, fence.
    pub keys: Vec<String>,
    pub counts_everyone: bool,
    /// Messages go through shard channels.
    pub sharded: bool,
    /// Look at everything after every call, and at the clock. Off for bulk only.
    pub checked: bool,
    wrong: BTreeSet<String>,
    markers: u64,
}

impl Lab {
    pub fn new() -> Self {
        Self::on(Server::start())
    }

    pub fn on(server: Server) -> Self {
        let mut connection = server.client();
        load(&mut connection);
        let keys = keys_of("n");
        Self {
            server,
            connection,
            keys,
            counts_everyone: true,
            sharded: false,
            checked: true,
            wrong: BTreeSet::new(),
            markers: 0,
        }
    }

    /// A lab where the first client's first attempt holds the lock, and its token.
    pub fn held() -> (Self, Attempt, u64) {
        let mut lab = Self::new();
        let holder = attempt(1, 1);
        let token = lab.acquire(&holder).token();
        (lab, holder, token)
    }

    /// The server was started anew, and has forgotten the scripts.
    pub fn reconnect(&mut self) {
        self.connection = self.server.client();
        load(&mut self.connection);
    }

    fn call<T>(&mut self, script: &str, args: &[String], read: impl FnOnce(&mut Words) -> T) -> Result<T, String> {
        self.call_raw(script, args, false, read)
    }

    fn call_raw<T>(
        &mut self,
        script: &str,
        args: &[String],
        now_first: bool,
        read: impl FnOnce(&mut Words) -> T,
    ) -> Result<T, String> {
        let keys = self.keys.clone();
        self.run(script, &keys, args, now_first, read)
    }

    /// Runs a script and checks what must hold after each of them. The error is its code.
    pub fn run<T>(
        &mut self,
        script: &str,
        keys: &[String],
        args: &[String],
        now_first: bool,
        read: impl FnOnce(&mut Words) -> T,
    ) -> Result<T, String> {
        let script = Script::all().find(|s| s.name() == script).unwrap();
        let before = self.checked.then(|| self.clock());
        let mut command = redis::cmd("EVALSHA");
        command.arg(script.sha1()).arg(keys.len()).arg(keys).arg(args);
        let reply: Result<Value, _> = command.query(&mut self.connection);
        let time = before.map_or(0..=u64::MAX, |before| self.since(&before));
        if self.checked {
            self.check();
        }
        let reply = reply.map_err(|error| {
            let code = error.code().unwrap_or_else(|| panic!("{}: {error}", script.name()));
            match ConnectionError::refused(&format!("{code} {}", error.detail().unwrap_or_default())) {
                ConnectionError::Refused { code, .. } => code,
                other => panic!("{other}"),
            }
        })?;
        let word = |word: &str| Value::BulkString(word.into());
        let reply = match reply {
            Value::Int(micros) if matches!(script.name(), "lock_vote" | "lock_vote_claim") => {
                let mut reply = vec![word("ACCEPTED"), word(&args[2]), word("="), Value::Int(0), Value::Int(0)];
                if script.name() == "lock_vote_claim" {
                    reply.push(word(&micros.to_string()));
                }
                reply.push(Value::Int(micros / 1000));
                reply
            }
            // The time comes in microseconds, and the turn after it.
            Value::Array(mut reply) if matches!(script.name(), "lock_vote" | "lock_view" | "lock_vote_claim") => {
                let Value::Int(micros) = reply.remove(5) else { panic!("{}: {reply:?}", script.name()) };
                reply.push(Value::Int(micros / 1000));
                reply
            }
            Value::Array(mut reply) if script.name() == "lock_vote_leave" => {
                reply.push(Value::Int(0));
                reply
            }
            Value::Array(reply) => reply,
            Value::Int(micros) if matches!(script.name(), "lock_acquire" | "permit_acquire") => {
                vec![word("GRANTED"), word(&micros.to_string()), Value::Int(micros / 1000)]
            }
            Value::Int(held @ (0 | 1)) if script.name().ends_with("_release") => {
                vec![word(["NOT_HELD", "RELEASED"][held as usize]), Value::Int(0), Value::Int(0)]
            }
            Value::BulkString(text) if script.name() == "permit_acquire" => {
                let text = String::from_utf8(text).unwrap();
                let (token, micros) = text.split_once(' ').unwrap();
                vec![word("GRANTED"), word(token), Value::Int(micros.parse::<i64>().unwrap() / 1000)]
            }
            other => panic!("{}: {other:?}", script.name()),
        };
        let mut words = Words(reply.into_iter());
        let mut now = if now_first { words.next() } else { 0 };
        let outcome = read(&mut words);
        if !now_first {
            now = words.next();
        }
        assert_eq!(words.0.next(), None, "{} replied more than it should", script.name());
        // The reply of a release without waiters does not contain the time.
        let unread = now == 0 && (script.name().ends_with("_release") || script.name() == "lock_vote_leave");
        assert!(unread || time.contains(&now), "{} says {now}, not {time:?}", script.name());
        Ok(outcome)
    }

    // Faults and short cuts.

    pub fn raw(&mut self, command: &[&str]) -> Value {
        redis::cmd(command[0]).arg(&command[1..]).query(&mut self.connection).unwrap()
    }

    pub fn del(&mut self, key: usize) {
        let key = self.keys[key].clone();
        self.raw(&["DEL", &key]);
    }

    pub fn ttl(&self, key: usize) -> i64 {
        self.server.ttl_ms(&self.keys[key])
    }

    /// The hold's lease ends.
    pub fn expire_hold(&mut self) {
        self.del(0);
    }

    /// The ticket had no heartbeat in time.
    pub fn expire_ticket(&mut self, attempt: &Attempt) {
        let key = self.keys[2].clone();
        self.lapse(&key, &attempt.ticket(), 1);
    }

    /// What is in the sorted set was over that long ago.
    pub fn lapse(&mut self, key: &str, member: &str, ms_ago: u64) {
        let past = (self.now() - ms_ago).to_string();
        self.raw(&["ZADD", key, "XX", &past, member]);
    }

    /// Creates one of the keys, or another, with a type that no script expects there.
    pub fn set_wrong(&mut self, key: &str) {
        self.server.allow_forever(key);
        self.wrong.insert(key.to_owned());
        let command =
            if key.ends_with(":fence") || key.ends_with(":tat") { ["RPUSH", key, "x"] } else { ["SET", key, "x"] };
        self.raw(&["DEL", key]);
        self.raw(&command);
    }

    // Looking inside.

    /// From now on, for [`executed`](Self::executed).
    pub fn count_commands(&mut self) {
        self.raw(&["CONFIG", "RESETSTAT"]);
    }

    /// How often the server has executed the command, in scripts too.
    pub fn executed(&mut self, command: &str) -> u64 {
        let stats: String = redis::cmd("INFO").arg("commandstats").query(&mut self.connection).unwrap();
        let of = |line: &str| {
            let rest = line.strip_prefix("cmdstat_")?.strip_prefix(command)?;
            // Since Redis 7.0, subcommands are counted separately.
            let (subcommand, calls) = rest.split_once(":calls=")?;
            let calls = calls.split(',').next()?.parse::<u64>().ok()?;
            (subcommand.is_empty() || subcommand.starts_with('|')).then_some(calls)
        };
        stats.lines().filter_map(of).sum()
    }

    pub fn waiters(&mut self) -> Vec<String> {
        let key = self.keys[1].clone();
        self.list(&key)
    }

    pub fn list(&mut self, key: &str) -> Vec<String> {
        redis::cmd("LRANGE").arg(key).arg(0).arg(-1).query(&mut self.connection).unwrap()
    }

    #[track_caller]
    pub fn assert_queue(&mut self, expected: &[&Attempt]) {
        assert_eq!(self.waiters(), tickets(expected));
    }

    #[track_caller]
    pub fn assert_holder(&mut self, attempt: &Attempt) {
        assert_eq!(self.inspect().holder, attempt.id);
    }

    #[track_caller]
    pub fn assert_free(&mut self) {
        assert_eq!(self.inspect().holder, "");
    }

    pub fn lock_ttl(&self) -> i64 {
        self.ttl(0)
    }
}

pub fn tickets(attempts: &[&Attempt]) -> Vec<String> {
    attempts.iter().map(|attempt| attempt.ticket()).collect()
}

pub fn keys_of(name: &str) -> Vec<String> {
    lock(name).keys()
}

/// The prefix of all clients in the labs.
pub const PREFIX: &str = "p";

pub fn lock(name: &str) -> wire::Resource {
    wire::Resource::lock(PREFIX, name).unwrap()
}

fn load(connection: &mut Connection) {
    for script in Script::all() {
        let sha1: String = redis::cmd("SCRIPT").arg("LOAD").arg(script.source()).query(connection).unwrap();
        assert_eq!(sha1, script.sha1());
    }
}
