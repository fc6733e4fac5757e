//! A real master, its replicas and three sentinels that watch them, on this machine.
//!
//! ```ignore
//! let mut servers = Sentinels::start();
//! let master = servers.master();
//! servers.kill(master);
//! let promoted = servers.await_master(|server| server != master);
//! ```

use std::thread;
use std::time::{Duration, Instant};

use redis::{Connection, FromRedisValue, RedisResult};

use super::server::Server;
use super::server::process::{Process, connect};
pub use super::server::sentinel::MASTER_NAME;
use super::server::sentinel::{Watched, sentinel_arguments};

const DEADLINE: Duration = Duration::from_secs(30);
/// A process that does not answer within this time is taken to be frozen.
const ANSWER: Duration = Duration::from_millis(500);

/// The servers and the sentinels, each named by its index: server 0 is the first master. Dropping it kills all of them.
pub struct Sentinels {
    servers: Vec<Server>,
    sentinels: Vec<Process>,
    /// The frozen ones, which would not answer.
    frozen: [bool; SENTINELS],
}

const SENTINELS: usize = 3;
const REPLICAS: usize = 2;

impl Sentinels {
    /// One master, two replicas and three sentinels, which call the master down after 500 ms.
    pub fn start() -> Self {
        Self::start_with(Duration::from_millis(500), &[])
    }

    /// As [`start`](Self::start), with another time after which the master is called down, and further arguments of the
    /// servers, such as `--min-replicas-to-write`.
    pub fn start_with(down_after: Duration, args: &[&str]) -> Self {
        let mut all = Server::FOLLOWS_AT_ONCE.to_vec();
        all.extend(args);
        let servers: Vec<Server> = thread::scope(|scope| {
            let starting: Vec<_> = (0..=REPLICAS).map(|_| scope.spawn(|| Server::start_with(&all))).collect();
            starting.into_iter().map(|server| server.join().expect("a server")).collect()
        });
        let (master, replicas) = servers.split_first().expect("a master");
        replicas.iter().for_each(|replica| replica.demote(master));
        replicas.iter().for_each(|replica| replica.await_sync());
        let watched = Watched { master: master.port(), quorum: 2, down_after, replicas: REPLICAS };
        let start = || watched.by_a_sentinel();
        let sentinels = thread::scope(|scope| {
            let starting: Vec<_> = (0..SENTINELS).map(|_| scope.spawn(start)).collect();
            starting.into_iter().map(|sentinel| sentinel.join().expect("a sentinel")).collect()
        });
        let started = Self { servers, sentinels, frozen: [false; SENTINELS] };
        started.await_ready();
        started
    }

    /// `redis-sentinel://host:port,.../0?master=mymaster` of all sentinels.
    pub fn url(&self) -> String {
        self.url_of("")
    }

    /// As the user of the servers whose rights docs/acl.md names, and who has no others.
    pub fn user_url(&self) -> String {
        self.url_of("bowline:secret@")
    }

    fn url_of(&self, user: &str) -> String {
        let hosts: Vec<String> = self.sentinels.iter().map(|one| format!("127.0.0.1:{}", one.port())).collect();
        format!("redis-sentinel://{user}{}/0?master={MASTER_NAME}", hosts.join(","))
    }

    pub fn server(&self, server: usize) -> &Server {
        &self.servers[server]
    }

    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    pub fn sentinel_port(&self, sentinel: usize) -> u16 {
        self.sentinels[sentinel].port()
    }

    /// A blocking connection to a sentinel.
    pub fn sentinel_client(&self, sentinel: usize) -> Connection {
        connect(&self.sentinels[sentinel].url(), Duration::from_secs(10)).expect("connection to the sentinel")
    }

    /// SIGKILL of a server; what was not on a replica is lost.
    pub fn kill(&mut self, server: usize) {
        self.servers[server].kill();
    }

    /// Starts a server again, as a master; the sentinels make it follow the one they know.
    pub fn restart(&mut self, server: usize) {
        self.servers[server].restart();
    }

    /// SIGSTOP of a server: connections stay open, and nothing is answered until [`thaw`](Self::thaw).
    pub fn freeze(&self, server: usize) {
        self.servers[server].pause();
    }

