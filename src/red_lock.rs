//! One lock over several independent servers. The docs of [`RedLock`] say what callers can rely on. The head of
//! [`acquire`] describes the algorithm.

use std::fmt;
use std::sync::Arc;

use crate::acquire::builder::{Acquire, TryAcquire};
use crate::client::Client;
use crate::election::Election;
use crate::error::{Error, ErrorKind, Result};
use crate::handle::Primitive;
use crate::hold::owner::HoldSource;
use crate::multi_lock::MultiLock;
use crate::protocol::kind::Kind;
use crate::runtime::Executor;

mod acquire;
mod asking;
mod ballot;
mod cast;
mod claim;
mod contended;
mod count;
mod doubts;
mod election;
mod health;
mod inspect;
mod late;
mod leaving;
mod look;
mod master;
mod master_set;
mod masters;
mod own;
mod patience;
mod quorum_hold;
mod quorum_task;
mod round;
mod settings;
mod standing;
mod state;
mod stats;
mod together;
mod turn;
mod voting;

use master::Master;
use masters::Masters;
pub use settings::RedLockBuilder;
pub use state::{MasterState, RedLockState};
pub use stats::RedLockStats;

/// Locks over 3 or 5 independent servers, the *masters*: a hold is valid while a majority of them has it. A failure of
/// any minority of the masters neither ends a hold nor grants a second one.
///
/// Use it if a lock must outlive the loss of a server, and you cannot trust a failover to keep the last writes. It
/// costs a request to each master for each step, and is unavailable without a majority. With one server and replicas
/// that [acknowledge](crate::ConfigBuilder::acknowledged_by) grants, a lock costs less. The masters must not replicate
/// each other. [docs/quorum.md](https://docs.rs/crate/bowline/latest/source/docs/quorum.md) compares them, and tells
/// how the scheme was checked.
///
/// A `RedLock` is cheap to clone. To a [`Holder`](crate::Holder) and a [`MultiLock`](crate::MultiLock), two `RedLock`s
/// of the same clients are one. The locks are independent of a [`Lock`](crate::Lock) of the same name on any of the
/// masters.
///
/// # How it works
/// An acquisition first waits for its *turn*: an ordinary lock on the first master that answers, with a fair queue. The
/// turn proposes a fencing token. All masters are then asked to vote: a master takes the lock for this hold, and
/// accepts the token if it has seen no larger one. The hold is granted if a majority took the lock **and** accepted the
/// token, and enough of the lease is left. If masters have seen larger tokens, a second round proposes one that is
/// larger than all of them. The guard renews its votes, and asks again for a vote that was lost.
///
/// If nobody has the turn or waits for it, the turn and all votes are taken at once: one round trip, and two commands
/// at each master for an acquisition and its release. If somebody does, the votes are given back, so nobody is passed
/// by. A program waits for its turn first if it has not heard of the first master for the longest lease, if it has the
/// name already, or found it contended a moment ago.
///
/// A grant waits for a majority of the masters, and for the master that gives the turn. The votes of slower masters
/// join the hold when they come, and an extension waits for them. In two cases a grant waits for all masters, for at
/// most the [`node_timeout`](RedLockBuilder::node_timeout): as long as one of them has never answered this program,
/// because it may be the same server as another one; and if their set [has a name](RedLockBuilder::masters_version),
/// because one of them may vote for another set.
///
/// # Guarantees
/// - While [`is_valid`](crate::LockGuard::is_valid) returns `true`, no other guard of the same name is valid in any
///   process that uses the same masters, the same prefixes and the same
///   [`longest_lease`](RedLockBuilder::longest_lease), with the exceptions below. Crashes, restarts and partitions of
///   masters are no exception.
/// - The [`token`](crate::LockGuard::token) is larger than that of every hold of the name that was granted before the
///   acquisition began. A majority has accepted it. This holds even where exclusion fails, as long as the masters keep
///   their data.
/// - A master that has restarted may have lost holds. Its votes count only when it has been up for the `longest_lease`,
///   unless [`durable`](RedLockBuilder::durable) is set, or [`new_masters`](RedLockBuilder::new_masters) for its first
///   process.
/// - Acquisitions queue in the order of arrival. If the first master fails, the order is lost once.
/// - A program can start while a minority of masters is down, if its clients [connect in the
///   background](crate::ConfigBuilder::connect_in_background). Masters that were down are used once they are up.
/// - A minority of masters that is down costs at most one [`node_timeout`](RedLockBuilder::node_timeout), and not one
///   per acquisition or extension.
/// - Every future can be dropped at any point. Its turn and its votes are cancelled in the background, or end with the
///   lease.
///
/// # Not guaranteed
/// - Exclusion relies on clocks that run at nearly the same rate on the clients and on the masters. It may fail if the
///   clock of a master steps forward, or a program is paused between a check and the next step. Send the token with
///   every write, and let the resource refuse writes with a smaller token than the largest it has seen.
/// - Where a master has lost its data, tokens grow by the clocks of the masters. They may stop growing if these clocks
///   differ by more than a tenth of the `longest_lease`.
///
/// # Redis keys
/// On each master:
/// - `<prefix>:vote:{<name>}`, the vote, expires with the lease.
/// - `<prefix>:vote:{<name>}:fence`, the largest token that was accepted, and the [set of
///   masters](RedLockBuilder::masters_version) of the last vote, expires 65 min after the last vote or after twice the
///   lease, whichever is later.
/// - `<prefix>:turn:{<name>}` and `...:queue`, `...:tickets`, `...:fence`: the turn, as the keys of a
///   [`Lock`](crate::Lock). Used on the first master that answers.
///
/// # Examples
/// ```
/// # #[cfg(all(feature = "tokio", feature = "embedded"))]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> bowline::Result<()> {
/// use std::time::Duration;
///
/// use bowline::RedLock;
///
/// # let servers = [(); 3].map(|()| bowline::embedded::Server::new());
/// # let connect = async |n: usize| servers[n].client(bowline::tokio::Tokio::current()?).await;
/// # #[cfg(any())]
/// let connect = async |n| bowline::tokio::connect(MASTERS[n]).await;
/// let locks = RedLock::new([connect(0).await?, connect(1).await?, connect(2).await?])?;
///
/// let guard = locks.lock("orders:42").timeout(Duration::from_secs(2)).await?;
/// println!("holding with token {}", guard.token());
/// assert_eq!(locks.inspect("orders:42").await?.token(), Some(guard.token()));
/// guard.release().await?;
/// # Ok(()) }
/// # #[cfg(not(all(feature = "tokio", feature = "embedded")))]
/// # fn main() {}
/// ```
#[derive(Clone)]
pub struct RedLock {
    masters: Arc<Masters>,
    source: Arc<HoldSource>,
}

