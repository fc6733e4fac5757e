//! The locks that are compared, each as its documentation shows it, with its defaults.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline_benches::Result;
use bowline_benches::server::Server;
use futures::future::try_join_all;
use redis::aio::MultiplexedConnection;

use crate::majority::{DELETE_OWN, Majority};
use crate::redisson::Redisson;
use crate::runner::Runner;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Bowline,
    BowlineNonFair,
    /// bowline's, in the format of Redisson.
    BowlineRedisson,
    Redisson,
    RedissonFair,
    Redissun,
    RedissunFair,
    Rslock,
    /// `SET NX PX` until it succeeds, and a script that deletes what is one's own.
    Polling,
    /// bowline's, over all servers.
    RedLock,
    /// Over all servers.
    RslockOverAll,
    /// As redsync does it: `SET NX PX` to all servers at the same time, until a majority has taken it. What a minority
    /// has taken is deleted, and the pause before the next round is random.
    PollingAll,
    /// No lock: the floor of a free one over all servers that is taken and released by scripts. They do nothing.
    EmptyAll,
}

/// As long as bowline's default, where the peer has none.
const LEASE: Duration = Duration::from_secs(30);

impl Peer {
    /// On one server.
    pub(crate) const ALL: [Self; 9] = [
        Self::Bowline,
        Self::BowlineNonFair,
        Self::BowlineRedisson,
        Self::Redisson,
        Self::RedissonFair,
        Self::Redissun,
        Self::RedissunFair,
        Self::Rslock,
        Self::Polling,
    ];

    /// Over several servers.
    pub(crate) const OVER_ALL: [Self; 3] = [Self::RedLock, Self::RslockOverAll, Self::PollingAll];

    /// Over several servers, where nobody competes.
    pub(crate) const FREE_OVER_ALL: [Self; 4] = [Self::RedLock, Self::RslockOverAll, Self::PollingAll, Self::EmptyAll];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bowline => "bowline",
            Self::BowlineNonFair => "bowline-nonfair",
            Self::BowlineRedisson => "bowline-redisson",
            Self::Redisson => "redisson",
            Self::RedissonFair => "redisson-fair",
            Self::Redissun => "redissun",
            Self::RedissunFair => "redissun-fair",
            Self::Rslock => "rslock",
            Self::Polling => "set-nx",
            Self::RedLock => "redlock",
            Self::RslockOverAll => "rslock-all",
            Self::PollingAll => "set-nx-all",
            Self::EmptyAll => "empty-all",
        }
    }

    pub(crate) fn is_ours(self) -> bool {
        matches!(self, Self::Bowline | Self::BowlineNonFair | Self::BowlineRedisson)
    }

    /// Whether it is a program of its own, which needs Java.
    pub(crate) fn is_redisson(self) -> bool {
        matches!(self, Self::Redisson | Self::RedissonFair)
    }

    /// Commands per acquisition that the server does not count apart from those that scripts call. After a release,
    /// Redisson deletes the key in which its script has noted the result, and the script itself deletes the lock.
    pub(crate) fn uncounted_commands(self) -> f64 {
        if self.is_redisson() { 1.0 } else { 0.0 }
    }

    /// The commands that it sends: what its scripts call in the server is part of them.
    pub(crate) fn commands(self) -> &'static [&'static str] {
        match self {
            Self::Bowline | Self::BowlineNonFair | Self::RedLock => &["eval", "evalsha"],
            Self::BowlineRedisson => &["eval", "evalsha", "subscribe", "unsubscribe"],
            Self::Redisson | Self::RedissonFair => &["eval", "evalsha", "script|load", "subscribe", "unsubscribe"],
            Self::Redissun | Self::RedissunFair => {
                &["eval", "evalsha", "script|load", "subscribe", "unsubscribe", "wait"]
            }
            Self::Rslock | Self::Polling | Self::RslockOverAll | Self::PollingAll | Self::EmptyAll => {
                &["eval", "evalsha", "script|load", "set"]
            }
        }
    }

    /// A client of its own of the first server, or of all of them. Names are not shared: each keeps something else
    /// under them.
    pub(crate) async fn open(self, servers: &[Server], name: &str) -> Result<Runner> {
        let name = format!("bench:{}:{name}", self.name());
        let urls: Vec<&str> = servers.iter().map(|server| &*server.url).collect();
        let url = *urls.first().ok_or("there is no server")?;
        Ok(Runner::Tasks(match self {
            Self::Bowline | Self::BowlineNonFair => {
                let client = bowline::tokio::connect(url).await?;
                Taker::Bowline { lock: client.lock(&name), fair: self == Self::Bowline, _client: client }
            }
            Self::BowlineRedisson => {
                let client = bowline::tokio::connect(url).await?;
                Taker::BowlineRedisson(client.redisson().lock(&name), client)
            }
            Self::Redisson => return Ok(Runner::Redisson(Redisson::start(url, "lock", &name).await?.into())),
            Self::RedissonFair => return Ok(Runner::Redisson(Redisson::start(url, "fair", &name).await?.into())),
            Self::Redissun => Taker::Redissun(redissun::Client::builder().url(url).build().await?.lock(name)),
            Self::RedissunFair => {
                Taker::RedissunFair(redissun::Client::builder().url(url).build().await?.fair_lock(name))
            }
            Self::Rslock => Taker::Rslock(rslock::LockManager::new(vec![url]), name.into()),
            Self::Polling => {
                let connection = redis::Client::open(url)?.get_multiplexed_async_connection().await?;
                Taker::Polling(connection, redis::Script::new(DELETE_OWN).into(), name.into())
            }
            Self::RedLock => {
                let clients = try_join_all(urls.iter().map(|url| bowline::tokio::connect(*url))).await?;
                // The servers were just started, so they have lost no hold.
                let locks = bowline::RedLock::builder(clients).durable(true).build()?;
                Taker::RedLock(locks, name.into())
            }
            Self::RslockOverAll => Taker::Rslock(rslock::LockManager::new(urls), name.into()),
            Self::PollingAll => Taker::PollingAll(Majority::open(&urls).await?, name.into()),
            Self::EmptyAll => Taker::EmptyAll(Majority::open(&urls).await?, name.into()),
        }))
    }
}

