//! One period, as the server is told of it.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Period {
    /// When it begins, in milliseconds since 1970. 0: the server knows by the length.
    pub(super) first: u64,
    /// In milliseconds.
    pub(super) length: u64,
}
