//! The embedded server in the simulation, looked at after every script.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::{Arg, Call, Connection, ConnectionError, Notice, Reply, Script};
use futures::StreamExt;
use futures::stream::BoxStream;

use crate::census::Counted;
use crate::executor::{Machine, WORLD};
use crate::judge::latch::{is_first, is_telling, living};
use crate::judge::view::{Dump, is_used, locks, queue, view};
use crate::judge::{Executed, Judge, Known, arg, may_be_long, twice};
use crate::network::{Backend, at_once};
use crate::nodes::{self, Node, Nodes, SPY};
use crate::random::Random;
use crate::scripts::Scripts;

/// How many waiters of a latch one call tells: as it is, and one.
const MOST_TOLD: [(&str, &str); 2] = [("'LIMIT', 0, 1000 + 1)", "'LIMIT', 0, 1 + 1)"), ("#ids > 1000\n", "#ids > 1\n")];

/// Those that wait for a latch, by the only script fragment that does so in portions.
fn tells_waiters(script: &Script) -> bool {
    ["latch_set", "latch_count_down", "latch_heartbeat", "latch_cancel", "latch_delete"].contains(&script.name())
}

fn one_at_a_time(source: &str) -> String {
    // A mutant may have taken them away.
    MOST_TOLD.iter().fold(source.to_owned(), |source, (most, one)| source.replace(most, one))
}

#[test]
fn the_portion_of_waiters_stands_in_the_scripts() {
    for script in Script::all().filter(|script| tells_waiters(script)) {
        for (most, _) in MOST_TOLD {
            assert!(script.source().contains(most), "{}: {most}", script.name());
        }
    }
}

pub struct SimServer {
    machine: Arc<Machine>,
    nodes: Arc<Nodes>,
    scripts: Scripts,
    pub judge: Arc<Judge>,
    listening: Arc<Mutex<Listeners>>,
    random: Mutex<Random>,
    frozen_until: Mutex<Duration>,
    /// What it answers to writes, and until when.
    refusal: Mutex<Option<(String, Duration)>>,
    /// By how much the clock was set back, all in all.
    set_back: Mutex<Duration>,
    /// Evictions break the queue's consistency until the next script looks.
    evicted: Mutex<bool>,
    /// The calls of latches whose first copy found nothing to change.
    idle: Mutex<HashSet<String>>,
    unwatched: AtomicBool,
    /// One call tells one waiter of a latch.
    one_at_a_time: AtomicBool,
    _counted: Counted,
}

impl SimServer {
    pub fn new(machine: &Arc<Machine>, scripts: Scripts) -> Arc<Self> {
        Arc::new(Self {
            machine: machine.clone(),
            nodes: Arc::new(Nodes::new(machine)),
            scripts,
            judge: Judge::new(machine),
            listening: Arc::default(),
            random: Mutex::new(Random::new(machine.random(Random::next))),
            frozen_until: Mutex::default(),
            refusal: Mutex::default(),
            set_back: Mutex::default(),
            evicted: Mutex::new(false),
            idle: Mutex::default(),
            unwatched: AtomicBool::default(),
            one_at_a_time: AtomicBool::default(),
            _counted: Counted::new("server"),
        })
    }

    fn dump(&self) -> Dump {
        nodes::dump(&self.nodes.server())
    }

    pub fn keys(&self) -> Vec<String> {
        self.dump().into_keys().collect()
    }

    /// How many tickets stand in the queue of a lock.
    pub fn waiters(&self, name: &str) -> usize {
        self.queued(&format!("bowline:lock:{{{name}}}"))
    }

    /// The same of any primitive, by the key of who holds it.
    pub fn queued(&self, key: &str) -> usize {
        view(&self.dump(), key).queue.len()
    }

