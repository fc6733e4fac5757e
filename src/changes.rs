//! Streams of changes: what those of elections and of holds share.

use std::sync::Arc;

use futures::stream::{self, BoxStream, StreamExt};

use crate::error::{Error, Result};
use crate::runtime::Executor;
use crate::tuning::AGAIN;

/// Finds out what has changed.
pub(crate) trait Watcher: Send + 'static {
    type Change: Send + 'static;

    fn executor(&self) -> &Arc<dyn Executor>;

    /// The next change. A future that is dropped loses none.
    fn next(&mut self) -> impl Future<Output = Result<Self::Change>> + Send;
}

/// All changes. After an error that may pass, the stream goes on where it was, after a pause. It ends after any other
/// error.
pub(crate) fn stream_of<W: Watcher>(watcher: W) -> BoxStream<'static, Result<W::Change>> {
    let changes = stream::unfold(Some((watcher, false)), |watcher| async {
        let (mut watcher, has_failed) = watcher?;
        if has_failed {
            watcher.executor().sleep(AGAIN).await;
        }
        match watcher.next().await {
            Err(error) if !error.is_retryable() => Some((Err(error), None)),
            next => {
                let has_failed = next.is_err();
                Some((next, Some((watcher, has_failed))))
            }
        }
    });
    // A poll after the end returns `None` again.
    changes.fuse().boxed()
}

/// Ends after this error.
pub(crate) fn failed<T: Send + 'static>(error: Error) -> BoxStream<'static, Result<T>> {
    stream::iter([Err(error)]).boxed()
}
