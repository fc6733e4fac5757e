//! The tasks that drive the engine, and what they share with requests: pauses, and an estimate of the server's clock.

pub(crate) mod channels;
pub(crate) mod inbox;
pub(crate) mod label;
pub(crate) mod retry;
pub(crate) mod server_clock;
pub(crate) mod watchdog;