    /// Holds and tickets that live.
    pub fn living(&self) -> Vec<String> {
        let (dump, now) = (self.dump(), self.nodes.server().now());
        let of = |lock: String| {
            let view = view(&dump, &lock);
            let tickets = view.queue.into_iter().filter(|ticket| ticket.lives(now)).map(|ticket| ticket.id);
            let holds = view.holds.into_iter().filter(|hold| hold.lives(now)).map(|hold| hold.id);
            holds.chain(tickets).collect::<Vec<_>>()
        };
        locks(&dump).into_iter().flat_map(of).chain(living(&dump, now)).collect()
    }

    /// Whoever opens or deletes a latch tells one of those who wait; the others take more calls.
    pub fn tell_one_at_a_time(&self) {
        self.one_at_a_time.store(true, Ordering::Relaxed);
        self.judge.one_is_told();
    }

    /// What is left of the lease of a hold.
    pub fn left(&self, known: &Known<'_>) -> Duration {
        self.judge.left(known, self.nodes.server().now())
    }

    /// By how much longer than it should something may live.
    pub fn set_back(&self) -> Duration {
        *self.set_back.lock().unwrap()
    }

    /// Lets the judge see what time has changed.
    pub fn look(&self) {
        if self.unwatched.load(Ordering::Relaxed) {
            return;
        }
        self.judge.look_now_and_then(|| self.nodes.server().now());
    }

    /// The server stands still: requests that reach it are executed afterwards.
    pub fn freeze(&self, duration: Duration) {
        self.judge.look(self.nodes.server().now());
        let until = self.machine.now() + duration;
        *self.frozen_until.lock().unwrap() = until;
        self.judge.server_stands_still(until);
    }

    /// The server refuses writes for a while, with that line. Commands that read go on.
    pub fn refuse(self: &Arc<Self>, line: &str, duration: Duration) {
        self.judge.look(self.nodes.server().now());
        let until = self.machine.now() + duration;
        *self.refusal.lock().unwrap() = Some((line.to_owned(), until));
        self.judge.server_stands_still(until);
        self.nodes.server().refuse_writes(Some(line));
        let (server, world) = (self.clone(), self.machine.process(WORLD));
        self.machine.process(WORLD).spawn(Box::pin(async move {
            world.sleep(duration).await;
            let mut refusal = server.refusal.lock().unwrap();
            if refusal.as_ref().is_some_and(|(_, until)| *until <= server.machine.now()) {
                *refusal = None;
                server.nodes.server().refuse_writes(None);
            }
        }));
    }

    /// How many subscriptions a channel has, as a `PUBLISH` counts them.
    pub fn listeners(&self, channel: &str) -> i64 {
        match self.nodes.server().eval("return redis.call('PUBLISH', ARGV[1], 'anybody?')", &[], &[channel.as_bytes()])
        {
            Ok(Reply::Integer(listeners)) => listeners,
            other => panic!("PUBLISH: {other:?}"),
        }
    }

    pub fn flush(&self) {
        self.judge.look(self.nodes.server().now());
        self.nodes.server().flush_all();
        self.judge.damaged(&self.dump(), self.nodes.server().now());
        self.nodes.changed();
    }

    /// Drops one key, as a server that is short of memory may.
    pub fn evict(&self, draw: u64) -> Option<String> {
        self.judge.look(self.nodes.server().now());
        let keys = self.keys();
        let key = keys.get(draw as usize % keys.len().max(1))?;
        *self.evicted.lock().unwrap() = true;
        self.nodes.server().refuse_writes(None);
        self.nodes.server().eval("return redis.call('DEL', KEYS[1])", &[key.as_bytes()], &[]).unwrap();
        self.nodes.server().refuse_writes(self.refusal.lock().unwrap().as_ref().map(|(line, _)| &**line));
        self.judge.damaged(&self.dump(), self.nodes.server().now());
        self.nodes.changed();
        Some(key.clone())
    }

    pub fn now(&self) -> Duration {
        self.nodes.server().now()
    }

    pub fn step_clock(&self, by: Duration, forward: bool) {
        let now = self.nodes.server().now();
        self.judge.look(now);
        self.nodes.set_clock(if forward { now + by } else { now - by });
        if !forward {
            *self.set_back.lock().unwrap() += by;
        }
        self.judge.look(self.nodes.server().now());
        self.judge.damaged(&self.dump(), self.nodes.server().now());
    }