impl RedLock {
    /// Makes a `RedLock` over the servers of these clients, 3 or 5, with the default settings. Sends nothing.
    ///
    /// All programs must give the same servers, in the same order: the first one that answers has the queue.
    ///
    /// # Errors
    /// Those of [`RedLockBuilder::build`].
    pub fn new(masters: impl IntoIterator<Item = Client>) -> Result<Self> {
        Self::builder(masters).build()
    }

    /// A builder, to choose other settings than the defaults.
    pub fn builder(masters: impl IntoIterator<Item = Client>) -> RedLockBuilder {
        RedLockBuilder::new(masters)
    }

    /// Acquires the lock `name`, any text of 1 to 512 bytes, and waits while others hold it. Set options on the result,
    /// then await it.
    ///
    /// The options are those of a [`Lock`](crate::Lock), with these differences:
    /// - Leases, and the extensions of a [fixed lease](Acquire::expires_after), must not be longer than the
    ///   [`longest_lease`](RedLockBuilder::longest_lease).
    /// - [`acknowledged_by`](Acquire::acknowledged_by) is an [`InvalidInput`](ErrorKind::InvalidInput) error.
    /// - A cohort of [non-fair](Acquire::non_fair) acquisitions shares the turn. Each member asks for votes of its own.
    /// - Defaults, such as the lease and the [`retry_timeout`](crate::ConfigBuilder::retry_timeout), are those of the
    ///   first client.
    ///
    /// # Errors
    /// Those of [`Acquire`], and:
    /// - [`Unavailable`](ErrorKind::Unavailable) means that there was no majority for the `retry_timeout`: too few
    ///   masters answer, or too few of those have been up for the longest lease. All waiting acquisitions then fail
    ///   together.
    /// - [`OtherMasters`](ErrorKind::OtherMasters): a master votes for programs with another [set of
    ///   masters](RedLockBuilder::masters_version). One such answer is enough.
    /// - [`InvalidInput`](ErrorKind::InvalidInput) also means that the lease is longer than the
    ///   [`longest_lease`](RedLockBuilder::longest_lease), or that two masters are the same server. Requests may have
    ///   been sent before the latter is found.
    /// - [`Denied`](ErrorKind::Denied) can mean that the user lacks the right to run `INFO`, which connecting does not
    ///   check.
    /// - If denials, and failures of clients to [connect](crate::ConfigBuilder::connect_in_background), leave no
    ///   majority, and time does not mend them, they are the error. A minority that refuses or denies is passed over.
    pub fn lock(&self, name: &str) -> Acquire {
        Acquire::new(&self.primitive(name), "lock", 1)
    }

