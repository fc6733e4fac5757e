//! The settings of a RedLock.

use std::time::Duration;

use crate::client::Client;
use crate::config::check_lease;
use crate::error::{Error, ErrorKind, Result};
use crate::red_lock::master::unsuitable;
use crate::red_lock::master_set::MasterSet;
use crate::runtime::Executor;

/// The operation that the error about a wrong setting names.
const OPERATION: &str = "red_lock";

#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) node_timeout: Duration,
    pub(super) longest_lease: Duration,
    pub(super) durable: bool,
    pub(super) new_masters: bool,
    pub(super) set: Option<MasterSet>,
}

/// A builder of a [`RedLock`](crate::RedLock). [`build`](Self::build) checks the clients and the settings.
#[derive(Clone, Debug)]
#[must_use = "call build()"]
pub struct RedLockBuilder {
    clients: Vec<Client>,
    node_timeout: Duration,
    longest_lease: Option<Duration>,
    durable: bool,
    new_masters: bool,
    version: Option<(String, u32)>,
}

impl RedLockBuilder {
    pub(super) fn new(masters: impl IntoIterator<Item = Client>) -> Self {
        let clients = masters.into_iter().collect();
        Self {
            clients,
            node_timeout: Duration::from_millis(500),
            longest_lease: None,
            durable: false,
            new_masters: false,
            version: None,
        }
    }

    /// How long an acquisition waits for the answer of one master if it needs it: 1 ms to 60 s, and at most a quarter
    /// of the lease and of the [`retry_timeout`](crate::ConfigBuilder::retry_timeout), so that silent masters leave
    /// time for the others. The default is 500 ms.
    ///
    /// Set it well above the time of a round trip. A master that does not answer in time is not asked again before it
    /// has answered a probe in the background, so its silence costs this time at most once, and not once per
    /// acquisition. If the lease or the `retry_timeout` leaves less time, a master that is late is passed over for that
    /// name only, until the probe has been answered.
    pub fn node_timeout(mut self, timeout: Duration) -> Self {
        self.node_timeout = timeout;
        self
    }

    /// The longest lease of any acquisition of the `RedLock`. The default is the longest
    /// [`lease`](crate::ConfigBuilder::lease) in the configurations of the clients. An acquisition with a longer lease
    /// is an [`InvalidInput`](ErrorKind::InvalidInput) error.
    ///
    /// A master that has restarted may have lost holds. Its votes count again when it has been up for this long,
    /// because those holds have ended by then. **All programs that use the same names must set the same value.**
    pub fn longest_lease(mut self, lease: Duration) -> Self {
        self.longest_lease = Some(lease);
        self
    }

    /// Declares that no master loses a write when it restarts, so that its votes count at once. The default is `false`.
    ///
    /// A Redis server needs `appendonly yes` and `appendfsync always` for this. With less, two guards can be valid at
    /// the same time after a restart. A test that has just started its servers declares
    /// [`new_masters`](Self::new_masters) instead.
    pub fn durable(mut self, durable: bool) -> Self {
        self.durable = durable;
        self
    }

    /// Declares that the masters were started for the first time, so they cannot have lost anything. The default is
    /// `false`.
    ///
    /// It is meant for tests, which start their servers and would otherwise wait for the longest lease. The votes of
    /// the first process of each master that this `RedLock` hears of count at once. Those of a master that restarts
    /// later count when it has been up for the [`longest_lease`](Self::longest_lease), as without this declaration. If
    /// the masters were in use before, two guards can be valid at the same time.
    pub fn new_masters(mut self, new: bool) -> Self {
        self.new_masters = new;
        self
    }

