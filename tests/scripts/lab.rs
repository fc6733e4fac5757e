//! One lock on a server of its own, the scripts as typed calls, and what must hold after each of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use bowline::{ConnectionError, Script};
use redis::{Client, Connection, FromRedisValue, Value};

use crate::support::server::Server;

pub const LEASE: u64 = 30_000;
pub const TICKET_TTL: u64 = 20_000;
pub const INBOX: &str = "p:inbox:";

/// One acquisition attempt: what a client sends about it.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub client: u32,
    pub id: String,
    pub lease: u64,
    pub span: u32,
    pub ttl: u64,
    pub max_waiters: u32,
    pub not_after: u64,
}

/// The n-th attempt of a client.
pub fn attempt(client: u32, n: u64) -> Attempt {
    let id = format!("{}:{n}", uuid(client));
    Attempt { client, id, lease: LEASE, span: 1, ttl: TICKET_TTL, max_waiters: 0, not_after: 0 }
}

fn uuid(client: u32) -> String {
    format!("00000000-0000-0000-0000-{client:012}")
}

impl Attempt {
    pub fn lease(self, lease: u64) -> Self {
        Self { lease, ..self }
    }
    pub fn span(self, span: u32) -> Self {
        Self { span, ..self }
    }
    /// For permits, in place of the span.
    pub fn units(self, units: u32) -> Self {
        self.span(units)
    }
    /// Outlives the test, however slow the machine.
    pub fn patient(self) -> Self {
        Self { lease: 600_000, ttl: 600_000, ..self }
    }
    pub fn max_waiters(self, max_waiters: u32) -> Self {
        Self { max_waiters, ..self }
    }
    pub fn not_after(self, not_after: u64) -> Self {
        Self { not_after, ..self }
    }
    pub fn ticket(&self) -> String {
        format!("{}/{}/{}", self.id, self.lease, self.span)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acquired {
    Granted(u64),
    Queued { ttl: i64, length: i64, more: bool },
    Busy { ttl: i64, more: bool },
    Full(i64),
    Stale,
}

impl Acquired {
    #[track_caller]
    pub fn token(self) -> u64 {
        match self {
            Self::Granted(token) => token,
            other => panic!("not granted: {other:?}"),
        }
    }

    #[track_caller]
    pub fn granted(self) {
        assert!(matches!(self, Self::Granted(_)), "not granted: {self:?}");
    }

    /// Queued, behind a hold that has some of its lease left.
    #[track_caller]
    pub fn queued(self) -> i64 {
        match self {
            Self::Queued { ttl, length, more: false } if ttl > 0 => length,
            other => panic!("not queued behind a hold: {other:?}"),
        }
    }

    #[track_caller]
    pub fn busy(self) -> i64 {
        match self {
            Self::Busy { ttl, more: false } => ttl,
            other => panic!("not busy: {other:?}"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Released {
    Released { more: bool },
    Granted(u64),
    NotHeld { more: bool },
}

pub const RELEASED: Released = Released::Released { more: false };
pub const NOT_HELD: Released = Released::NotHeld { more: false };

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cancelled {
    Cancelled { more: bool },
    Released { more: bool },
    Gone { more: bool },
}

pub const CANCELLED: Cancelled = Cancelled::Cancelled { more: false };
pub const CANCEL_RELEASED: Cancelled = Cancelled::Released { more: false };
pub const CANCEL_GONE: Cancelled = Cancelled::Gone { more: false };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Waiting,
    Granted(u64),
    Gone,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    pub ttl: i64,
    pub more: bool,
    pub states: Vec<State>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Forced {
    Released { token: u64, more: bool },
    NotHeld { more: bool },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspected {
    pub holder: String,
    pub token: String,
    pub ttl: i64,
    pub waiters: i64,
}

/// The words of a reply, read in order.
pub struct Words(std::vec::IntoIter<Value>);

impl Words {
    #[track_caller]
    pub fn next<T: FromRedisValue>(&mut self) -> T {
        redis::from_redis_value(self.0.next().expect("a longer reply")).unwrap()
    }
    #[track_caller]
    pub fn flag(&mut self) -> bool {
        match self.next::<i64>() {
            0 => false,
            1 => true,
            other => panic!("not a flag: {other}"),
        }
    }
    #[track_caller]
    pub fn token(&mut self) -> u64 {
        let token = self.any_token();
        assert!(token > 0);
        token
    }
    /// 0 for what does not fence.
    #[track_caller]
    pub fn any_token(&mut self) -> u64 {
        let text: String = self.next();
        let token = text.parse().unwrap_or_else(|_| panic!("not a token: {text:?}"));
        assert!(token < 1 << 53, "{token}");
        token
    }
    pub fn rest(&self) -> usize {
        self.0.len()
    }
    /// For whoever reads next.
    pub fn put_back(&mut self, word: u64) {
        self.0 = vec![Value::Int(word.try_into().unwrap())].into_iter();
    }
}

pub struct Lab {
    pub server: Server,
    pub connection: Connection,
    /// lock, queue, tickets, fence
    pub keys: [String; 4],
    pub counts_everyone: bool,
    /// Look at everything after every call. Off for bulk only.
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
        Self { server, connection, keys, counts_everyone: true, checked: true, wrong: BTreeSet::new(), markers: 0 }
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

    // The scripts.

    pub fn acquire(&mut self, attempt: &Attempt) -> Acquired {
        self.acquire_as("wait", attempt).unwrap()
    }

    pub fn try_acquire(&mut self, attempt: &Attempt) -> Acquired {
        self.acquire_as("try", attempt).unwrap()
    }

    pub fn acquire_as(&mut self, mode: &str, a: &Attempt) -> Result<Acquired, String> {
        let args = [
            a.id.clone(),
            mode.to_owned(),
            a.lease.to_string(),
            a.span.to_string(),
            a.ttl.to_string(),
            a.max_waiters.to_string(),
            a.not_after.to_string(),
            INBOX.to_owned(),
            self.counts(),
        ];
        self.call("lock_acquire", &args, |words| match words.next::<String>().as_str() {
            "GRANTED" => Acquired::Granted(words.token()),
            "QUEUED" => Acquired::Queued { ttl: words.next(), length: words.next(), more: words.flag() },
            "BUSY" => Acquired::Busy { ttl: words.next(), more: words.flag() },
            "FULL" => Acquired::Full(words.next()),
            "STALE" => Acquired::Stale,
            other => panic!("{other}"),
        })
    }

    pub fn release(&mut self, attempt: &Attempt) -> Released {
        self.release_and_queue(attempt, None).unwrap()
    }

    pub fn release_for(&mut self, attempt: &Attempt, next: &Attempt) -> Released {
        self.release_and_queue(attempt, Some(next)).unwrap()
    }

    pub fn release_and_queue(&mut self, attempt: &Attempt, next: Option<&Attempt>) -> Result<Released, String> {
        let (ticket, ttl) = next.map_or_else(|| (String::new(), 0), |next| (next.ticket(), next.ttl));
        let args = [attempt.id.clone(), INBOX.to_owned(), self.counts(), ticket, ttl.to_string(), "0".to_owned()];
        self.call("lock_release", &args, |words| match words.next::<String>().as_str() {
            "RELEASED" => Released::Released { more: words.flag() },
            "NOT_HELD" => Released::NotHeld { more: words.flag() },
            "GRANTED" => Released::Granted(words.token()),
            other => panic!("{other}"),
        })
    }

    /// Releases, and reads in the reply what its client is told.
    pub fn release_listening(&mut self, attempt: &Attempt) -> (String, Vec<String>) {
        let text = str::to_owned;
        let args = [attempt.id.clone(), INBOX.to_owned(), self.counts(), text(""), text("0"), text("1")];
        let read = |words: &mut Words| {
            let (word, _, now) = (words.next(), words.flag(), words.next());
            let told = (0..words.rest()).map(|_| words.next()).collect();
            words.put_back(now);
            (word, told)
        };
        self.call("lock_release", &args, read).unwrap()
    }

    pub fn cancel(&mut self, attempt: &Attempt) -> Cancelled {
        self.cancel_ticket(&attempt.ticket(), false).unwrap()
    }

    pub fn cancel_ticket(&mut self, ticket: &str, from_tail: bool) -> Result<Cancelled, String> {
        let from = if from_tail { "-1" } else { "1" };
        let args = [ticket.to_owned(), from.to_owned(), INBOX.to_owned(), self.counts()];
        self.call("lock_cancel", &args, |words| match words.next::<String>().as_str() {
            "CANCELLED" => Cancelled::Cancelled { more: words.flag() },
            "RELEASED" => Cancelled::Released { more: words.flag() },
            "GONE" => Cancelled::Gone { more: words.flag() },
            other => panic!("{other}"),
        })
    }

    pub fn touch(&mut self, attempts: &[&Attempt]) -> Touched {
        self.try_touch(attempts).unwrap()
    }

    /// What became of a single attempt.
    pub fn state(&mut self, attempt: &Attempt) -> State {
        self.touch(&[attempt]).states[0]
    }

    pub fn try_touch(&mut self, attempts: &[&Attempt]) -> Result<Touched, String> {
        let mut args = vec![INBOX.to_owned(), self.counts()];
        for attempt in attempts {
            args.extend([attempt.ticket(), attempt.ttl.to_string()]);
        }
        let n = attempts.len();
        self.call_raw("lock_touch", &args, true, |words| {
            let (ttl, more) = (words.next(), words.flag());
            let mut states = Vec::new();
            for _ in 0..n {
                states.push(match words.next::<String>().as_str() {
                    "WAITING" => words.next::<String>().is_empty().then_some(State::Waiting).unwrap(),
                    "GONE" => words.next::<String>().is_empty().then_some(State::Gone).unwrap(),
                    "GRANTED" => State::Granted(words.token()),
                    other => panic!("{other}"),
                });
            }
            Touched { ttl, more, states }
        })
    }

    /// Key, wire id and lease of each hold.
    pub fn renew(&mut self, holds: &[(&str, &str, u64)]) -> Vec<i64> {
        let keys: Vec<String> = holds.iter().map(|(key, ..)| (*key).to_owned()).collect();
        let args: Vec<String> = holds.iter().flat_map(|(_, id, lease)| [(*id).to_owned(), lease.to_string()]).collect();
        let n = holds.len();
        self.run("lock_renew", &keys, &args, true, |words| (0..n).map(|_| words.next()).collect()).unwrap()
    }

    /// Renews the lab's lock.
    pub fn renew_one(&mut self, attempt: &Attempt) -> i64 {
        let key = self.keys[0].clone();
        self.renew(&[(&key, &attempt.id, attempt.lease)])[0]
    }

    pub fn force_release(&mut self, holder: &Attempt) -> Forced {
        self.try_force_release(holder).unwrap()
    }

    pub fn try_force_release(&mut self, holder: &Attempt) -> Result<Forced, String> {
        let args = [holder.id.clone(), INBOX.to_owned(), self.counts()];
        self.call("lock_force_release", &args, |words| match words.next::<String>().as_str() {
            "RELEASED" => Forced::Released { token: words.token(), more: words.flag() },
            "NOT_HELD" => Forced::NotHeld { more: words.flag() },
            other => panic!("{other}"),
        })
    }

    pub fn inspect(&mut self) -> Inspected {
        self.try_inspect().unwrap()
    }

    pub fn try_inspect(&mut self) -> Result<Inspected, String> {
        self.call("lock_inspect", &[], |words| Inspected {
            holder: words.next(),
            token: words.next(),
            ttl: words.next(),
            waiters: words.next(),
        })
    }

    pub fn counts(&self) -> String {
        u8::from(self.counts_everyone).to_string()
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
        let earliest = self.now();
        let mut command = redis::cmd("EVALSHA");
        command.arg(script.sha1()).arg(keys.len()).arg(keys).arg(args);
        let reply: Result<Value, _> = command.query(&mut self.connection);
        let latest = self.now();
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
        let Value::Array(reply) = reply else { panic!("{}: {reply:?}", script.name()) };
        let mut words = Words(reply.into_iter());
        let mut now = if now_first { words.next() } else { 0 };
        let outcome = read(&mut words);
        if !now_first {
            now = words.next();
        }
        assert_eq!(words.0.next(), None, "{} replied more than it should", script.name());
        assert!((earliest..=latest).contains(&now), "{} says {now}, not {earliest}..{latest}", script.name());
        Ok(outcome)
    }

    /// The server's clock.
    pub fn now(&mut self) -> u64 {
        self.now_us() / 1000
    }

    pub fn now_us(&mut self) -> u64 {
        let (seconds, micros): (u64, u64) = redis::cmd("TIME").query(&mut self.connection).unwrap();
        seconds * 1_000_000 + micros
    }

    // Faults and short cuts.

    pub fn raw(&mut self, command: &[&str]) -> Value {
        redis::cmd(command[0]).arg(&command[1..]).query(&mut self.connection).unwrap()
    }

    pub fn del(&mut self, key: usize) {
        let key = self.keys[key].clone();
        self.raw(&["DEL", &key]);
    }

    /// The hold's lease ends.
    pub fn expire_hold(&mut self) {
        self.del(0);
    }

    /// The ticket was not touched in time.
    pub fn expire_ticket(&mut self, attempt: &Attempt) {
        let (key, past) = (self.keys[2].clone(), (self.now() - 1).to_string());
        self.raw(&["ZADD", &key, "XX", &past, &attempt.ticket()]);
    }

    /// Creates one of the keys, or another, with a type that no script expects there.
    pub fn set_wrong(&mut self, key: &str) {
        self.server.allow_forever(key);
        self.wrong.insert(key.to_owned());
        let command = if key.ends_with(":fence") { ["RPUSH", key, "x"] } else { ["SET", key, "x"] };
        self.raw(&["DEL", key]);
        self.raw(&command);
    }

    // Looking inside.

    pub fn waiters(&mut self) -> Vec<String> {
        let key = self.keys[1].clone();
        redis::cmd("LRANGE").arg(key).arg(0).arg(-1).query(&mut self.connection).unwrap()
    }

    #[track_caller]
    pub fn assert_queue(&mut self, expected: &[&Attempt]) {
        let expected: Vec<String> = expected.iter().map(|attempt| attempt.ticket()).collect();
        assert_eq!(self.waiters(), expected);
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
        self.server.ttl_ms(&self.keys[0])
    }

    pub fn dump(&mut self) -> Dump {
        type Row = (String, String, i64, Vec<String>);
        let start = self.now();
        let rows: Vec<Row> = redis::cmd("EVAL").arg(DUMP).arg(0).query(&mut self.connection).unwrap();
        let took = self.now() - start;
        Dump {
            took,
            keys: rows
                .into_iter()
                .map(|(key, kind, expiry, items)| {
                    let content = match kind.as_str() {
                        "hash" => Content::Map(pairs(&items).collect()),
                        "zset" => {
                            Content::Scores(pairs(&items).map(|(ticket, at)| (ticket, at.parse().unwrap())).collect())
                        }
                        _ => Content::Items(items),
                    };
                    (key, (expiry, content))
                })
                .collect(),
        }
    }

    /// What must hold after every call, for every lock on the server.
    #[track_caller]
    fn check(&mut self) {
        let whole = self.dump();
        let dump = &whole.keys;
        for (key, (expiry, content)) in dump {
            if self.wrong.contains(key) {
                continue;
            }
            assert!(*expiry > 0, "{key} has no TTL");
            match content {
                Content::Map(fields) if key.starts_with("p:sem:") || key.starts_with("p:rw:") => {
                    self.check_permits(&whole, key, fields, *expiry);
                }
                Content::Map(_) | Content::Scores(_) if key.starts_with("p:latch:") => {}
                Content::Map(fields) => {
                    assert_eq!(fields.len(), 2, "{key}: {fields:?}");
                    assert!(fields.contains_key("token"), "{key}: {fields:?}");
                }
                Content::Scores(_) if key.ends_with("}:leases") => {
                    let permits = key.strip_suffix(":leases").unwrap();
                    assert!(self.wrong.contains(permits) || dump.contains_key(permits), "{key} without {permits}");
                }
                Content::Scores(tickets) => {
                    let queue = format!("{}:queue", key.strip_suffix(":tickets").unwrap());
                    if self.wrong.contains(&queue) {
                        continue;
                    }
                    let Some((_, Content::Items(list))) = dump.get(&queue) else { panic!("{key} without {queue}") };
                    let listed: BTreeSet<&String> = list.iter().collect();
                    assert_eq!(listed.len(), list.len(), "{queue} has a ticket twice: {list:?}");
                    assert_eq!(listed, tickets.keys().collect(), "list and zset differ");
                }
                Content::Items(_) if key.ends_with("}:queue") => {
                    let tickets = format!("{}:tickets", key.strip_suffix(":queue").unwrap());
                    assert!(dump.contains_key(&tickets), "{key} without {tickets}");
                }
                Content::Items(_) => {}
            }
        }
    }

    /// A hold is in the hash and has a lease; `used` is the sum of all; both keys outlive every lease.
    #[track_caller]
    fn check_permits(&self, dump: &Dump, key: &str, hash: &BTreeMap<String, String>, end: i64) {
        let number = |text: &str| text.parse::<u64>().unwrap_or_else(|_| panic!("{key}: {hash:?}"));
        let held = hash.iter().filter(|(field, _)| *field != "used" && *field != "limit");
        let sum: u64 = held.clone().map(|(_, hold)| number(hold.split(' ').next().unwrap())).sum();
        assert_eq!(hash.get("used").map(|used| number(used)), Some(sum), "{key}: {hash:?}");
        let leases = format!("{key}:leases");
        if self.wrong.contains(&leases) {
            return;
        }
        match dump.keys.get(&leases) {
            Some((leases_end, Content::Scores(scores))) => {
                assert!(held.map(|(id, _)| id).eq(scores.keys()), "{key}: {hash:?} {scores:?}");
                let last = *scores.values().max().unwrap();
                let slack = i64::try_from(dump.took).unwrap() + 2;
                assert!(end + slack >= last && leases_end + slack >= last, "{key}: {end}, {leases_end}, {scores:?}");
            }
            None => assert!(sum == 0 && hash.contains_key("limit"), "{key} without leases: {hash:?}"),
            other => panic!("{other:?}"),
        }
    }

    /// Runs the same call twice: the second, late copy changes nothing. Expiry times may have moved by `slack` ms.
    #[track_caller]
    pub fn twice<T>(&mut self, slack: u64, mut call: impl FnMut(&mut Self) -> T) -> (T, T) {
        let first = call(self);
        let before = self.dump();
        let second = call(self);
        let after = self.dump();
        before.assert_same(&after, slack);
        (first, second)
    }

    /// The call fails with the code, and nothing has changed.
    #[track_caller]
    pub fn assert_refused<T: std::fmt::Debug>(
        &mut self,
        code: &str,
        call: impl FnOnce(&mut Self) -> Result<T, String>,
    ) {
        let before = self.dump();
        let refused = call(self).unwrap_err();
        assert_eq!(refused, code);
        let after = self.dump();
        before.assert_same(&after, 0);
    }

    // The inbox of a client.

    pub fn listen(&mut self, client: u32) -> Inbox {
        let channel = format!("{INBOX}{}", uuid(client));
        let (url, (send, messages), (ready, is_ready)) = (self.server.url(), mpsc::channel(), mpsc::channel());
        let name = channel.clone();
        thread::spawn(move || {
            let mut connection = Client::open(url).unwrap().get_connection().unwrap();
            let mut pubsub = connection.as_pubsub();
            pubsub.subscribe(&name).unwrap();
            ready.send(()).unwrap();
            // Until the server is gone, or cuts it.
            while let Ok(message) = pubsub.get_message() {
                // Read or not: the client listens.
                let _ = send.send(message.get_payload::<String>().unwrap());
            }
        });
        is_ready.recv_timeout(Duration::from_secs(10)).unwrap();
        Inbox { channel, messages }
    }

    /// Everything that the inbox has got until now.
    #[track_caller]
    pub fn read(&mut self, inbox: &Inbox) -> Vec<String> {
        self.markers += 1;
        let marker = format!("marker {}", self.markers);
        assert_eq!(self.raw(&["PUBLISH", &inbox.channel, &marker]), Value::Int(1));
        let mut read = Vec::new();
        loop {
            let message = inbox.messages.recv_timeout(Duration::from_secs(10)).unwrap();
            if message == marker {
                return read;
            }
            read.push(message);
        }
    }

    /// All subscriptions are cut.
    pub fn cut_inboxes(&mut self) {
        self.raw(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        let start = Instant::now();
        while self.raw(&["PUBSUB", "CHANNELS"]) != Value::Array(Vec::new()) {
            assert!(start.elapsed() < Duration::from_secs(10));
        }
    }
}

pub struct Inbox {
    channel: String,
    messages: Receiver<String>,
}

/// The grant of an attempt, as its client is told.
pub fn grant(attempt: &Attempt, token: u64) -> String {
    format!("{token} {} {}", attempt.lease, attempt.id)
}

/// The keys of a semaphore, or of a read-write lock: permits, leases, queue, tickets, fence.
pub fn permit_keys(kind: &str, name: &str) -> [String; 5] {
    let permits = format!("p:{kind}:{{{name}}}");
    ["", ":leases", ":queue", ":tickets", ":fence"].map(|suffix| format!("{permits}{suffix}"))
}

pub fn keys_of(name: &str) -> [String; 4] {
    let lock = format!("p:lock:{{{name}}}");
    [lock.clone(), format!("{lock}:queue"), format!("{lock}:tickets"), format!("{lock}:fence")]
}

fn load(connection: &mut Connection) {
    for script in Script::all() {
        let sha1: String = redis::cmd("SCRIPT").arg("LOAD").arg(script.source()).query(connection).unwrap();
        assert_eq!(sha1, script.sha1());
    }
}

/// Key, type, expiry (server ms, -1 is never) and content of every key, at one moment.
const DUMP: &str = "
local rows = {}
for i, key in ipairs(redis.call('KEYS', '*')) do
  local time, ttl, kind, items = redis.call('TIME'), redis.call('PTTL', key), redis.call('TYPE', key).ok, {}
  if kind == 'string' then items = {redis.call('GET', key)}
  elseif kind == 'list' then items = redis.call('LRANGE', key, 0, -1)
  elseif kind == 'hash' then items = redis.call('HGETALL', key)
  elseif kind == 'zset' then items = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  else items = {'?'} end
  if ttl >= 0 then ttl = ttl + time[1] * 1000 + math.floor(time[2] / 1000) end
  rows[i] = {key, kind, ttl, items}
end
return rows
";

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Items(Vec<String>),
    Map(BTreeMap<String, String>),
    Scores(BTreeMap<String, i64>),
}

/// Everything in the server.
#[derive(Clone, Debug)]
pub struct Dump {
    keys: BTreeMap<String, (i64, Content)>,
    /// In ms: a key's TTL and the clock are not read in the same instant, so its expiry is known this well.
    took: u64,
}

impl Dump {
    /// The same, but for expiry times and scores that differ by up to `slack` ms.
    #[track_caller]
    pub fn assert_same(&self, other: &Self, slack: u64) {
        let expiry_slack = slack + self.took + other.took + 2;
        let names = |dump: &Self| dump.keys.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(self), names(other));
        for (key, (expiry, content)) in &self.keys {
            let (other_expiry, other_content) = &other.keys[key];
            assert!(expiry.abs_diff(*other_expiry) <= expiry_slack, "{key} expires at {expiry}, {other_expiry}");
            match (content, other_content) {
                (Content::Scores(a), Content::Scores(b)) => {
                    assert!(a.keys().eq(b.keys()), "{key}: {a:?} {b:?}");
                    for (ticket, score) in a {
                        assert!(score.abs_diff(b[ticket]) <= slack, "{ticket} expires at {score}, {}", b[ticket]);
                    }
                }
                (a, b) => assert_eq!(a, b, "{key}"),
            }
        }
    }
}

fn pairs(items: &[String]) -> impl Iterator<Item = (String, String)> {
    items.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone()))
}
