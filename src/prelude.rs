//! What most programs name, for `use bowline::prelude::*`.
//!
//! `use bowline::*` would import the modules `bowline::tokio`, `bowline::smol` and `bowline::async_std` too, whose
//! names are those of the runtimes' crates: `#[tokio::main]` is ambiguous then. The prelude has none of them:
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
//! It has no `Result` either, which would hide the one of the standard library.

pub use crate::{
    Client, Config, CountDownLatch, Error, ErrorKind, Holder, Lock, LockGuard, Loss, Permit, ReadGuard, RwLock,
    Semaphore, Token, WriteGuard,
};
