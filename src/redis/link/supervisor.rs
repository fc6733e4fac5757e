//! The task that keeps the connection for commands up.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::channel::oneshot;

use super::beside::beside;
use super::super::failure::Failure;
use super::super::dial::handshake::{self, Driver, Fresh};
use super::{RECONNECT, Shared};
use super::super::dial::progress::Progress;
use super::super::url::target::Target;
use crate::backoff::Backoff;
use crate::connection::Warning;

/// Closes the connection when the supervisor's task is dropped. A runtime drops the task when it shuts down.
struct CloseOnDrop(Arc<Shared>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Keeps the connection up until it is closed. The result of the first attempt goes to `first`. If that attempt failed,
/// the task ends.
pub(in crate::redis) async fn supervise(shared: Arc<Shared>, first: oneshot::Sender<Result<Vec<Warning>, Failure>>) {
    until_closed(&shared, keep_up(&shared, first)).await;
}

/// Like [`supervise`], for a second connection to a server. After a failed first attempt, it tries again.
pub(in crate::redis) async fn supervise_sibling(shared: Arc<Shared>) {
    until_closed(&shared, async {
        let (mut backoff, mut limit) = (Backoff::new(RECONNECT, shared.seed), shared.upkeep);
        let fresh = reopen(&shared, &mut backoff, &mut limit).await;
        shared.take_up(fresh.connection, 1);
        keep(&shared, fresh.target, fresh.driver, backoff, limit).await;
    })
    .await;
}

async fn until_closed(shared: &Arc<Shared>, work: impl Future<Output = ()>) {
    // Declared first, and therefore dropped last: when the driver goes and calls fail, the state says why.
    let mut work = pin!(work);
    let _close = CloseOnDrop(Arc::clone(shared));
    beside(work.as_mut(), [shared.under_way.keep_time(&*shared.executor).boxed(), shared.closed().boxed()]).await;
}

async fn keep_up(shared: &Shared, first: oneshot::Sender<Result<Vec<Warning>, Failure>>) {
    let (mut backoff, mut limit) = (Backoff::new(RECONNECT, shared.seed), shared.timeout);
    match open_first(shared, &mut backoff, &mut limit).await {
        Ok((fresh, warnings)) => {
            shared.take_up(fresh.connection, 1);
            if first.send(Ok(warnings)).is_ok() {
                keep(shared, fresh.target, fresh.driver, backoff, limit).await;
            }
        }
        Err(failure) => {
            let _ = first.send(Err(failure));
        }
    }
}

/// Dials again each time the connection has ended.
async fn keep(shared: &Shared, mut target: Arc<Target>, mut driver: Driver, mut backoff: Backoff, mut limit: Duration) {
    let mut generation = 1;
    loop {
        let since = shared.executor.now();
        let gone = shared.gone(generation).map(|()| false);
        let left = shared.locate.left(&target).map(|()| true);
        let is_left = beside(&mut driver, [gone.boxed(), left.boxed()]).await.unwrap_or(false);
        if is_left {
            shared.disown(generation);
            shared.suspect(generation, Failure::Io("another server is the primary now".to_owned()));
        } else {
            shared.suspect(generation, Failure::Io("the connection was lost".to_owned()));
        }
        drop(driver);
        backoff.lasted(shared.executor.now().saturating_duration_since(since));
        generation += 1;
        shared.pause(backoff.pause()).await;
        let fresh = reopen(shared, &mut backoff, &mut limit).await;
        shared.reconnected("commands");
        shared.take_up(fresh.connection, generation);
        (target, driver) = (fresh.target, fresh.driver);
    }
}

/// Tries until an attempt succeeds.
async fn reopen(shared: &Shared, backoff: &mut Backoff, limit: &mut Duration) -> Fresh {
    loop {
        match open(shared, false, limit, &Arc::default()).await {
            Ok((fresh, _)) => return fresh,
            Err(failure) => shared.failed(failure),
        }
        shared.pause(backoff.pause()).await;
    }
}

/// Makes the only attempt. It is repeated only if the server has failed and another one may soon replace it, because
/// sentinels name a dead master until they have chosen the next one.
async fn open_first(
    shared: &Shared,
    backoff: &mut Backoff,
    limit: &mut Duration,
) -> Result<(Fresh, Vec<Warning>), Failure> {
    let started = shared.executor.now();
    let left = || shared.timeout.saturating_sub(shared.executor.now().saturating_duration_since(started));
    let mut before = None;
    loop {
        let progress = Arc::default();
        let opened = open(shared, true, limit, &progress).await;
        let failure = match opened {
            Ok(opened) => return Ok(opened),
            Err(failure) => failure,
        };
        if left().is_zero() {
            // The failure of an attempt that was cut off says less than the one before it.
            return Err(before.unwrap_or(failure));
        }
        let pause = backoff.pause();
        if left() <= pause || !(shared.locate.moves() && progress.has_located() && failure.may_pass()) {
            return Err(failure);
        }
        before = Some(failure);
        shared.pause(pause).await;
        // The pause may have ended early.
        *limit = left();
    }
}

async fn open(
    shared: &Shared,
    first: bool,
    limit: &mut Duration,
    progress: &Arc<Progress>,
) -> Result<(Fresh, Vec<Warning>), Failure> {
    let allowed = *limit;
    let attempt = async {
        let mut fresh = shared.dial(None, first.then_some(allowed), progress).await?;
        let sent = shared.executor.now();
        let warnings = handshake::prepare(&mut fresh, first).await;
        let warnings = warnings.map_err(|failure| shared.locate.explain(&fresh.target, failure))?;
        shared.measured(shared.executor.now().saturating_duration_since(sent));
        Ok((fresh, warnings))
    };
    shared.attempt(limit, progress, attempt).await
}

#[cfg(test)]
mod tests;
