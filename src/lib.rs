// README.md and the guide define the targets of their links at the end, for readers on GitHub. Markdown uses the first
// definition of a target, so src/links, which has the targets for rustdoc, is included first. scripts/pictures writes
// the pictures among them. The guide needs the embedded server.
#![cfg_attr(
    all(feature = "tokio", not(feature = "embedded")),
    doc = "[docs/guide.md]: https://docs.rs/bowline/latest/bowline/guide/index.html\n"
)]
#![cfg_attr(feature = "tokio", doc = include_str!("links/readme.md"))]
#![cfg_attr(feature = "tokio", doc = include_str!("links/pictures.md"))]
// The example of the README needs tokio.
#![cfg_attr(feature = "tokio", doc = include_str!("../README.md"))]
#![cfg_attr(not(feature = "tokio"), doc = "Distributed locks on Redis with leases, fair queues and fencing tokens.")]
// On docs.rs, rustdoc says by itself which feature an item needs. Where that is an internal one, the item says so.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(docsrs, doc(auto_cfg(hide(feature = "_redis"))))]
#![forbid(unsafe_code)]

pub mod blocking;
#[cfg(feature = "embedded")]
pub mod embedded;
pub mod prelude;
#[cfg(feature = "testing")]
pub mod testing;

#[cfg(all(any(doc, doctest), feature = "tokio", feature = "embedded"))]
#[doc = include_str!("links/guide.md")]
#[doc = include_str!("links/pictures.md")]
#[doc = include_str!("../docs/guide.md")]
pub mod guide {}

mod acquire;
mod ask;
mod backoff;
mod barrier;
mod call_once;
mod changes;
mod client;
mod cohort;
mod config;
#[cfg(feature = "_redis")]
mod connect;
mod connection;
mod context;
mod deadlock;
mod double_barrier;
mod driver;
mod drop_waiters;
#[cfg(feature = "serde")]
mod duration_text;
mod election;
mod engine;
mod error;
mod handle;
mod hold;
mod holder;
mod in_turn;
mod inspect;
mod jitter;
mod latch;
mod limiter;
mod lock;
mod multi_lock;
mod mutant;
mod mutex;
mod names;
mod observe;
mod on_drop;
mod once;
mod opening;
mod operators;
#[cfg(any(feature = "testing", feature = "threads"))]
mod park;
mod preflight;
mod protocol;
mod red_lock;
#[cfg(feature = "_redis")]
mod redis;
mod redisson;
mod revoke;
mod runtime;
mod rw_lock;
mod semaphore;
mod stats;
mod tuning;
mod until;
mod wakers;

#[cfg(feature = "async-std")]
pub use runtime::async_std;
#[cfg(feature = "smol")]
pub use runtime::smol;
#[cfg(feature = "threads")]
pub use runtime::threads;
#[cfg(feature = "tokio")]
pub use runtime::tokio;

pub use acquire::builder::{Acquire, TryAcquire};
pub use acquire::force_after::ForceAfter;
pub use barrier::{Barrier, BarrierPass, BarrierState, BarrierWait, MAX_BARRIER_PARTIES};
pub use client::Client;
pub use config::{Config, ConfigBuilder, MAX_LABEL, MAX_LEASE, MIN_LEASE};
pub use connection::{Acknowledged, Arg, Call, Connection, ConnectionError, Notice, Reply, Topology, Warning};
pub use deadlock::{Deadlock, DeadlockedWait, Deadlocks, WayOut};
pub use double_barrier::{DoubleBarrier, DoubleBarrierState, Enter, Inside, Leave};
pub use election::{Campaign, Election, ElectionChange, ElectionChanges, Leader, Leadership, MAX_LEADER_VALUE, Term};
pub use engine::lease::Loss;
pub use error::{Error, ErrorKind, Result};
pub use hold::guard::{
    Held, LockGuard, LossSignal, MergeError, NamedLoss, Permit, ReadGuard, RedissonFencedGuard, RedissonGuard,
    RedissonPermitGuard, Reentrant, UpgradableGuard, WriteGuard,
};
pub use hold::hold_handle::HoldHandle;
pub use holder::Holder;
pub use in_turn::run_in_turn;
pub use inspect::{Access, HolderState, WaiterState};
pub use latch::{CountDownLatch, LatchState, LatchWait, MAX_LATCH_COUNT, MAX_LATCH_TTL};
pub use limiter::{Decision, MAX_REFILL, Quota, RateLimiter, UntilReady};
pub use lock::{Lock, LockState};
pub use multi_lock::{MultiGuard, MultiLock};
#[cfg(feature = "_mutants")]
#[doc(hidden)]
pub use mutant::{Mutant, Switch};
pub use names::changes::{HoldChange, HoldChanges};
pub use names::look::{HoldState, NameState};
pub use names::{NameInUse, Names};
pub use once::{LastRun, MAX_PERIOD, MIN_PERIOD, Once, OnceState, Run, RunOutcome, Schedule};
pub use protocol::Script;
pub use protocol::names::PrimitiveKind;
pub use protocol::token::Token;
#[cfg(feature = "_wire")]
#[doc(hidden)]
pub use protocol::wire;
pub use red_lock::{MasterState, RedLock, RedLockBuilder, RedLockState, RedLockStats};
#[cfg(all(feature = "_redis", feature = "_wire"))]
#[doc(hidden)]
pub use redis::dial::dialled;
#[cfg(feature = "redis-1")]
pub use redis::redis_1;
#[cfg(feature = "_redis")]
#[cfg_attr(docsrs, doc(cfg(any(feature = "tokio", feature = "smol", feature = "async-std"))))]
pub use redis::{Asked, ConnectOptions, Credentials, Login, RedisConnection, SentinelUrl};
pub use redisson::{
    Redisson, RedissonAcquire, RedissonCountDownLatch, RedissonFencedLock, RedissonLock, RedissonLockState,
    RedissonOwner, RedissonPermitSemaphore, RedissonPermitState, RedissonPermits, RedissonPermitsState,
    RedissonSemaphore,
};
pub use revoke::{Revoked, Whose};
pub use runtime::Executor;
pub use rw_lock::{RwLock, RwLockState, Upgrade};
pub use semaphore::{MAX_PERMITS, PermitState, Semaphore, SemaphoreState};
pub use stats::Stats;

// Implementations of `Executor` and `Connection` need these.
#[doc(no_inline)]
pub use async_trait::async_trait;
#[doc(no_inline)]
pub use futures::{future::BoxFuture, stream::BoxStream};
