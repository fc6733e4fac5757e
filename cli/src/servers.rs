//! What the servers say about themselves.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bowline::tokio::Tokio;
use bowline::{Client, Connection, ConnectionError, Executor, RedisConnection, Reply};
use toml::Table;

use crate::args::Servers;
use crate::connect;
use crate::exit::Failure;

/// The settings that matter to locks. Others may be secret.
const SETTINGS: [&str; 11] = [
    "appendfsync",
    "appendonly",
    "client-output-buffer-limit",
    "cluster-node-timeout",
    "cluster-require-full-coverage",
    "maxmemory",
    "maxmemory-policy",
    "min-replicas-max-lag",
    "min-replicas-to-write",
    "replica-read-only",
    "save",
];

/// How often the clock is read: the fastest answer tells most.
const READINGS: usize = 5;

/// A primary.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) address: String,
    /// Empty if the user may not ask.
    pub(crate) info: HashMap<String, String>,
    /// Empty if the user may not ask.
    pub(crate) settings: HashMap<&'static str, String>,
    /// The shortest round trip.
    pub(crate) latency: Option<Duration>,
    /// The server's clock less that of this machine, in milliseconds, to the precision of half the latency.
    pub(crate) clock: Option<i64>,
    /// The user of the connection, if it may ask for that.
    pub(crate) user: Option<String>,
}

/// The connection that asks, and a client on it: it has tried the user's rights.
pub(crate) struct Asking {
    connection: Arc<RedisConnection>,
    pub(crate) client: Client,
}

impl Asking {
    pub(crate) async fn connect(servers: &Servers) -> Result<Self, Failure> {
        let (options, config) = connect::settings(servers, Table::new())?;
        let executor: Arc<dyn Executor> = Arc::new(Tokio::current()?);
        let connection = Arc::new(bowline::tokio::open(executor.clone(), options, &config).await?);
        let client = Client::connect(executor, connection.clone(), config).await?;
        Ok(Self { connection, client })
    }

    pub(crate) fn is_cluster(&self) -> bool {
        self.connection.topology().one_name_per_call
    }

    /// All primaries, in the order of their addresses.
    pub(crate) async fn servers(&self) -> Vec<Server> {
        let mut infos = self.connection.ask_each(&["INFO"]).await;
        infos.sort_by(|a, b| a.0.cmp(&b.0));
        let mut servers: Vec<Server> = infos.into_iter().map(|(address, info)| Server::new(address, &info)).collect();
        for setting in SETTINGS {
            for (address, answer) in self.connection.ask_each(&["CONFIG", "GET", setting]).await {
                if let (Some(server), Some(value)) = (at(&mut servers, &address), second(&answer)) {
                    server.settings.insert(setting, value);
                }
            }
        }
        for (address, answer) in self.connection.ask_each(&["ACL", "WHOAMI"]).await {
            if let (Some(server), Ok(Reply::Bytes(user))) = (at(&mut servers, &address), answer) {
                server.user = Some(String::from_utf8_lossy(&user).into_owned());
            }
        }
        for _ in 0..READINGS {
            self.read_clocks(&mut servers).await;
        }
        servers
    }

    /// Reads the clock of each server once more.
    pub(crate) async fn read_clocks(&self, servers: &mut [Server]) {
        let (began, sent) = (Instant::now(), SystemTime::now());
        let answers = self.connection.ask_each(&["TIME"]).await;
        // Of several servers, the time is that of all answers.
        let took = began.elapsed() / u32::try_from(answers.len().max(1)).unwrap_or(1);
        for (address, answer) in answers {
            if let (Some(server), Some(time)) = (at(servers, &address), time(&answer)) {
                server.note(took, time, sent);
            }
        }
    }
}

fn at<'a>(servers: &'a mut [Server], address: &str) -> Option<&'a mut Server> {
    servers.iter_mut().find(|server| server.address == address)
}

type Answer = Result<Reply, ConnectionError>;

/// The value in the reply to `CONFIG GET`.
fn second(answer: &Answer) -> Option<String> {
    let Ok(Reply::Array(items)) = answer else { return None };
    let Reply::Bytes(value) = items.get(1)? else { return None };
    Some(String::from_utf8_lossy(value).into_owned())
}

/// The reply to `TIME`, in milliseconds since 1970.
fn time(answer: &Answer) -> Option<i64> {
    let Ok(Reply::Array(items)) = answer else { return None };
    let number = |reply: &Reply| match reply {
        Reply::Bytes(bytes) => std::str::from_utf8(bytes).ok()?.parse::<i64>().ok(),
        _ => None,
    };
    Some(number(items.first()?)? * 1000 + number(items.get(1)?)? / 1000)
}

impl Server {
    fn new(address: String, info: &Answer) -> Self {
        let text = match info {
            Ok(Reply::Bytes(text)) => String::from_utf8_lossy(text).into_owned(),
            _ => String::new(),
        };
        let info = text.lines().filter_map(|line| line.split_once(':'));
        let info = info.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect();
        Self { address, info, settings: HashMap::new(), latency: None, clock: None, user: None }
    }

    fn note(&mut self, took: Duration, time: i64, sent: SystemTime) {
        if self.latency.is_some_and(|latency| latency <= took) {
            return;
        }
        let read = sent + took / 2;
        let own = read.duration_since(UNIX_EPOCH).map_or(0, |own| i64::try_from(own.as_millis()).unwrap_or(i64::MAX));
        self.latency = Some(took);
        self.clock = Some(time - own);
    }

    /// Forgets what was read of the clock.
    pub(crate) fn forget_clock(&mut self) {
        (self.latency, self.clock) = (None, None);
    }

    pub(crate) fn info(&self, name: &str) -> Option<&str> {
        self.info.get(name).map(String::as_str)
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.info(name)?.parse().ok()
    }

    pub(crate) fn setting(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(String::as_str)
    }

    /// For example `redis 7.0.15` or `valkey 9.1.0`.
    pub(crate) fn version(&self) -> Option<String> {
        let valkey = self.info("valkey_version").map(|version| format!("valkey {version}"));
        valkey.or_else(|| self.info("redis_version").map(|version| format!("redis {version}")))
    }

    pub(crate) fn eviction(&self) -> Option<&str> {
        self.info("maxmemory_policy").or_else(|| self.setting("maxmemory-policy"))
    }
}
