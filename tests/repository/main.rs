//! What holds of the repository as a whole, without a server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods, missing_docs)]

mod auto_traits;
mod imports;
mod layering;
mod pages;
