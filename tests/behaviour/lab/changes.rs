//! Streams of changes.

use bowline::{Result, blocking};
use futures::{Stream, StreamExt};

use super::Either;
use super::thread::on_a_thread;

/// A stream, or an iterator that blocks.
#[derive(Debug)]
pub(crate) struct Changes<S>(Option<Either<S, blocking::Changes<S>>>);

impl<S> Changes<S> {
    pub(super) fn of(changes: Either<S, blocking::Changes<S>>) -> Self {
        Self(Some(changes))
    }
}

impl<T: Send + 'static, S: Stream<Item = Result<T>> + Send + Unpin + 'static> Changes<S> {
    /// The next change. `None` after the last one.
    pub(crate) async fn next(&mut self) -> Option<Result<T>> {
        let (changes, next) = match self.0.take().expect("an earlier call was dropped") {
            Either::Async(mut it) => {
                let next = it.next().await;
                (Either::Async(it), next)
            }
            Either::Blocking(mut it) => {
                on_a_thread(move || {
                    let next = it.next();
                    (Either::Blocking(it), next)
                })
                .await
            }
        };
        self.0 = Some(changes);
        next
    }
}