    /// From now on nothing is looked at: with thousands of names that would take too long.
    pub fn unwatched(&self) {
        self.unwatched.store(true, Ordering::Relaxed);
    }

    /// Somebody holds so many locks, `held 0` and so on.
    pub fn occupy(&self, names: usize, lease: Duration) {
        let source = "for n = 0, ARGV[1] - 1 do \
            local lock = 'bowline:lock:{held ' .. n .. '}' \
            redis.call('HSET', lock, '00000000-0000-0000-0000-000000000001:' .. n, n) \
            redis.call('PEXPIRE', lock, ARGV[2]) end";
        let (names, lease) = (names.to_string(), lease.as_millis().to_string());
        self.nodes.server().eval(source, &[], &[names.as_bytes(), lease.as_bytes()]).unwrap();
    }

    /// From now on there is a replica, which is as far behind.
    pub fn replicate(&self, lag: Duration) {
        self.nodes.replicate(lag);
    }

    /// The replica becomes the primary, with the last writes or without. Who is connected stays where he is.
    pub fn fail_over(&self, lost: bool) -> String {
        self.judge.look(self.now());
        let told = self.nodes.fail_over(lost);
        self.listening.lock().unwrap().moved(&self.judge, self.nodes.primary());
        if let Some((line, _)) = &*self.refusal.lock().unwrap() {
            self.nodes.server().refuse_writes(Some(line));
        }
        if lost {
            self.judge.damaged(&self.dump(), self.now());
        }
        told
    }

    fn run(&self, node: Node, call: Call<'_>) -> Result<Reply, ConnectionError> {
        let (server, connection) = self.nodes.at(node);
        let mut source = self.scripts.altered(call.script).map(str::to_owned);
        if self.one_at_a_time.load(Ordering::Relaxed) && tells_waiters(call.script) {
            source = Some(one_at_a_time(source.as_deref().unwrap_or(call.script.source())));
        }
        if self.nodes.has_replica() {
            source = Some(format!("{SPY}{}", source.as_deref().unwrap_or(call.script.source())));
        }
        let Some(source) = source else { return at_once(connection.run(call)) };
        let keys: Vec<&[u8]> = call.keys.iter().map(|key| key.as_bytes()).collect();
        let args = call.args.iter().map(|arg| match arg {
            Arg::Text(text) => (*text).to_owned(),
            Arg::Number(number) => number.to_string(),
        });
        let args: Vec<String> = args.collect();
        let args: Vec<&[u8]> = args.iter().map(String::as_bytes).collect();
        server.eval(&source, &keys, &args)
    }

    /// I9 and I12: every key has a TTL, and list and sorted set hold the same tickets, each once.
    fn check(&self, script: &str, dump: &Dump) {
        let for_ever = dump.iter().find(|(_, entry)| entry.expires.is_none());
        let found = for_ever.map(|(key, _)| format!("I9 {key} for ever, after {script}"));
        self.judge.found(found);
        let differs = dump.keys().filter_map(|key| key.strip_suffix(":queue")).find(|lock| queue(dump, lock).is_none());
        let differs = differs.filter(|_| !*self.evicted.lock().unwrap());
        self.judge.found(differs.map(|lock| format!("I12 list and set of {lock} differ, after {script}")));
    }

    /// I10: now and then the same call comes once more, at once.
    fn once_more(&self, call: Call<'_>, before: &Dump, reply: &Reply, after: &Dump) {
        let now = self.nodes.server().now();
        let long = locks(before).into_iter().any(|lock| may_be_long(&view(before, &lock), now));
        // The next call tells the next waiters.
        if long || is_telling(after, call.keys[0]) || !is_used(call.keys[0]) || !self.random.lock().unwrap().one_in(8) {
            return;
        }
        let again = self.run(self.nodes.primary(), call).unwrap();
        let now_ms = now.as_millis() as f64;
        self.judge.found(twice::check(&call, (reply, &again), (after, &self.dump()), now_ms));
    }
}

