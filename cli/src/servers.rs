//! What the servers say about themselves.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bowline::tokio::Tokio;
use bowline::{
    Asked, Client, Config, ConnectOptions, Connection, ConnectionError, Executor, RedisConnection, Reply, Result,
};

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
#[derive(Debug, Default)]
pub(crate) struct Server {
    pub(crate) address: String,
    /// Why it cannot be used, if it does not answer, or refuses for another reason than the rights of the user.
    pub(crate) fault: Option<String>,
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

/// The connection that asks.
pub(crate) struct Asking {
    executor: Arc<dyn Executor>,
    connection: Arc<RedisConnection>,
    config: Config,
}

impl Asking {
    pub(crate) async fn connect((options, config): (ConnectOptions, Config)) -> Result<Self> {
        let executor: Arc<dyn Executor> = Arc::new(Tokio::current()?);
        let connection = Arc::new(bowline::tokio::open(executor.clone(), options, &config).await?);
        Ok(Self { executor, connection, config })
    }

    /// A client on the connection: it tries the user's rights. `None` while a server has a fault: the rights could not
    /// be tried there.
    pub(crate) async fn client(&self, servers: &[Server]) -> Result<Option<Client>> {
        if servers.iter().any(|server| server.fault.is_some()) {
            return Ok(None);
        }
        Client::connect(self.executor.clone(), self.connection.clone(), self.config.clone()).await.map(Some)
    }

    pub(crate) fn is_cluster(&self) -> bool {
        self.connection.topology().one_name_per_call
    }

    /// All primaries, in the order of their addresses.
    pub(crate) async fn servers(&self) -> Vec<Server> {
        let settings = SETTINGS.map(|setting| ["CONFIG", "GET", setting]);
        let mut questions: Vec<&[&str]> = vec![&["INFO"], &["ACL", "WHOAMI"]];
        questions.extend(settings.iter().map(|words| &words[..]));
        questions.extend([&["TIME"][..]; READINGS]);
        let asked = self.connection.ask_each(&questions).await;
        let clocks = Clocks::read(&*self.executor);
        let mut servers: Vec<Server> = asked
            .into_iter()
            .map(|(address, asked)| {
                let mut server = Server { address, ..Server::default() };
                questions.iter().zip(&asked).for_each(|(words, asked)| server.take(words, asked, clocks));
                server
            })
            .collect();
        servers.sort_by(|a, b| a.address.cmp(&b.address));
        servers
    }

    /// Reads the clock of each server anew. `None` for one that does not answer.
    pub(crate) async fn read_clocks(&self, servers: &mut [Server]) {
        servers.iter_mut().for_each(|server| (server.latency, server.clock) = (None, None));
        let asked = self.connection.ask_each(&[&["TIME"][..]; READINGS]).await;
        let clocks = Clocks::read(&*self.executor);
        for (address, asked) in asked {
            let mut at = servers.iter().position(|server| server.address == address);
            // Sentinels name no master while there is none to ask.
            if servers.len() == 1 && asked.iter().all(|asked| asked.answer.is_err()) {
                at = Some(0);
            }
            if let Some(server) = at.and_then(|at| servers.get_mut(at)) {
                asked.iter().for_each(|asked| server.take(&["TIME"], asked, clocks));
            }
        }
    }
}

/// The clocks of this machine at one moment: that of the executor, and that of the calendar.
#[derive(Clone, Copy, Debug)]
struct Clocks {
    steady: Instant,
    calendar: SystemTime,
}

impl Clocks {
    fn read(executor: &dyn Executor) -> Self {
        Self { steady: executor.now(), calendar: SystemTime::now() }
    }

    /// An earlier moment in milliseconds since 1970.
    fn millis_at(&self, moment: Instant) -> i64 {
        let calendar = self.calendar - self.steady.saturating_duration_since(moment);
        let since = calendar.duration_since(UNIX_EPOCH);
        since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

fn text(reply: Option<&Reply>) -> Option<String> {
    let Some(Reply::Bytes(bytes)) = reply else { return None };
    Some(String::from_utf8_lossy(bytes).into_owned())
}

/// The reply to `TIME`, in milliseconds since 1970.
fn time(items: &[Reply]) -> Option<i64> {
    let number = |at: usize| text(items.get(at))?.parse::<i64>().ok();
    Some(number(0)? * 1000 + number(1)? / 1000)
}

/// Whether the server does not tell this: it lacks the command, or the user the right to it. Services word that in many
/// ways. A server that cannot be used refuses with another code, as LOADING or NOAUTH, or refuses everything.
fn is_not_told(words: &[&str], error: &ConnectionError) -> bool {
    let may_be_refused = matches!(words, ["INFO" | "ACL" | "CONFIG", ..]);
    may_be_refused && matches!(error, ConnectionError::Refused { code, .. } if code == "ERR" || code == "NOPERM")
}

impl Server {
    /// Takes note of an answer.
    fn take(&mut self, words: &[&str], asked: &Asked, clocks: Clocks) {
        match (words, &asked.answer) {
            (_, Err(error)) if is_not_told(words, error) => {}
            // The first one says most.
            (_, Err(error)) => drop(self.fault.get_or_insert_with(|| error.to_string())),
            (["INFO"], Ok(reply)) => {
                let text = text(Some(reply)).unwrap_or_default();
                let lines = text.lines().filter_map(|line| line.split_once(':'));
                self.info = lines.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect();
            }
            (["ACL", ..], Ok(reply)) => self.user = text(Some(reply)),
            (["CONFIG", _, asked], Ok(Reply::Array(items))) => {
                let setting = SETTINGS.into_iter().find(|setting| setting == asked);
                self.settings.extend(setting.zip(text(items.get(1))));
            }
            (["TIME"], Ok(Reply::Array(items))) => {
                if let Some(time) = time(items) {
                    self.note(time, asked, clocks);
                }
            }
            _ => {}
        }
    }

    /// Takes note of the time, unless another answer was faster.
    fn note(&mut self, time: i64, asked: &Asked, clocks: Clocks) {
        if self.latency.is_none_or(|latency| asked.took < latency) {
            self.latency = Some(asked.took);
            self.clock = Some(time - clocks.millis_at(asked.sent + asked.took / 2));
        }
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

#[cfg(test)]
mod tests;
