//! The tasks that drive the engine: renewals and heartbeats, and what the inbox brings.

pub(crate) mod inbox;
pub(crate) mod retry;
pub(crate) mod server_clock;
pub(crate) mod watchdog;