impl Backend for SimServer {
    fn primary(&self) -> Node {
        self.nodes.primary()
    }

    fn execute(&self, node: Node, _: usize, call: Call<'_>, late: bool) -> Result<Reply, ConnectionError> {
        if self.unwatched.load(Ordering::Relaxed) {
            return self.run(node, call);
        }
        if node != self.nodes.primary() {
            let reply = self.run(node, call);
            self.machine.log_detail(|| format!("    {} at a replica: {reply:?}", call.script.name()));
            return reply;
        }
        let now = self.nodes.server().now();
        if is_first(&call) && self.idle.lock().unwrap().contains(arg(&call, 0)) {
            // The network executes requests twice, to see what copies do that clients send. Such a copy none sends.
            return Err(ConnectionError::Closed);
        }
        self.judge.look(now);
        let before = self.dump();
        let reply = self.run(node, call);
        let after = self.dump();
        self.check(call.script.name(), &after);
        if let Err(refusal) = &reply {
            // It stopped at its first write.
            let half = (before != after).then(|| format!("I12 {} was refused half-way: {refusal}", call.script.name()));
            self.judge.found(half);
            self.machine.log_detail(|| format!("    {}: {refusal}", call.script.name()));
            return reply;
        }
        let word = reply.as_ref().map_or("", twice::word);
        // One that was refused or came too late is sent again as it was.
        if is_first(&call) && !matches!(word, "" | "STALE" | "MORE") && before == after {
            self.idle.lock().unwrap().insert(arg(&call, 0).to_owned());
        }
        self.judge.executed(Executed { call, late, word, before: &before, after: &after, server: now });
        if let Ok(reply) = &reply {
            self.once_more(call, &before, reply, &after);
        }
        self.nodes.changed();
        reply
    }

    fn called(&self, call: Call<'_>) {
        if !self.unwatched.load(Ordering::Relaxed) {
            self.judge.called(call);
        }
    }

    fn answered(&self, call: Call<'_>, reply: &Reply) {
        if !self.unwatched.load(Ordering::Relaxed) {
            self.judge.answered(call, reply);
        }
    }

    fn listen(&self, node: Node, channel: &str) -> BoxStream<'static, Notice> {
        let messages = at_once(self.nodes.at(node).1.subscribe(channel)).unwrap();
        let client = channel.strip_prefix("bowline:inbox:").unwrap();
        let listening = Listening::new(self, node, client);
        messages
            .map(move |message| {
                let _ = &listening;
                message
            })
            .boxed()
    }

    fn frozen_for(&self) -> Duration {
        self.frozen_until.lock().unwrap().saturating_sub(self.machine.now())
    }
}

/// How many subscriptions each client has on each server. The judge knows of those on the primary.
#[derive(Default)]
struct Listeners {
    primary: Node,
    all: BTreeMap<(Node, String), usize>,
}

impl Listeners {
    fn moved(&mut self, judge: &Judge, primary: Node) {
        self.primary = primary;
        for ((node, client), count) in &self.all {
            judge.listens_elsewhere(client, *count, *node == primary);
        }
    }
}

/// A subscription, counted for as long as it lives.
struct Listening {
    judge: Arc<Judge>,
    all: Arc<Mutex<Listeners>>,
    node: Node,
    client: String,
}

impl Listening {
    fn new(server: &SimServer, node: Node, client: &str) -> Self {
        let (judge, all, client) = (server.judge.clone(), server.listening.clone(), client.to_owned());
        let listening = Self { judge, all, node, client };
        listening.count(true);
        listening
    }

    fn count(&self, begins: bool) {
        let mut all = self.all.lock().unwrap();
        let count = all.all.entry((self.node, self.client.clone())).or_default();
        *count = if begins { *count + 1 } else { *count - 1 };
        if self.node == all.primary {
            self.judge.listens(&self.client, begins);
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.count(false);
    }
}
