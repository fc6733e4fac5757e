// README.md and the guide end with the targets of their links, as a reader of the repository needs them. Markdown goes by the
// first definition of a target, so the ones here, which rustdoc needs, come before; the pictures among them are written by
// scripts/pictures. The guide is built with the embedded server.
#![cfg_attr(
    all(feature = "tokio", not(feature = "embedded")),
    doc = "[docs/guide.md]: https://docs.rs/bowline/latest/bowline/guide/index.html\n"
)]
#![cfg_attr(feature = "tokio", doc = include_str!("links/readme.md"))]
#![cfg_attr(feature = "tokio", doc = include_str!("links/pictures.md"))]
// The README's example is on tokio.
#![cfg_attr(feature = "tokio", doc = include_str!("../README.md"))]
#![cfg_attr(not(feature = "tokio"), doc = "Distributed locks on Redis: leased, renewed, handed over, fenced.")]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "async-std")]
pub mod async_std;
pub mod blocking;
#[cfg(feature = "embedded")]
pub mod embedded;
pub mod prelude;
#[cfg(feature = "smol")]
pub mod smol;
#[cfg(feature = "tokio")]
pub mod tokio;

#[cfg(all(any(doc, doctest), feature = "tokio", feature = "embedded"))]
#[doc = include_str!("links/guide.md")]
#[doc = include_str!("links/pictures.md")]
#[doc = include_str!("../docs/guide.md")]
pub mod guide {}

mod acquire;
mod backoff;
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
pub use latch::{CountDownLatch, LatchState, LatchWait, MAX_LATCH_COUNT, MAX_LATCH_TTL};
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

// What the methods of `Executor` and `Connection` are written with.
#[doc(no_inline)]
pub use async_trait::async_trait;
#[doc(no_inline)]
pub use futures::{future::BoxFuture, stream::BoxStream};
