//! What holds of the repository and the public API as a whole, without a server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests panic, and have clocks and threads of their own"
)]

#[cfg(unix)]
mod again;
mod auto_traits;
mod files;
mod imports;
mod layering;
mod manifest;
mod pages;
#[cfg(all(feature = "tokio", feature = "smol", feature = "async-std"))]
mod prelude;
