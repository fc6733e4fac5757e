//! Subscriptions to shard channels: each at the master that serves the slot of its channel.
//!
//! | file | what it does |
//! |---|---|
//! | `table` | pure: which channels are wanted, where each one is subscribed, and which subscriptions get its messages |
//! | `places` | pure: at which masters the channels are wanted |
//! | `channels` | shares the table |
//! | `node` | keeps the channels of one master's slots subscribed there |
//! | `socket` | one socket, with what is subscribed over it |
//! | `news` | what subscriptions are told, after the table is unlocked |
//! | `subscriber` | one subscription |
//!
//! One task of the client keeps all of them. It compares the channels that are wanted at a master, by the map of slots,
//! with those that are subscribed there. So a new subscription, a dropped one, another owner of a slot and a lost
//! socket are handled alike. A change concerns only some channels, and only their masters are woken.

use std::future::pending;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::channel::mpsc::{self, UnboundedReceiver};
use futures::channel::oneshot;
use futures::future::{BoxFuture, Either, select};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, Stream, StreamExt};
use rustc_hash::FxHashSet;

use super::host::Host;
use super::router::Router;
use crate::connection::{ConnectionError, Notice};
use crate::mutant::{self, Mutant};
use crate::on_drop::OnDrop;

pub(super) use self::channels::Channels;

mod channels;
mod news;
mod node;
mod places;
mod socket;
mod subscriber;
mod table;

/// The receiving end. Dropping it ends the subscription.
struct ChannelStream {
    notices: UnboundedReceiver<Notice>,
    _wanted: Wanted,
}

/// While it exists, the subscription is wanted.
struct Wanted {
    channels: Arc<Channels>,
    channel: Arc<str>,
    id: u64,
}

impl Drop for Wanted {
    fn drop(&mut self) {
        self.channels.look(|table| table.remove(&self.channel, self.id));
    }
}

impl Stream for ChannelStream {
    type Item = Notice;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Notice>> {
        Pin::new(&mut self.notices).poll_next(cx)
    }
}

/// Returns when the subscription is confirmed. Connection errors are retried until the deadline, a refusal is not.
pub(super) async fn subscribe(
    router: &Router,
    channels: &Arc<Channels>,
    channel: &str,
) -> Result<impl Stream<Item = Notice> + Send + 'static, ConnectionError> {
    let (sender, notices) = mpsc::unbounded();
    let (confirm, confirmed) = oneshot::channel();
    let channel: Arc<str> = channel.into();
    let id = channels.look(|table| table.add(&channel, sender, confirm)).ok_or(ConnectionError::Closed)?;
    // From here on, dropping this future ends the subscription.
    let wanted = Wanted { channels: Arc::clone(channels), channel, id };
    let limit = router.config.command_timeout;
    if mutant::on(Mutant::InboxOpenTooSoon) {
        return Ok(ChannelStream { notices, _wanted: wanted });
    }
    match router.within(limit, confirmed).await {
        Some(Ok(Ok(()))) => Ok(ChannelStream { notices, _wanted: wanted }),
        Some(Ok(Err(failure))) => Err(failure.into()),
        Some(Err(oneshot::Canceled)) => Err(ConnectionError::Closed),
        None if router.is_closed() => Err(ConnectionError::Closed),
        None => Err(match channels.look(|table| table.trouble(&wanted.channel)) {
            Some(failure) => failure.into(),
            None => ConnectionError::Unreachable(format!("no confirmation within {limit:?}")),
        }),
    }
}

/// Spawns the task that keeps the subscriptions.
pub(super) fn start(router: &Arc<Router>, channels: &Arc<Channels>) {
    // Created before the task runs, because the runtime may drop the task before its first poll.
    let close = OnDrop(Arc::clone(channels), |channels| channels.look(table::Table::close));
    let router = Arc::clone(router);
    Arc::clone(&router.executor).spawn(Box::pin(async move {
        let work = pin!(keep_all(&router, &close.0));
        select(work, pin!(router.closed())).await;
    }));
}

/// Keeps the channels subscribed at every master that serves some of them.
async fn keep_all(router: &Router, channels: &Channels) {
    let mut nodes = FuturesUnordered::<BoxFuture<'_, Host>>::new();
    let mut kept = FxHashSet::default();
    loop {
        let (new, map_changed) = (channels.new.listen(), router.signals.changed.listen());
        let map = router.map();
        let owners: Vec<Host> = channels.look(|table| {
            table.places.follow(&map);
            table.places.owners().cloned().collect()
        });
        for host in owners {
            if kept.insert(host.clone()) {
                nodes.push(async move { node::keep(router, channels, &host).map(|()| host.clone()).await }.boxed());
            }
        }
        let ended = pin!(async {
            match nodes.next().await {
                Some(host) => host,
                None => pending().await,
            }
        });
        if let Either::Left((host, _)) = select(ended, select(new, map_changed)).await {
            kept.remove(&host);
        }
    }
}
