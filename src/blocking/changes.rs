//! Streams of changes, as iterators.

use std::fmt;
use std::sync::Arc;

use futures::{Stream, StreamExt};

use super::thread::block;
use crate::{Executor, Result};

/// The changes of an election or of holds, for blocking code: see [`bowline::ElectionChanges`](crate::ElectionChanges)
/// and [`bowline::HoldChanges`](crate::HoldChanges). An endless iterator, which ends after an error that does not
/// [pass](crate::Error::is_retryable), such as [`Closed`](crate::ErrorKind::Closed) and [those of
/// blocking](crate::blocking). Each step blocks until there is a change.
#[must_use = "an iterator does nothing unless it is advanced"]
pub struct Changes<S> {
    inner: S,
    executor: Arc<dyn Executor>,
    has_ended: bool,
}

impl<S> Changes<S> {
    pub(super) fn new(inner: S, executor: &Arc<dyn Executor>) -> Self {
        Self { inner, executor: executor.clone(), has_ended: false }
    }
}

impl<T: Send, S: Stream<Item = Result<T>> + Send + Unpin> Iterator for Changes<S> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let changes = &mut self.inner;
        let next = block(&self.executor, "changes", Box::pin(async { changes.next().await.transpose() })).transpose();
        self.has_ended = next.as_ref().is_none_or(|next| next.as_ref().is_err_and(|error| !error.is_retryable()));
        next
    }
}

impl<S: fmt::Debug> fmt::Debug for Changes<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
