// The README's example is on tokio.
#![cfg_attr(feature = "tokio", doc = include_str!("../README.md"))]
#![cfg_attr(not(feature = "tokio"), doc = "Distributed locks on Redis: leased, renewed, handed over, fenced.")]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "async-std")]
pub mod async_std;
pub mod blocking;
#[cfg(feature = "embedded")]
pub mod embedded;
#[cfg(feature = "smol")]
pub mod smol;
#[cfg(feature = "tokio")]
pub mod tokio;

#[cfg(all(any(doc, doctest), feature = "tokio", feature = "embedded"))]
#[doc = include_str!("../docs/guide.md")]
pub mod guide {}

mod acquire;
mod check;
mod client;
mod config;
#[cfg(feature = "_redis")]
mod connect;
mod connection;
mod context;
mod error;
mod executor;
mod extend;
mod guard;
mod holder;
mod inbox;
mod jitter;
mod key;
mod latch;
mod lease;
mod ledger;
mod line;
mod lock;
mod mutant;
mod options;
mod owned;
mod primitive;
mod reentry;
mod run;
mod rw_lock;
mod scripts;
mod semaphore;
mod server_clock;
mod stats;
mod sync;
mod ticket;
mod token;
mod trace;
mod watchdog;

pub use client::Client;
pub use config::{Config, ConfigBuilder, MAX_LEASE, MIN_LEASE};
#[cfg(feature = "_redis")]
pub use connection::redis::RedisConnection;
pub use connection::{Arg, Call, Connection, ConnectionError, Notice, Reply, Topology, Warning};
pub use error::{Error, ErrorKind, Result};
pub use executor::Executor;
pub use guard::{Held, LockGuard, LossSignal, Permit, ReadGuard, Reentrant, WriteGuard};
pub use holder::Holder;
pub use latch::{CountDownLatch, LatchState, MAX_COUNT, MAX_LATCH_TTL, Wait};
pub use lease::Loss;
pub use lock::{HolderState, Lock, LockState};
#[cfg(feature = "_mutants")]
#[doc(hidden)]
pub use mutant::{Mutant, Switch};
pub use options::{Acquire, TryAcquire};
pub use rw_lock::{RwLock, RwLockState, Upgrade};
pub use scripts::Script;
pub use semaphore::{MAX_PERMITS, PermitState, Semaphore, SemaphoreState};
pub use stats::Stats;
pub use token::Token;