    /// Acquires the lock `name` without waiting. Resolves to `None` if another acquisition holds the lock or waits for
    /// it. The options and errors are those of [`lock`](Self::lock).
    pub fn try_lock(&self, name: &str) -> TryAcquire {
        TryAcquire::new(&self.primitive(name), "try_lock", 1)
    }

    /// Returns the election `name`. Its leader holds the lock of that name: use names of their own for elections. Sends
    /// nothing.
    pub fn election(&self, name: &str) -> Election {
        Election::of_quorum(&self.source, name)
    }

    /// Reads the state of the lock `name` on each master. Masters that do not answer within the
    /// [`node_timeout`](RedLockBuilder::node_timeout) have an error in the result, and the call takes no longer than
    /// that. A master that refuses writes, because it is full or cannot store, answers as usual:
    /// [`stats`](Self::stats) counts it in `masters_down`.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) for an invalid name.
    ///
    /// # Cancel safety
    /// Reads only. Dropping the future changes nothing in Redis.
    pub async fn inspect(&self, name: &str) -> Result<RedLockState> {
        self.masters.inspect("inspect", name).await
    }

    /// The counters of this `RedLock` and its clones.
    pub fn stats(&self) -> RedLockStats {
        self.masters.stats()
    }

    pub(crate) fn executor(&self) -> &Arc<dyn Executor> {
        self.masters.executor()
    }

    fn primitive(&self, name: &str) -> Primitive {
        Primitive::new(&self.source, Kind::Vote, name)
    }
}

impl MultiLock {
    /// Adds the lock `name` of a [`RedLock`]. Its votes count as one hold.
    pub fn red_lock(self, locks: &RedLock, name: &str) -> Self {
        self.with(locks.lock(name))
    }
}

impl RedLockBuilder {
    /// Checks the clients and the settings, and makes the `RedLock`. Sends nothing.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput):
    /// - There are not 3 or 5 clients, nor 4 with a [`masters_version`](Self::masters_version), or two of them are the
    ///   same client.
    /// - A client is connected to a cluster, or by way of sentinels: see
    ///   [`Topology::fails_over`](crate::Topology::fails_over). This is found later if the client connects [in the
    ///   background](crate::ConfigBuilder::connect_in_background): such a master is never asked,
    ///   [`inspect`](RedLock::inspect) says why, and acquisitions fail with `InvalidInput` if the others are no
    ///   majority.
    /// - A client waits for replicas ([`acknowledged_by`](crate::ConfigBuilder::acknowledged_by)).
    /// - The [`Executor`](crate::Executor)s of the clients show times that are more than a second apart. The executors
    ///   of this crate show the same time, unless a tokio clock is paused.
    /// - A setting is out of range.
    ///
    /// Two clients of the same server are found by the first acquisition that reaches both. It fails with
    /// `InvalidInput`, too.
    pub fn build(self) -> Result<RedLock> {
        let (clients, settings) = self.checked()?;
        let sources: Vec<_> = clients.iter().map(|client| client.source.clone()).collect();
        let masters = Arc::new(Masters::new(sources.iter().cloned().map(Master::new).collect(), settings));
        let source = HoldSource::of_several(&sources, masters.clone());
        let none = || Error::because(ErrorKind::InvalidInput, "red_lock", "a RedLock has 3 or 5 masters, not 0");
        Ok(RedLock { source: source.ok_or_else(none)?, masters })
    }
}

impl fmt::Debug for RedLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedLock").field("masters", &self.masters.all.len()).finish_non_exhaustive()
    }
}
