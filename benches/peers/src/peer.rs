//! The locks that are compared, each as its documentation shows it, with its defaults.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline_benches::Result;
use redis::aio::MultiplexedConnection;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Bowline,
    BowlineNonFair,
    Redissun,
    RedissunFair,
    Rslock,
    /// `SET NX PX` until it succeeds, and a script that deletes what is one's own.
    Polling,
}

/// As long as bowline's default, where the peer has none.
const LEASE: Duration = Duration::from_secs(30);

/// Deletes the key if it still has the value.
const DELETE_OWN: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

impl Peer {
    pub(crate) const ALL: [Self; 6] =
        [Self::Bowline, Self::BowlineNonFair, Self::Redissun, Self::RedissunFair, Self::Rslock, Self::Polling];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bowline => "bowline",
            Self::BowlineNonFair => "bowline-nonfair",
            Self::Redissun => "redissun",
            Self::RedissunFair => "redissun-fair",
            Self::Rslock => "rslock",
            Self::Polling => "set-nx",
        }
    }

    pub(crate) fn is_ours(self) -> bool {
        matches!(self, Self::Bowline | Self::BowlineNonFair)
    }

    /// The commands that it sends: what its scripts call in the server is part of them.
    pub(crate) fn commands(self) -> &'static [&'static str] {
        match self {
            Self::Bowline | Self::BowlineNonFair => &["eval", "evalsha"],
            Self::Redissun | Self::RedissunFair => {
                &["eval", "evalsha", "script|load", "subscribe", "unsubscribe", "wait"]
            }
            Self::Rslock | Self::Polling => &["eval", "evalsha", "script|load", "set"],
        }
    }

    /// A client of its own. Names are not shared: each keeps something else under them.
    pub(crate) async fn open(self, url: &str, name: &str) -> Result<Taker> {
        let name = format!("bench:{}:{name}", self.name());
        Ok(match self {
            Self::Bowline | Self::BowlineNonFair => {
                let client = bowline::tokio::connect(url).await?;
                Taker::Bowline { lock: client.lock(&name), fair: self == Self::Bowline, _client: client }
            }
            Self::Redissun => Taker::Redissun(redissun::Client::builder().url(url).build().await?.lock(name)),
            Self::RedissunFair => {
                Taker::RedissunFair(redissun::Client::builder().url(url).build().await?.fair_lock(name))
            }
            Self::Rslock => Taker::Rslock(rslock::LockManager::new(vec![url]), name.into()),
            Self::Polling => {
                let connection = redis::Client::open(url)?.get_multiplexed_async_connection().await?;
                Taker::Polling(connection, redis::Script::new(DELETE_OWN).into(), name.into())
            }
        })
    }
}

/// One lock of one peer, for any number of tasks.
#[derive(Clone)]
pub(crate) enum Taker {
    Bowline { lock: bowline::Lock, fair: bool, _client: bowline::Client },
    Redissun(redissun::Lock),
    RedissunFair(redissun::FairLock),
    Rslock(rslock::LockManager, Arc<str>),
    Polling(MultiplexedConnection, Arc<redis::Script>, Arc<str>),
}

impl Taker {
    /// Acquires and releases. Returns how long it waited.
    pub(crate) async fn once(&self) -> Result<Duration> {
        let start = Instant::now();
        Ok(match self {
            Self::Bowline { lock, fair, .. } => {
                let acquire = lock.lock();
                let guard = if *fair { acquire.fair() } else { acquire.non_fair() }.await?;
                let waited = start.elapsed();
                guard.release().await?;
                waited
            }
            Self::Redissun(lock) => {
                let guard = lock.lock().await?;
                let waited = start.elapsed();
                guard.unlock().await?;
                waited
            }
            Self::RedissunFair(lock) => {
                let guard = lock.lock().await?;
                let waited = start.elapsed();
                guard.unlock().await?;
                waited
            }
            Self::Rslock(manager, name) => {
                let guard = manager.acquire(name.as_bytes(), LEASE).await?;
                let waited = start.elapsed();
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
                let () = delete_own.key(&**name).arg(value).invoke_async(&mut connection).await?;
                waited
            }
        })
    }
}

fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}
