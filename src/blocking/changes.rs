//! Streams of changes, as iterators.

use std::fmt;
use std::sync::Arc;

use futures::{Stream, StreamExt};

use super::thread::block;
use crate::{Executor, Result};

/// The changes of an election or of holds, for blocking code: see [`bowline::ElectionChanges`](crate::ElectionChanges)
/// and [`bowline::HoldChanges`](crate::HoldChanges). An endless iterator, which ends after
/// [`Closed`](crate::ErrorKind::Closed). Each step blocks until there is a change.
#[must_use = "an iterator does nothing unless it is advanced"]
pub struct Changes<S> {
    inner: S,
    executor: Arc<dyn Executor>,
}

impl<S> Changes<S> {
    pub(super) fn new(inner: S, executor: &Arc<dyn Executor>) -> Self {
        Self { inner, executor: executor.clone() }
    }
}

impl<T: Send, S: Stream<Item = Result<T>> + Send + Unpin> Iterator for Changes<S> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Self::Item> {
        let changes = &mut self.inner;
        block(&self.executor, "changes", Box::pin(async { changes.next().await.transpose() })).transpose()
    }
}

impl<S: fmt::Debug> fmt::Debug for Changes<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
