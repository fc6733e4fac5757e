//! The embedded server in the simulation, looked at after every script.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::embedded::{Content, Entry};
use bowline::{Arg, Call, Connection, ConnectionError, Notice, Reply, Script};
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;

use crate::census::Counted;
use crate::executor::{Machine, WORLD};
use crate::guard::What;
use crate::judge::latch::{is_first, is_telling, living};
use crate::judge::view::{Dump, is_used, locks, queue, view};
use crate::judge::{Executed, Judge, Known, arg, may_be_long, twice};
use crate::network::{Backend, Subject, Way, at_once};
use crate::nodes::{self, LOCAL_KEYS, Node, Nodes, SHARDED, SPY, slot};
use crate::random::Random;
use crate::scripts::Scripts;

mod failovers;
mod listeners;

use listeners::{Listeners, Listening};

/// How many waiters of a latch one call tells, as it is sent: as it is, and one.
const MOST_TOLD: [(&str, &str); 2] = [("'LIMIT',0,1000+1)", "'LIMIT',0,1+1)"), ("#ids>1000\n", "#ids>1\n")];
/// The same as it is written, and as a mutant has it.
const MOST_TOLD_WRITTEN: [(&str, &str); 2] =
    [("'LIMIT', 0, 1000 + 1)", "'LIMIT', 0, 1 + 1)"), ("#ids > 1000\n", "#ids > 1\n")];

/// Those that wait for a latch, by the only script fragment that does so in portions.
fn tells_waiters(script: &Script) -> bool {
    ["latch_set", "latch_count_down", "latch_heartbeat", "latch_cancel", "latch_delete"].contains(&script.name())
}

