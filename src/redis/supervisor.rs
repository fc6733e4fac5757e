//! The task that keeps the connection for commands up.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::channel::oneshot;
use futures::future::{Either, select};

use super::failure::Failure;
use super::handshake::{self, Fresh, Purpose};
use super::link::{RECONNECT, Shared};
use crate::backoff::Backoff;
use crate::connection::Warning;

/// Closes the connection when the supervisor's task is dropped, which is what a runtime does when it shuts down.
struct CloseOnDrop(Arc<Shared>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Keeps the connection up until it is closed. The outcome of the first attempt goes to `first`; if it failed, that
/// is the end.
pub(super) async fn supervise(shared: Arc<Shared>, first: oneshot::Sender<Result<Vec<Warning>, Failure>>) {
    // Declared first, so that it is dropped last: by the time the driver goes and calls fail, the state says why.
    let mut work = pin!(keep_up(&shared, first));
    let _close = CloseOnDrop(Arc::clone(&shared));
    select(work.as_mut(), pin!(shared.closed())).await;
}

async fn keep_up(shared: &Shared, first: oneshot::Sender<Result<Vec<Warning>, Failure>>) {
    let mut backoff = Backoff::new(RECONNECT, shared.seed);
    let mut generation = 1;
    let mut limit = shared.timeout;
    let (mut target, mut driver) = match open(shared, true, &mut limit).await {
        Ok((fresh, warnings)) => {
            shared.take_up(fresh.connection, generation);
            if first.send(Ok(warnings)).is_err() {
                return;
            }
            (fresh.target, fresh.driver)
        }
        Err(failure) => {
            let _ = first.send(Err(failure));
            return;
        }
    };
    loop {
        let since = shared.executor.now();
        let gone = pin!(shared.gone(generation));
        let ended = select(&mut driver, gone);
        match select(ended, shared.locate.left(&target)).await {
            Either::Left(_) => shared.suspect(generation, Failure::Io("the connection was lost".to_owned())),
            Either::Right(_) => shared.disown(generation),
        }
        drop(driver);
        backoff.lasted(shared.executor.now().saturating_duration_since(since));
        generation += 1;
        (target, driver) = loop {
            shared.executor.sleep(backoff.pause()).await;
            match open(shared, false, &mut limit).await {
                Ok((fresh, _)) => {
                    shared.reconnected("commands");
                    shared.take_up(fresh.connection, generation);
                    break (fresh.target, fresh.driver);
                }
                Err(failure) => shared.failed(failure),
            }
        };
    }
}

async fn open(shared: &Shared, first: bool, limit: &mut Duration) -> Result<(Fresh, Vec<Warning>), Failure> {
    let progress = Arc::default();
    let attempt = async {
        let mut fresh = shared.dial(None, &progress).await?;
        let sent = shared.executor.now();
        let warnings = handshake::prepare(&mut fresh, Purpose::Server, first).await;
        let warnings = warnings.map_err(|failure| shared.locate.explain(&fresh.target, failure))?;
        shared.measured(shared.executor.now().saturating_duration_since(sent));
        Ok((fresh, warnings))
    };
    shared.attempt(limit, &progress, attempt).await
}
