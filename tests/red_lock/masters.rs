//! Several independent servers, and clients of all of them.

use std::sync::Arc;
use std::time::Duration;

use bowline::{Client, Config, ConfigBuilder, Connection, Executor, RedLock, RedLockBuilder, Reply, embedded};
use futures::future::BoxFuture;

use crate::gate::{Gate, Gated};
use crate::support::env::{Counting, Counts, Env};
use crate::support::server::Server;

/// A token in the year 2128.
pub(crate) const FAR: u64 = 5_000_000_000_000_000;

pub(crate) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub(crate) struct Masters {
    pub(crate) env: Env,
    pub(crate) all: Vec<Master>,
}

pub(crate) struct Master {
    server: Kind,
    gate: Arc<Gate>,
}

enum Kind {
    Embedded(embedded::Server),
    Real(Box<Server>),
}

/// One program: its clients, and what they sent.
pub(crate) struct Program {
    pub(crate) locks: RedLock,
    pub(crate) clients: Vec<Client>,
    pub(crate) counts: Vec<Arc<Counts>>,
    /// Freezes a master for this program only.
    pub(crate) gates: Vec<Arc<Gate>>,
}

impl Masters {
    pub(crate) fn start(env: &Env, n: usize) -> Self {
        let master = |_| {
            let server = if env.is_embedded() {
                Kind::Embedded(embedded::Server::new())
            } else {
                Kind::Real(Box::new(Server::start()))
            };
            Master { server, gate: Arc::default() }
        };
        Self { env: env.clone(), all: (0..n).map(master).collect() }
    }

    pub(crate) fn three(env: &Env) -> Self {
        Self::start(env, 3)
    }

    /// A program with a lease of 3 s. Its masters have lost nothing, although the real ones have just been started.
    pub(crate) async fn program(&self) -> Program {
        self.program_with(|config| config, |builder| builder.durable(true)).await
    }

    pub(crate) async fn program_with(
        &self,
        configure: impl Fn(ConfigBuilder) -> ConfigBuilder,
        build: impl FnOnce(RedLockBuilder) -> RedLockBuilder,
    ) -> Program {
        self.program_of(0..self.all.len(), configure, build).await
    }

    /// A program that knows these masters.
    pub(crate) async fn program_of(
        &self,
        known: impl IntoIterator<Item = usize>,
        configure: impl Fn(ConfigBuilder) -> ConfigBuilder,
        build: impl FnOnce(RedLockBuilder) -> RedLockBuilder,
    ) -> Program {
        let config = Config::builder().lease(ms(3000)).command_timeout(ms(1000)).retry_timeout(ms(3000));
        let config = configure(config).build().unwrap();
        let (mut clients, mut counts, mut gates) = (Vec::new(), Vec::new(), Vec::new());
        for n in known {
            let master = &self.all[n];
            let (counted, gate) = (Arc::new(Counts::default()), Arc::new(Gate::default()));
            clients.push(master.client(&self.env, &config, counted.clone(), gate.clone()).await);
            gates.push(gate);
            counted.reset();
            counts.push(counted);
        }
        let locks = build(RedLock::builder(clients.clone()).node_timeout(ms(700))).build().unwrap();
        Program { locks, clients, counts, gates }
    }

    /// What is on the masters besides counters and labels.
    pub(crate) fn keys(&self) -> Vec<String> {
        let keys = self
            .all
            .iter()
            .enumerate()
            .flat_map(|(n, master)| master.keys().into_iter().map(move |key| format!("{n} {key}")));
        keys.filter(|key| !key.ends_with(":fence") && !key.contains(":client:{labels}")).collect()
    }

    /// A grant waits for a majority only.
    pub(crate) async fn all_vote(&self, program: &Program, name: &str) {
        self.env
            .eventually("all have voted", async || {
                let state = program.locks.inspect(name).await.unwrap();
                state.masters.iter().all(|master| master.vote.is_some())
            })
            .await;
    }

    pub(crate) async fn nothing_is_left(&self) {
        let start = self.env.now();
        while !self.keys().is_empty() {
            assert!(self.env.now() - start < ms(10_000), "left: {:?}", self.keys());
            self.env.sleep(ms(5)).await;
        }
    }
}

impl Master {
    async fn client(&self, env: &Env, config: &Config, counts: Arc<Counts>, gate: Arc<Gate>) -> Client {
        match &self.server {
            Kind::Embedded(server) => self.connect(env, server.connect(env.executor()), config, counts, gate).await,
            Kind::Real(server) => {
                let connection = env.open(&server.user_url(), config).await.unwrap();
                self.connect(env, connection, config, counts, gate).await
            }
        }
    }

    async fn connect(
        &self,
        env: &Env,
        inner: impl Connection,
        config: &Config,
        counts: Arc<Counts>,
        gate: Arc<Gate>,
    ) -> Client {
        let topology = inner.topology();
        let inner = Gated { inner, gate: self.gate.clone(), topology, executor: env.executor() };
        let gated = Gated { inner, gate, topology, executor: env.executor() };
        let connection = Arc::new(Counting { inner: gated, watch: counts });
        let executor: Arc<dyn Executor> = env.executor();
        Client::connect(executor, connection, config.clone()).await.unwrap()
    }

    /// Another client, with another connection.
    pub(crate) async fn another(&self, env: &Env) -> Client {
        self.client(env, &Config::default(), Arc::default(), Arc::default()).await
    }

    pub(crate) fn freeze(&self) {
        self.gate.freeze();
    }

    pub(crate) fn answer_after(&self, delay: Duration) {
        self.gate.answer_after(delay);
    }

    pub(crate) fn thaw(&self) {
        self.gate.thaw();
    }

