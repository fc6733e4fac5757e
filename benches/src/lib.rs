//! What the benches share: where they run, what they count, how they say it.
#![allow(clippy::disallowed_methods, reason = "what is measured here is real time")]

pub mod alloc;
pub mod args;
pub mod bare;
pub mod chart;
pub mod child;
pub mod clients;
pub mod far;
pub mod measure;
pub mod raw;
pub mod report;
pub mod runtime;
pub mod server;
pub mod watched;

/// Whatever went wrong, the bench ends with it.
pub type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;
