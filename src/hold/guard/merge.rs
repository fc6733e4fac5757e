//! Permits that cannot be merged.

use std::error::Error as StdError;
use std::fmt;

use crate::error::{Error, ErrorKind};

/// Permits that were not [merged](crate::Permit::merge), because they are of another name or another client. `P` is
/// their guard.
#[must_use = "the permits are given back when the error is dropped"]
pub struct MergeError<P> {
    permit: P,
    error: Error,
}

impl<P> MergeError<P> {
    pub(super) fn new(permit: P, name: &str) -> Self {
        let reason = "permits are merged with those of the same name and the same client only";
        let error = Error::because(ErrorKind::InvalidInput, "merge", reason).with_name(name);
        Self { permit, error }
    }

    /// The guard that was not merged. It still holds its permits.
    pub fn into_permit(self) -> P {
        self.permit
    }

    /// Why the guard was not merged, with the name of its semaphore.
    pub fn error(&self) -> &Error {
        &self.error
    }

    /// The same error with another guard of the same permits.
    pub(crate) fn map<Q>(self, map: impl FnOnce(P) -> Q) -> MergeError<Q> {
        MergeError { permit: map(self.permit), error: self.error }
    }
}

/// Drops the guard, which gives its permits back.
impl<P> From<MergeError<P>> for Error {
    fn from(error: MergeError<P>) -> Self {
        error.error
    }
}

impl<P> fmt::Debug for MergeError<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MergeError").field("error", &self.error).finish_non_exhaustive()
    }
}

impl<P> fmt::Display for MergeError<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<P> StdError for MergeError<P> {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.error.source()
    }
}
