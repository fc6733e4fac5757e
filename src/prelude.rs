//! The types that most programs name, for `use bowline::prelude::*`.
//!
//! Prefer it to `use bowline::*`, which also imports the modules `bowline::tokio`, `bowline::smol` and
//! `bowline::async_std`. They have the names of the runtimes' crates and make `#[tokio::main]` ambiguous. The prelude
//! leaves them out:
//!
//! ```
//! # #[cfg(feature = "tokio")]
//! use bowline::prelude::*;
//!
//! # #[cfg(feature = "tokio")]
//! #[tokio::main]
//! async fn main() -> Result<(), Error> {
//!     # let connect = bowline::embedded::Server::new().client(bowline::tokio::Tokio::current()?);
//!     # #[cfg(any())]
//!     let connect = bowline::tokio::connect("redis://127.0.0.1/");
//!     let client: Client = connect.await?;
//!     let guard: LockGuard = client.lock("orders:42").lock().await?;
//!     guard.release().await
//! }
//! # #[cfg(not(feature = "tokio"))]
//! # fn main() {}
//! ```
//!
//! It also leaves out `Result`, which would hide that of the standard library.

pub use crate::{
    Client, Config, CountDownLatch, Error, ErrorKind, Holder, Lock, LockGuard, Loss, MultiGuard, MultiLock, Permit,
    ReadGuard, RedLock, RwLock, Semaphore, Token, UpgradableGuard, WriteGuard,
};
