//! The inboxes of slots: each is subscribed at the master that serves its slot, and goes with the slot.
//!
//! The adapter has one socket for all inboxes at a master. Here each inbox has a socket of its own.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bowline::{ConnectionError, Notice};
use futures::channel::mpsc::{self, UnboundedReceiver, UnboundedSender};
use futures::channel::oneshot;
use futures::future::{Either, select};
use futures::stream::{BoxStream, Stream};
use futures::{FutureExt, StreamExt};

use super::Cluster;
use super::feed::HEARTBEAT;
use crate::executor::WORLD;
use crate::network::{Backend, COMMAND_TIMEOUT, Link, carry};
use crate::nodes::Node;
use crate::world::MS;

/// The mistake of that name.
fn stays() -> bool {
    #[cfg(feature = "_mutants")]
    return super::is_on(bowline::Mutant::InboxLeftBehind);
    #[cfg(not(feature = "_mutants"))]
    false
}

/// The mistake of that name.
fn is_open_too_soon() -> bool {
    #[cfg(feature = "_mutants")]
    return super::is_on(bowline::Mutant::InboxOpenTooSoon);
    #[cfg(not(feature = "_mutants"))]
    false
}

/// The receiving end. Dropping it ends the subscription.
struct Subscription {
    notices: UnboundedReceiver<Notice>,
    cluster: Arc<Cluster>,
    link: Arc<Link>,
}

impl Stream for Subscription {
    type Item = Notice;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Notice>> {
        self.notices.poll_next_unpin(context)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.link.kill();
        self.cluster.change(|state| state.shards.retain(|link| !Arc::ptr_eq(link, &self.link)));
    }
}

/// Returns once the subscription is confirmed.
pub(super) async fn subscribe(
    cluster: &Arc<Cluster>,
    slot: &'static str,
    channel: &str,
) -> Result<BoxStream<'static, Notice>, ConnectionError> {
    if cluster.look(|state| state.closed) {
        return Err(ConnectionError::Closed);
    }
    let (sender, notices) = mpsc::unbounded();
    let (confirm, confirmed) = oneshot::channel();
    let link = cluster.shard_link();
    let subscription = Subscription { notices, cluster: cluster.clone(), link: link.clone() };
    let shard = Shard { cluster: cluster.clone(), slot, channel: channel.to_owned(), sender, link };
    cluster.machine.process(WORLD).spawn(Box::pin(shard.run(confirm)));
    if is_open_too_soon() {
        return Ok(subscription.boxed());
    }
    match select(confirmed, cluster.executor.sleep(COMMAND_TIMEOUT)).await {
        Either::Left((Ok(()), _)) => Ok(subscription.boxed()),
        Either::Left((Err(oneshot::Canceled), _)) => Err(ConnectionError::Closed),
        Either::Right(_) => Err(ConnectionError::Unreachable("no confirmation".to_owned())),
    }
}

/// The inbox of one slot.
struct Shard {
    cluster: Arc<Cluster>,
    slot: &'static str,
    channel: String,
    sender: UnboundedSender<Notice>,
    link: Arc<Link>,
}

impl Shard {
    async fn run(self, confirm: oneshot::Sender<()>) {
        let world = self.cluster.machine.process(WORLD);
        let mut confirm = Some(confirm);
        while self.link.is_open() {
            if let Some((node, socket)) = self.open().await {
                match confirm.take() {
                    Some(confirm) => drop(confirm.send(())),
                    None => self.interrupted(),
                }
                self.stand(node, socket).await;
                self.interrupted();
                self.link.hang_up();
                self.cluster.suspect_map();
            }
            world.sleep(10 * MS).await;
        }
    }

    fn interrupted(&self) {
        // An error means that the subscription was dropped.
        let _ = self.sender.unbounded_send(Notice::Gap);
    }

    /// Asks the master of the slot, as far as the client knows it. `None`: it has not subscribed the channel, or the socket broke.
    async fn open(&self) -> Option<(Node, u64)> {
        let (cluster, world) = (&self.cluster, self.cluster.machine.process(WORLD));
        self.link.listens().await;
        let (socket, node) = (self.link.socket(), cluster.look(|state| state.map.owner(self.slot)));
        world.sleep(self.link.delay()).await;
        if self.link.socket() != socket {
            return None;
        }
        let (up, owner) = (cluster.server.nodes.is_up(node), cluster.server.nodes.map().owner(self.slot));
        if up && owner == node {
            let messages = cluster.server.listen(node, &self.channel);
            let carried = carry(self.link.clone(), socket, messages, self.sender.clone());
            world.spawn(Box::pin(carried));
        }
        world.sleep(self.link.delay()).await;
        if self.link.socket() != socket {
            return None;
        }
        match up {
            true if owner == node => return Some((node, socket)),
            true => cluster.moved(self.slot, owner),
            false => cluster.suspect_map(),
        }
        None
    }

    /// For as long as the socket is there, and the node serves the slot.
    async fn stand(&self, node: Node, socket: u64) {
        let (cluster, world) = (&self.cluster, self.cluster.machine.process(WORLD));
        let broken = self.link.broken(socket);
        if stays() {
            return broken.await;
        }
        let heartbeat = async {
            while cluster.server.nodes.is_up(node) {
                world.sleep(HEARTBEAT).await;
            }
        };
        // The server says so itself.
        let left = async {
            cluster.server.nodes.left(node, self.slot).await;
            world.sleep(self.link.delay()).await;
        };
        let elsewhere = cluster.until(|state| state.closed || state.map.owner(self.slot) != node);
        let told = select(left.boxed(), elsewhere.boxed());
        select(broken.boxed(), select(heartbeat.boxed(), told)).await;
    }
}