    pub fn thaw(&self, server: usize) {
        self.servers[server].resume();
    }

    pub fn kill_sentinel(&mut self, sentinel: usize) {
        self.sentinels[sentinel].kill();
        self.frozen[sentinel] = false;
    }

    /// Starts a sentinel again, with what it knew.
    pub fn restart_sentinel(&mut self, sentinel: usize) {
        self.sentinels[sentinel].restart(&sentinel_arguments);
        self.frozen[sentinel] = false;
    }

    pub fn freeze_sentinel(&mut self, sentinel: usize) {
        self.sentinels[sentinel].signal("STOP");
        self.frozen[sentinel] = true;
    }

    pub fn thaw_sentinel(&mut self, sentinel: usize) {
        self.sentinels[sentinel].signal("CONT");
        self.frozen[sentinel] = false;
    }

    /// Makes one of the replicas the master, as an operator does, and waits until all sentinels know it; returns it.
    pub fn fail_over(&self) -> usize {
        let master = self.master();
        self.eventually("the sentinels begin", || {
            // Refused while another failover is under way or no replica is good enough.
            self.alive().any(|one| self.ask::<()>(one, &["SENTINEL", "FAILOVER", MASTER_NAME]).is_ok())
        });
        self.await_master(|server| server != master)
    }

    /// The master, as the first sentinel that answers knows it.
    pub fn master(&self) -> usize {
        self.alive().find_map(|sentinel| self.master_of(sentinel)).expect("a sentinel that answers")
    }

    /// Waits until every sentinel that answers names a master that `expected` accepts, and this server says that it is
    /// a master. Returns the master.
    pub fn await_master(&self, expected: impl Fn(usize) -> bool) -> usize {
        let mut master = usize::MAX;
        self.eventually("all sentinels know another master", || {
            let named: Vec<Option<usize>> = self.alive().map(|sentinel| self.master_of(sentinel)).collect();
            let Some(Some(first)) = named.first().copied() else { return false };
            master = first;
            expected(master) && named.iter().all(|one| *one == Some(master)) && self.servers[master].is_master()
        });
        master
    }

    fn master_of(&self, sentinel: usize) -> Option<usize> {
        let (_, port): (String, u16) =
            self.ask(sentinel, &["SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER_NAME]).ok()?;
        self.servers.iter().position(|server| server.port() == port)
    }

    /// Waits until a failover is possible: every sentinel knows the replicas and all other sentinels.
    pub fn await_ready(&self) {
        for sentinel in 0..SENTINELS {
            self.eventually("a sentinel knows the others", || {
                let known: RedisResult<Vec<String>> = self.ask(sentinel, &["SENTINEL", "MASTER", MASTER_NAME]);
                known.is_ok_and(|known| {
                    let field = |name: &str| known.chunks(2).find(|pair| pair[0] == name).map(|pair| pair[1].clone());
                    field("num-slaves") == Some(REPLICAS.to_string())
                        && field("num-other-sentinels") == Some((SENTINELS - 1).to_string())
                })
            });
        }
    }

    /// The sentinels that run and are not frozen.
    fn alive(&self) -> impl Iterator<Item = usize> {
        (0..SENTINELS).filter(|&one| self.sentinels[one].pid().is_some() && !self.frozen[one])
    }

    fn ask<T: FromRedisValue>(&self, sentinel: usize, command: &[&str]) -> RedisResult<T> {
        redis::cmd(command[0]).arg(&command[1..]).query(&mut connect(&self.sentinels[sentinel].url(), ANSWER)?)
    }

    fn eventually(&self, what: &str, mut condition: impl FnMut() -> bool) {
        let start = Instant::now();
        while !condition() {
            assert!(start.elapsed() < DEADLINE, "not within {DEADLINE:?}: {what}");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Sentinels {
    fn drop(&mut self) {
        // Killed first, because otherwise they would begin a failover.
        self.sentinels.iter_mut().for_each(Process::kill);
        self.servers.iter().for_each(Server::end_watch);
    }
}
