//! A server inside this process, for tests and for programs that share locks with no other process. It runs the same
//! scripts, without a network and without Redis.
//!
//! ```
//! # #[cfg(feature = "tokio")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> bowline::Result<()> {
//! use std::time::Duration;
//!
//! use bowline::{embedded::Server, tokio::Tokio};
//!
//! let server = Server::new();
//! let client = server.client(Tokio::current()?).await?;
//!
//! let guard = client.lock("orders:42").lock().expires_after(Duration::from_secs(10)).await?;
//! // The holder is paused for longer than its lease: another acquisition is granted.
//! server.advance(Duration::from_secs(11));
//! assert!(client.lock("orders:42").try_lock().await?.is_some());
//! # drop(guard);
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "tokio"))]
//! # fn main() {}
//! ```

mod answer;
mod channels;
mod clock;
mod commands;
mod connection;
mod convert;
mod identity;
mod interpreter;
mod keyspace;
mod number;
mod server;
mod shared;
mod values;
mod watches;

pub use connection::EmbeddedConnection;
pub use keyspace::{Content, Entry};
pub use server::Server;

#[cfg(test)]
mod tests;
