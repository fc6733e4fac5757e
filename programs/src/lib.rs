//! What the programs in `examples` need around them: an HTTP client of a few lines, and a PostgreSQL server.
#![allow(clippy::disallowed_methods, reason = "an application uses its runtime directly")]

pub mod http;
pub mod postgres;
pub mod redis;