    /// Names this set of masters, and says which version of the set it is. The default is neither, and then nothing is
    /// checked.
    ///
    /// Two programs exclude each other if each majority of the masters of one has a master in common with each majority
    /// of the other. Programs with the masters 1, 2, 3 and 1, 2, 4 do not exclude each other: one can hold a lock with
    /// 1 and 3, and the other with 2 and 4. They do if one set is the other with **one master more**. So a set is
    /// changed in steps: each adds one master or removes one, and its version is larger by one. A `RedLock` with a
    /// version may therefore have 4 masters as well, of which a majority is 3.
    ///
    /// Each vote says which version it is for, and a master remembers that of the last vote of each name. While that
    /// vote's lease lasts, a request for another set fails with [`OtherMasters`](ErrorKind::OtherMasters), unless its
    /// version is the one before or after, with one master more or less. **The masters cannot know each other**, so
    /// this finds mistakes but does not make them harmless. It finds no mistake of programs that reach no common
    /// master, and does not see which masters a program has.
    ///
    /// A step is complete, and the next one may begin, when no program with an older version runs and the
    /// [`longest_lease`](Self::longest_lease) has passed since. The procedures are in
    /// [docs/quorum.md](https://docs.rs/crate/bowline/latest/source/docs/quorum.md).
    ///
    /// The name has 1 to 64 bytes, without spaces and control characters.
    pub fn masters_version(mut self, name: &str, version: u32) -> Self {
        self.version = Some((name.to_owned(), version));
        self
    }

    /// Checks the clients and the settings.
    pub(super) fn checked(self) -> Result<(Vec<Client>, Settings)> {
        let settings = self.settings()?;
        Ok((self.clients, settings))
    }

    fn settings(&self) -> Result<Settings> {
        let Self { clients, node_timeout, durable, .. } = self;
        match clients.len() {
            3 | 5 => {}
            4 if self.version.is_some() => {}
            4 => {
                return Err(invalid(
                    "a RedLock has 3 or 5 masters; it can have 4 if it has a masters_version".to_owned(),
                ));
            }
            n => return Err(invalid(format!("a RedLock has 3 or 5 masters, not {n}"))),
        }
        let set = self.version.as_ref().map(|(name, version)| MasterSet::new(name, *version, clients.len()));
        let set = set.transpose().map_err(|reason| invalid(reason.to_owned()))?;
        for (n, client) in clients.iter().enumerate() {
            if let Some(other) = clients[..n].iter().position(|other| other.id() == client.id()) {
                return Err(invalid(format!("masters {} and {} have the same client", other + 1, n + 1)));
            }
            let context = client.context();
            // A client that has not connected yet is looked at by each acquisition.
            if context.not_connected().is_none()
                && let Some(reason) = unsuitable(context.connection.topology())
            {
                return Err(invalid(format!("master {}: {reason}", n + 1)));
            }
            if n > 0 && !agree(&*clients[0].context().executor, &*context.executor) {
                return Err(invalid(format!(
                    "the executor of master {} shows another time than that of master 1; a hold compares their times",
                    n + 1
                )));
            }
            if context.config.replicas > 0 {
                return Err(invalid(format!(
                    "the client of master {} sets acknowledged_by; the servers of a RedLock have no replicas",
                    n + 1
                )));
            }
        }
        if !(Duration::from_millis(1)..=Duration::from_secs(60)).contains(node_timeout) {
            return Err(invalid("node_timeout must be 1 ms to 60 s".to_owned()));
        }
        let longest = clients.iter().map(|client| client.context().config.lease).max();
        let longest_lease = self.longest_lease.or(longest).unwrap_or_default();
        check_lease(OPERATION, longest_lease)?;
        let new_masters = self.new_masters;
        Ok(Settings { node_timeout: *node_timeout, longest_lease, durable: *durable, new_masters, set })
    }
}

/// Whether two executors show the same time. The one is read before and after the other, because the thread may stand
/// still in between.
fn agree(one: &dyn Executor, other: &dyn Executor) -> bool {
    const MOST: Duration = Duration::from_secs(1);
    let (before, between, after) = (one.now(), other.now(), one.now());
    before.saturating_duration_since(between) <= MOST && between.saturating_duration_since(after) <= MOST
}

fn invalid(reason: String) -> Error {
    Error::because(ErrorKind::InvalidInput, OPERATION, reason)
}