fn one_at_a_time(source: &str) -> String {
    // A mutant may have removed them.
    MOST_TOLD.iter().chain(&MOST_TOLD_WRITTEN).fold(source.to_owned(), |source, (most, one)| source.replace(most, one))
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
    pub nodes: Arc<Nodes>,
    scripts: Scripts,
    pub judge: Arc<Judge>,
    listening: Arc<Mutex<Listeners>>,
    random: Mutex<Random>,
    frozen_until: Mutex<Duration>,
    /// How often it was restarted, and when it last was.
    restarts: Mutex<(u64, Duration)>,
    /// What it answers to writes, and until when.
    refusal: Mutex<Option<(String, Duration)>>,
    /// By how much the clock was set back, all in all.
    set_back: Mutex<Duration>,
    /// After an eviction, or a failover that loses a part of what has moved or of its removal, the two keys of a queue
    /// differ until the next script compares them.
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
            restarts: Mutex::default(),
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
        self.nodes.truth()
    }

    pub fn keys(&self) -> Vec<String> {
        self.dump().into_keys().collect()
    }

    pub fn entry(&self, key: &str) -> Option<Entry> {
        self.dump().remove(key)
    }

    /// How many tickets stand in the queue of a lock.
    pub fn waiters(&self, name: &str) -> usize {
        self.queued(&What::Lock.key(name))
    }

    /// The same of any primitive, by the key of who holds it.
    pub fn queued(&self, key: &str) -> usize {
        view(&self.dump(), key).queue.len()
    }

    /// How many entries a sorted set has.
    pub fn members(&self, key: &str) -> usize {
        match self.entry(key).map(|entry| entry.content) {
            Some(Content::SortedSet(members)) => members.len(),
            _ => 0,
        }
    }

    /// Holds and tickets that live.
    pub fn living(&self) -> Vec<String> {
        let dump = self.dump();
        let of = |lock: String| {
            let (view, now) = (view(&dump, &lock), self.nodes.now_of(&lock));
            let tickets = view.queue.into_iter().filter(|ticket| ticket.lives(now)).map(|ticket| ticket.id);
            let holds = view.holds.into_iter().filter(|hold| hold.lives(now)).map(|hold| hold.id);
            holds.chain(tickets).collect::<Vec<_>>()
        };
        locks(&dump).into_iter().flat_map(of).chain(living(&dump, self.now())).collect()
    }

    /// A call that opens or deletes a latch tells one waiter. The others take more calls.
    pub fn tell_one_at_a_time(&self) {
        self.one_at_a_time.store(true, Ordering::Relaxed);
        self.judge.one_is_told();
    }

    /// What is left of the lease of a hold.
    pub fn left(&self, known: &Known<'_>) -> Duration {
        let left = self.judge.left(known, self.nodes.now_of(known.key));
        self.machine.takes(self.nodes.clock_of(known.key), left)
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
        self.judge.look_now_and_then(&self.clock());
    }

    /// The first thing that was wrong with what it has done, or left undone until now.
    pub fn violation(&self) -> Option<String> {
        self.look();
        self.judge.violation()
    }

    /// The server stands still: requests that reach it are executed afterwards.
    pub fn freeze(&self, duration: Duration) {
        self.judge.look(&self.clock());
        let until = self.machine.now() + duration;
        *self.frozen_until.lock().unwrap() = until;
        self.judge.server_stands_still(until);
    }

    /// The server refuses writes for a while, with that line. Commands that read go on.
    pub fn refuse(self: &Arc<Self>, line: &str, duration: Duration) {
        self.judge.look(&self.clock());
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

    /// The process of the server ends, and starts again at once, with its data or without. Those who are connected must
    /// be cut off.
    pub fn restart(&self, with_data: bool) {
        let mut restarts = self.restarts.lock().unwrap();
        *restarts = (restarts.0 + 1, self.machine.now());
        drop(restarts);
        self.nodes.server().restart();
        if !with_data {
            self.flush();
        }
    }

    /// For how long its process has run.
    pub fn uptime(&self) -> Duration {
        self.machine.now() - self.restarts.lock().unwrap().1
    }

    pub fn flush(&self) {
        self.judge.look(&self.clock());
        self.nodes.server().flush_all();
        self.judge.damaged(&self.dump(), &self.clock());
        self.nodes.changed(self.nodes.primary(), true);
    }

    /// Drops one key, as a server that is short of memory may.
    pub fn evict(&self, draw: u64) -> Option<String> {
        self.judge.look(&self.clock());
        let keys = self.keys();
        let key = keys.get(draw as usize % keys.len().max(1))?;
        *self.evicted.lock().unwrap() = true;
        self.nodes.server().refuse_writes(None);
        self.nodes.server().eval("return redis.call('DEL', KEYS[1])", &[key.as_bytes()], &[]).unwrap();
        self.nodes.server().refuse_writes(self.refusal.lock().unwrap().as_ref().map(|(line, _)| &**line));
        self.judge.damaged(&self.dump(), &self.clock());
        self.nodes.changed(self.nodes.primary(), true);
        Some(key.clone())
    }

    pub fn now(&self) -> Duration {
        self.nodes.server().now()
    }

    pub fn step_clock(&self, by: Duration, forward: bool) {
        self.judge.look(&self.clock());
        self.nodes.move_clocks(by, forward);
        if !forward {
            *self.set_back.lock().unwrap() += by;
        }
        self.judge.look(&self.clock());
        self.judge.damaged(&self.dump(), &self.clock());
    }

    /// What the clock of the server shows that has the key.
    pub fn clock(&self) -> impl Fn(&str) -> Duration + use<> {
        let nodes = self.nodes.clone();
        move |key| nodes.now_of(key)
    }

    /// From now on nothing is looked at: with thousands of names that would take too long.
    pub fn unwatched(&self) {
        self.unwatched.store(true, Ordering::Relaxed);
    }

    /// A client holds so many locks, `held 0` and so on.
    pub fn occupy(&self, names: usize, lease: Duration) {
        let source = "for n = 0, ARGV[1] - 1 do \
            local lock = 'bowline:lock:{held ' .. n .. '}' \
            redis.call('HSET', lock, '00000000-0000-0000-0000-000000000001:' .. n, n) \
            redis.call('PEXPIRE', lock, ARGV[2]) end";
        let (names, lease) = (names.to_string(), lease.as_millis().to_string());
        self.nodes.server().eval(source, &[], &[names.as_bytes(), lease.as_bytes()]).unwrap();
    }

    fn run(&self, node: Node, call: Call<'_>) -> Result<Reply, ConnectionError> {
        let (server, connection) = self.nodes.at(node);
        let mut source = self.scripts.altered(call.script).map(str::to_owned);
        if self.one_at_a_time.load(Ordering::Relaxed) && tells_waiters(call.script) {
            source = Some(one_at_a_time(source.as_deref().unwrap_or(call.script.source())));
        }
        if self.nodes.is_spied() {
            source = Some(format!("{SPY}{}", source.as_deref().unwrap_or(call.script.source())));
        }
        if self.nodes.is_leaving(node, slot(call.keys[0])) {
            source = Some(format!("{LOCAL_KEYS}{}", source.as_deref().unwrap_or(call.script.source())));
        }
        if self.nodes.is_sharded() {
            source = source.map(|source| format!("{SHARDED}{source}"));
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
        self.judge.found(differs.map(|lock| {
            let [list, set] = ["queue", "tickets"].map(|part| dump.get(&format!("{lock}:{part}")));
            format!("I12 list and set of {lock} differ, after {script}: {list:?}, {set:?}")
        }));
    }

    /// I10: now and then the same call comes once more, at once.
    fn once_more(&self, node: Node, call: Call<'_>, before: &Dump, reply: &Reply, after: &Dump) {
        let now = self.nodes.at(node).0.now();
        let long = locks(before).into_iter().any(|lock| may_be_long(&view(before, &lock), now));
        // If the first copy has deleted keys of a slot that moves, the second one looks for them on the other node.
        let long = long || self.nodes.is_leaving(node, slot(call.keys[0]));
        // Not repeated if the script notifies waiters, because a second call would notify the next ones.
        if long || is_telling(after, call.keys[0]) || !is_used(call.keys[0]) || !self.random.lock().unwrap().one_in(8) {
            return;
        }
        let again = self.run(node, call).unwrap();
        let now_ms = now.as_millis() as f64;
        self.judge.found(twice::check(&call, (reply, &again), (after, &self.dump()), now_ms));
    }
}

impl Backend for SimServer {
    fn primary(&self) -> Node {
        self.nodes.primary()
    }

    fn execute(&self, node: Node, _: usize, call: Call<'_>, way: Way) -> Result<Reply, ConnectionError> {
        if let Some(line) = self.nodes.redirect(node, call.keys, way.asking) {
            self.machine.log_detail(|| format!("    {} at {node}: {line}", call.script.name()));
            return Err(ConnectionError::refused(&line));
        }
        if self.unwatched.load(Ordering::Relaxed) {
            return self.run(node, call);
        }
        if !self.nodes.is_master(node) {
            let before = nodes::dump(&self.nodes.at(node).0);
            let reply = self.run(node, call);
            let after = nodes::dump(&self.nodes.at(node).0);
            self.nodes.changed(node, before != after);
            if self.nodes.is_astray(node) {
                self.judge.executed_astray(call, &before, &after);
            }
            self.machine.log_detail(|| format!("    {} at a replica: {reply:?}", call.script.name()));
            return reply;
        }
        let (now, clock) = (self.nodes.at(node).0.now(), self.clock());
        if way.late && is_first(&call) && self.idle.lock().unwrap().contains(arg(&call, 0)) {
            // The network executes requests twice, to see the effects of copies that clients send. No client sends such
            // a copy.
            return Err(ConnectionError::Closed);
        }
        self.judge.look(&clock);
        let before = self.dump();
        let hears = self.nodes.is_sharded().then(|| self.listening.lock().unwrap().at(node, slot(call.keys[0])));
        let reply = self.run(node, call);
        let after = self.dump();
        self.check(call.script.name(), &after);
        if let Err(refusal) = &reply {
            // The script stopped at its first write.
            let half = (before != after).then(|| format!("I12 {} was refused half-way: {refusal}", call.script.name()));
            self.judge.found(half);
            self.machine.log_detail(|| format!("    {}: {refusal}", call.script.name()));
            return reply;
        }
        let word = reply.as_ref().map_or("", twice::word);
        // A request that was refused or came too late is sent again unchanged.
        if is_first(&call) && !matches!(word, "" | "STALE" | "MORE") && before == after {
            self.idle.lock().unwrap().insert(arg(&call, 0).to_owned());
        }
        let (late, before, after) = (way.late, &before, &after);
        self.judge.executed(Executed { call, late, word, before, after, server: now, clock: &clock, hears });
        if let Ok(reply) = &reply {
            self.once_more(node, call, before, reply, after);
        }
        self.nodes.changed(node, before != after);
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

    fn listen(&self, node: Node, subject: &Subject) -> BoxStream<'static, Notice> {
        let connection = &self.nodes.at(node).1;
        let channel = match subject {
            Subject::Channel(channel) => channel,
            Subject::Key(key) => return at_once(connection.watch_key(key, "")).unwrap(),
        };
        let messages = at_once(connection.subscribe(channel)).unwrap();
        let listening = Listening::new(self, node, channel);
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

    fn restarts(&self) -> u64 {
        self.restarts.lock().unwrap().0
    }

    fn written(&self, node: Node) -> u64 {
        self.nodes.written(node)
    }

    fn acknowledged(
        &self,
        node: Node,
        number: u64,
        replicas: u32,
        until: Duration,
    ) -> BoxFuture<'_, Result<u32, ConnectionError>> {
        Box::pin(self.nodes.acknowledged(node, number, replicas, until))
    }
}
