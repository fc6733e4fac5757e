//! The reasons why the engine does not start an attempt.

/// The client was closed.
#[derive(Debug)]
pub(crate) struct Closed;

/// Why an acquisition cannot join its cohort.
pub(crate) enum CannotJoin {
    Closed,
    Full,
}
