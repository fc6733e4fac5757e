//! The task that keeps the connection for commands up.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::channel::oneshot;

use super::super::dial::handshake::{Checked, Driver, Fresh};
use super::super::dial::progress::DialProgress;
use super::super::dial::wishes::Wishes;
use super::super::failure::Failure;
use super::super::url::target::Target;
use super::Link;
use super::beside::beside;
use crate::backoff::Backoff;
use crate::connection::Warning;
use crate::observe;
use crate::on_drop::OnDrop;
use crate::tuning::RECONNECT;

/// Keeps the connection up until it is closed. The result of the first attempt goes to `first`. If that attempt failed,
/// the task ends.
pub(in crate::redis) async fn supervise(link: Arc<Link>, first: oneshot::Sender<Result<Vec<Warning>, Failure>>) {
    until_closed(close_on_drop(&link), keep_up(&link, first)).await;
}

/// What has become of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::redis) enum Change {
    /// It was lost, or an attempt to connect has failed.
    Down,
    /// It is back.
    Back,
}

/// Like [`supervise`], but tries again after a failed first attempt. `tell` is called after each change.
pub(in crate::redis) fn supervise_again(
    link: Arc<Link>,
    tell: impl Fn(Change) + Send + Sync,
) -> impl Future<Output = ()> + Send {
    // Created now, because the runtime may drop the task before its first poll.
    let close = close_on_drop(&link);
    async move {
        let work = async {
            let (mut backoff, mut limit) = (Backoff::new(RECONNECT, link.seed), link.upkeep);
            let fresh = reopen(&link, &mut backoff, &mut limit, &tell).await;
            link.take_up(Arc::clone(&fresh.target), fresh.connection, 1);
            keep(&link, fresh.target, (1, fresh.driver), backoff, limit, &tell).await;
        };
        until_closed(close, work).await;
    }
}

fn close_on_drop(link: &Arc<Link>) -> OnDrop<Arc<Link>> {
    OnDrop(Arc::clone(link), |link| link.close())
}

async fn until_closed(close: OnDrop<Arc<Link>>, work: impl Future<Output = ()>) {
    let link = Arc::clone(&close.0);
    // Declared before the next one, and therefore dropped after it: the link is closed before its driver is dropped, so
    // the calls that fail then report that it is closed.
    let mut work = pin!(work);
    let _close = close;
    beside(work.as_mut(), [link.under_way.keep_time(&*link.executor).boxed(), link.closed().boxed()]).await;
}

async fn keep_up(link: &Arc<Link>, first: oneshot::Sender<Result<Vec<Warning>, Failure>>) {
    let (mut backoff, mut limit) = (Backoff::new(RECONNECT, link.seed), link.timeout);
    match open_first(link, &mut backoff, &mut limit).await {
        Ok(Checked { fresh, warnings, at_once, .. }) => {
            let generation = link.confirm(&fresh, at_once);
            if first.send(Ok(warnings)).is_ok() {
                keep(link, fresh.target, (generation, fresh.driver), backoff, limit, &|_| {}).await;
            }
        }
        Err(failure) => {
            let _ = first.send(Err(failure));
        }
    }
}

/// Dials again each time the connection has ended.
async fn keep(
    link: &Arc<Link>,
    mut target: Arc<Target>,
    (mut generation, mut driver): (u64, Driver),
    mut backoff: Backoff,
    mut limit: Duration,
    tell: &impl Fn(Change),
) {
    loop {
        let since = link.executor.now();
        let gone = link.gone(generation).map(|()| false);
        let named = link.locate.left(&target).map(|()| true);
        let is_left = beside(&mut driver, [gone.boxed(), named.boxed()]).await.unwrap_or(false);
        if is_left {
            link.disown(generation);
            link.suspect(generation, Failure::Left);
        } else {
            link.suspect(generation, Failure::Io("the connection was lost".to_owned()));
        }
        tell(Change::Down);
        drop(driver);
        backoff.lasted(link.executor.now().saturating_duration_since(since));
        generation += 1;
        link.pause(backoff.pause()).await;
        let fresh = reopen(link, &mut backoff, &mut limit, tell).await;
        link.reconnected(observe::COMMANDS);
        link.take_up(Arc::clone(&fresh.target), fresh.connection, generation);
        tell(Change::Back);
        (target, driver) = (fresh.target, fresh.driver);
    }
}

/// Tries until an attempt succeeds.
async fn reopen(link: &Arc<Link>, backoff: &mut Backoff, limit: &mut Duration, tell: &impl Fn(Change)) -> Fresh {
    loop {
        let failure = match open(link, false, limit, &Arc::default()).await {
            Ok(made) => return made.fresh,
            Err(failure) => failure,
        };
        let pause = failure.pause(backoff);
        link.failed(failure);
        tell(Change::Down);
        link.pause(pause).await;
    }
}

/// Connects for the first time, in one attempt. The attempt is repeated only if the server has failed and another one
/// may soon replace it: sentinels name a dead master until they have chosen the next one.
async fn open_first(link: &Arc<Link>, backoff: &mut Backoff, limit: &mut Duration) -> Result<Checked, Failure> {
    let started = link.executor.now();
    let left = || link.timeout.saturating_sub(link.executor.now().saturating_duration_since(started));
    let mut before = None;
    loop {
        let progress = Arc::default();
        let opened = open(link, true, limit, &progress).await;
        let failure = match opened {
            Ok(opened) => return Ok(opened),
            Err(failure) => failure,
        };
        if left().is_zero() {
            // The failure of an attempt that was cut off says less than the one before it.
            return Err(before.unwrap_or(failure));
        }
        let pause = failure.pause(backoff);
        if left() <= pause || !(link.locate.moves() && progress.has_located() && failure.may_pass()) {
            return Err(failure);
        }
        before = Some(failure);
        link.pause(pause).await;
        // The pause may have ended early.
        *limit = left();
    }
}

async fn open(
    link: &Arc<Link>,
    first: bool,
    limit: &mut Duration,
    progress: &Arc<DialProgress>,
) -> Result<Checked, Failure> {
    let allowed = *limit;
    let attempt = async {
        let made = match first {
            true => link.dial_first(allowed, progress).await?,
            false => link.dial(Wishes::default(), progress).await?,
        };
        link.measured(made.round_trip);
        Ok(made)
    };
    link.attempt(limit, progress, attempt).await
}

#[cfg(test)]
mod tests;
