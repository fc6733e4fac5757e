//! Why the engine refuses to start anything.

/// The client was closed.
#[derive(Debug)]
pub(crate) struct Closed;

/// Why an acquisition cannot join its cohort.
pub(crate) enum CannotJoin {
    Closed,
    Full,
}