    /// Restarts, with or without the data.
    pub(crate) fn restart(&mut self, keeps: bool) {
        match &mut self.server {
            Kind::Embedded(server) => {
                if !keeps {
                    server.flush_all();
                }
                server.restart();
            }
            Kind::Real(server) => {
                assert!(!keeps, "real masters store nothing here");
                server.restart();
            }
        }
    }

    /// Stops the process of a real server while the future runs.
    pub(crate) async fn while_paused(&self, during: impl Future<Output = ()>) {
        let Kind::Real(server) = &self.server else { panic!("only real servers can be stopped") };
        server.pause();
        during.await;
        server.resume();
    }

    pub(crate) fn keys(&self) -> Vec<String> {
        match &self.server {
            Kind::Embedded(server) => {
                let dump = server.dump();
                assert!(dump.values().all(|entry| entry.expires.is_some()), "a key without a TTL: {dump:?}");
                dump.into_keys().map(|key| String::from_utf8(key).unwrap()).collect()
            }
            Kind::Real(server) => server.keys(),
        }
    }

    /// Sets the clock of an embedded server back.
    pub(crate) fn set_clock_back(&self, by: Duration) {
        let server = self.embedded();
        server.set_clock(server.now() - by);
    }

    /// Sets the clock of an embedded server forward.
    pub(crate) fn set_clock_forward(&self, by: Duration) {
        let server = self.embedded();
        server.set_clock(server.now() + by);
    }

    fn embedded(&self) -> &embedded::Server {
        let Kind::Embedded(server) = &self.server else { panic!("the clock of a real server is the machine's") };
        server
    }

    /// Runs Lua past everything that is tested.
    pub(crate) fn eval(&self, source: &str) {
        match &self.server {
            Kind::Embedded(server) => drop::<Reply>(server.eval(source, &[], &[]).unwrap()),
            Kind::Real(server) => {
                redis::cmd("EVAL").arg(source).arg(0).query::<redis::Value>(&mut server.client()).unwrap();
            }
        }
    }

    /// Sends a command to a real server, past everything that is tested.
    pub(crate) fn command(&self, words: &[&str]) {
        let Kind::Real(server) = &self.server else { panic!("only real servers refuse") };
        redis::cmd(words[0]).arg(&words[1..]).exec(&mut server.client()).unwrap();
    }

    /// The last snapshot of a real server has failed.
    pub(crate) fn fail_to_save(&self) {
        let Kind::Real(server) = &self.server else { panic!("only real servers save") };
        // No file can take the place of a directory, whatever the user may do.
        std::fs::create_dir(server.dir().join("dump.rdb")).unwrap();
        redis::cmd("BGSAVE").exec(&mut server.client()).unwrap();
        let info = || redis::cmd("INFO").arg("persistence").query::<String>(&mut server.client()).unwrap();
        let start = std::time::Instant::now();
        while !info().contains("rdb_last_bgsave_status:err") {
            assert!(start.elapsed() < ms(30_000), "{}", info());
            std::thread::sleep(ms(10));
        }
    }

    /// From now on, the user has only the keys of these names, and those of checks.
    pub(crate) fn allow_only(&self, names: &[&str]) {
        let keys = names.iter().chain(&["bowline-check"]).map(|name| format!("~bowline:*{{{name}}}*"));
        let keys: Vec<String> = keys.collect();
        let words = ["ACL", "SETUSER", "bowline", "resetkeys"].into_iter().chain(keys.iter().map(String::as_str));
        self.command(&words.collect::<Vec<_>>());
    }

    pub(crate) fn allow_all(&self) {
        self.command(&["ACL", "SETUSER", "bowline", "resetkeys", "~bowline:*"]);
    }

    /// By which name the hold was proposed whose token was accepted last.
    pub(crate) fn owner(&self, name: &str) -> String {
        let source = format!("return redis.call('GET', 'bowline:vote:{{{name}}}:fence')");
        let counter = match &self.server {
            Kind::Embedded(server) => match server.eval(&source, &[], &[]).unwrap() {
                Reply::Bytes(counter) => String::from_utf8(counter).unwrap(),
                other => panic!("{other:?}"),
            },
            Kind::Real(server) => redis::cmd("EVAL").arg(source).arg(0).query(&mut server.client()).unwrap(),
        };
        counter.split_once(' ').unwrap().1.to_owned()
    }

    /// Real servers are looked at all the time, and a key without a TTL is an error but for this one.
    pub(crate) fn allow_forever(&self, key: &str) {
        if let Kind::Real(server) = &self.server {
            server.allow_forever(key);
        }
    }

    /// Has another program's vote for a minute.
    pub(crate) fn set_busy(&self, name: &str) {
        let vote = format!("bowline:vote:{{{name}}}");
        self.eval(&format!("redis.call('HSET', '{vote}', 'x:1', '5') return redis.call('PEXPIRE', '{vote}', 60000)"));
    }

    /// Another program's vote, accepted before.
    pub(crate) fn set_counter(&self, name: &str, token: u64) {
        self.eval(&format!("return redis.call('SET', 'bowline:vote:{{{name}}}:fence', '{token} x:1', 'PX', 60000)"));
    }
}

/// A task that acquires `a`, once it waits for its turn.
pub(crate) async fn waiter(masters: &Masters, program: &Program) -> BoxFuture<'static, bowline::LockGuard> {
    let waiters = async || program.locks.inspect("a").await.unwrap().masters[0].waiters;
    let before = waiters().await;
    let locks = program.locks.clone();
    let task = masters.env.spawn(async move { locks.lock("a").timeout(ms(20_000)).await.unwrap() });
    masters.env.eventually("it waits", async || waiters().await == before + 1).await;
    task
}
