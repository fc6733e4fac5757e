//! Checks of the contracts of [`Connection`](crate::Connection) and [`Executor`](crate::Executor), for the tests of
//! those who implement one (feature `testing`).
//!
//! [`check_connection`] and [`check_executor`] run an implementation against each clause of its contract. Their
//! [`Report`] names each [`Clause`] that failed, with what was seen, and each that was not checked, with the reason.
//! bowline's own adapters pass the same checks.
//!
//! A connection is checked on a real server, because what a contract says about lost answers needs real sockets. A
//! [`Relay`] in front of the server cuts these sockets and loses answers. Without one, or something else that
//! [disturbs](Disturb) the connection, the clauses about these faults are not checked.
//!
//! # Examples
//!
//! The test of an adapter, whose connections go through a relay. Here, the adapter is bowline's own.
//!
//! ```no_run
//! # #[cfg(feature = "tokio")]
//! use std::sync::Arc;
//!
//! # #[cfg(feature = "tokio")]
//! use bowline::testing::{Clause, Relay, check_connection, check_executor};
//! # #[cfg(feature = "tokio")]
//! use bowline::{Config, tokio::Tokio};
//!
//! # #[cfg(feature = "tokio")]
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let executor = Arc::new(Tokio::current()?);
//!     check_executor(executor.clone()).await?;
//!
//!     let relay = Relay::start("127.0.0.1:6379")?;
//!     let url = format!("redis://{}/", relay.address());
//!     let config = Config::default();
//!     let connect = || bowline::tokio::open(executor.clone(), url.as_str(), &config);
//!     let report = check_connection(executor.clone(), connect).disturb(&relay).await?;
//!
//!     assert!(report.kept().any(|clause| clause == Clause::AtMostOnce));
//!     println!("{report}");
//!     Ok(())
//! }
//! # #[cfg(not(feature = "tokio"))]
//! # fn main() {}
//! ```
//!
//! A report with a failure reads:
//!
//! ```text
//! contract of bowline::Connection: 23 clauses kept, 1 failed, 1 not checked
//!   failed: AtMostOnce: A call is executed at most once, also if its answer is lost.
//!     seen: a call was executed 2 times and returned Ok(Integer(2))
//!   not checked: WithoutRuntime: The connection without a runtime reaches the same server.
//!     because the connection has none, or could not connect within 5 s
//! ```
//!
//! # What is not checked
//! What follows from no fault that a relay can make: a failover, a server that is a replica now, a refused
//! subscription, the number of acknowledgements of replicas. A clause that was kept was not broken in this run; a race
//! that shows once in a thousand runs may need a thousand.

mod clause;
mod connection;
mod disturb;
mod executor;
mod relay;
mod report;
mod scripts;

pub use self::clause::Clause;
pub use self::connection::{CheckConnection, check_connection};
pub use self::disturb::Disturb;
pub use self::executor::{CheckExecutor, check_executor, check_shut_down};
pub use self::relay::Relay;
pub use self::report::Report;
