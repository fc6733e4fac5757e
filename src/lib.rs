// README.md and the guide end with the targets of their links, as a reader of the repository needs them. Markdown goes by the
// first definition of a target, so the ones here, which rustdoc needs, come before. The guide is built with the embedded server.
#![cfg_attr(
    all(feature = "tokio", not(feature = "embedded")),
    doc = "[docs/guide.md]: https://docs.rs/bowline/latest/bowline/guide/index.html\n"
)]
#![cfg_attr(feature = "tokio", doc = include_str!("links/readme.md"))]
// The README's example is on tokio.
#![cfg_attr(feature = "tokio", doc = include_str!("../README.md"))]
#![cfg_attr(not(feature = "tokio"), doc = "Distributed locks on Redis: leased, renewed, handed over, fenced.")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod blocking;
#[cfg(feature = "embedded")]
pub mod embedded;
pub mod prelude;

#[cfg(all(any(doc, doctest), feature = "tokio", feature = "embedded"))]
#[doc = include_str!("links/guide.md")]
#[doc = include_str!("../docs/guide.md")]
pub mod guide {}

mod acquire;
mod backoff;
mod client;
mod cohort;
mod config;
#[cfg(feature = "_redis")]
mod connect;
mod connection;
mod context;
mod driver;
mod engine;
mod error;
mod extend;
mod guard;
mod handle;
mod holder;
mod jitter;
mod latch;
mod lock;
mod mutant;
mod mutex;
mod owned;
mod preflight;
mod protocol;
#[cfg(feature = "_redis")]
mod redis;
mod reentry;
mod run;
mod runtime;
mod rw_lock;
mod semaphore;
mod stats;
mod trace;

#[cfg(feature = "async-std")]
pub use runtime::async_std;
#[cfg(feature = "smol")]
pub use runtime::smol;
#[cfg(feature = "tokio")]
pub use runtime::tokio;

pub use acquire::builder::{Acquire, TryAcquire};
pub use client::Client;
pub use config::{Config, ConfigBuilder, MAX_LEASE, MIN_LEASE};
pub use connection::{Arg, Call, Connection, ConnectionError, Notice, Reply, Topology, Warning};
pub use engine::lease::Loss;
pub use error::{Error, ErrorKind, Result};
pub use guard::{Held, LockGuard, LossSignal, Permit, ReadGuard, Reentrant, WriteGuard};
pub use holder::Holder;
pub use latch::{CountDownLatch, LatchState, LatchWait, MAX_LATCH_COUNT, MAX_LATCH_TTL};
pub use lock::{HolderState, Lock, LockState};
#[cfg(feature = "_mutants")]
#[doc(hidden)]
pub use mutant::{Mutant, Switch};
pub use protocol::Script;
pub use protocol::token::Token;
#[cfg(feature = "_wire")]
#[doc(hidden)]
pub use protocol::wire;
#[cfg(feature = "_redis")]
pub use redis::RedisConnection;
pub use runtime::Executor;
pub use rw_lock::{RwLock, RwLockState, Upgrade};
pub use semaphore::{MAX_PERMITS, PermitState, Semaphore, SemaphoreState};
pub use stats::Stats;

// What the methods of `Executor` and `Connection` are written with.
#[doc(no_inline)]
pub use async_trait::async_trait;
#[doc(no_inline)]
pub use futures::{future::BoxFuture, stream::BoxStream};