/// One lock of one peer, for any number of tasks.
#[derive(Clone)]
pub(crate) enum Taker {
    Bowline { lock: bowline::Lock, fair: bool, _client: bowline::Client },
    BowlineRedisson(bowline::RedissonLock, bowline::Client),
    Redissun(redissun::Lock),
    RedissunFair(redissun::FairLock),
    Rslock(rslock::LockManager, Arc<str>),
    Polling(MultiplexedConnection, Arc<redis::Script>, Arc<str>),
    RedLock(bowline::RedLock, Arc<str>),
    PollingAll(Majority, Arc<str>),
    EmptyAll(Majority, Arc<str>),
}

impl Taker {
    /// Acquires, calls `section`, and releases. Returns how long it waited.
    pub(crate) async fn once(&self, section: impl FnOnce()) -> Result<Duration> {
        let start = Instant::now();
        Ok(match self {
            Self::Bowline { lock, fair, .. } => {
                let acquire = lock.lock();
                let guard = if *fair { acquire.fair() } else { acquire.non_fair() }.await?;
                let waited = start.elapsed();
                section();
                guard.release().await?;
                waited
            }
            Self::BowlineRedisson(lock, _client) => {
                let guard = lock.lock().await?;
                let waited = start.elapsed();
                section();
                guard.release().await?;
                waited
            }
            Self::Redissun(lock) => {
                let guard = lock.lock().await?;
                let waited = start.elapsed();
                section();
                guard.unlock().await?;
                waited
            }
            Self::RedissunFair(lock) => {
                let guard = lock.lock().await?;
                let waited = start.elapsed();
                section();
                guard.unlock().await?;
                waited
            }
            Self::Rslock(manager, name) => {
                let guard = manager.acquire(name.as_bytes(), LEASE).await?;
                let waited = start.elapsed();
                section();
                guard.release().await;
                waited
            }
            Self::Polling(connection, delete_own, name) => {
                let (mut connection, value) = (connection.clone(), random());
                let mut set = redis::cmd("SET");
                set.arg(&**name).arg(value).arg("NX").arg("PX").arg(LEASE.as_millis() as u64);
                while !set.query_async::<bool>(&mut connection).await? {
                    tokio::time::sleep(Duration::from_millis(25 + random() % 50)).await;
                }
                let waited = start.elapsed();
                section();
                let () = delete_own.key(&**name).arg(value).invoke_async(&mut connection).await?;
                waited
            }
            Self::RedLock(locks, name) => {
                let guard = locks.lock(name).await?;
                let waited = start.elapsed();
                section();
                guard.release().await?;
                waited
            }
            Self::PollingAll(majority, name) => {
                let value = random();
                while !majority.take(name, value, LEASE).await? {
                    majority.give_back(name, value).await?;
                    tokio::time::sleep(Duration::from_millis(50 + random() % 150)).await;
                }
                let waited = start.elapsed();
                section();
                majority.give_back(name, value).await?;
                waited
            }
            Self::EmptyAll(majority, name) => {
                let value = random();
                majority.do_nothing(name, value).await?;
                let waited = start.elapsed();
                section();
                majority.do_nothing(name, value).await?;
                waited
            }
        })
    }
}

fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
