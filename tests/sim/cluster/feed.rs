//! The one subscription of a client: a socket at any master that is on the bus of the cluster.

use std::sync::Arc;
use std::time::Duration;

use bowline::Notice;
use futures::channel::mpsc::UnboundedSender;
use futures::future::{Either, select};

use super::{Cluster, State};
use crate::executor::WORLD;
use crate::network::{Backend, carry};
use crate::nodes::Node;
use crate::world::MS;

/// How often the node is asked whether it is still a part of the cluster.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(2);

pub(super) struct Feed {
    cluster: Arc<Cluster>,
    channel: String,
    sender: UnboundedSender<Notice>,
    /// The number of the socket, where it leads, and the gaps that there had been when it was dialled.
    number: u64,
    node: Node,
    gaps: u64,
    /// Each attempt goes to the next master.
    next: usize,
}

/// The mistake of that name.
fn stays() -> bool {
    #[cfg(feature = "_mutants")]
    return super::is_on(bowline::Mutant::SubscriptionLeftBehind);
    #[cfg(not(feature = "_mutants"))]
    false
}

impl Feed {
    pub(super) fn new(cluster: &Arc<Cluster>, channel: &str, sender: UnboundedSender<Notice>) -> Self {
        let (cluster, channel) = (cluster.clone(), channel.to_owned());
        let next = cluster.process;
        let mut feed = Self { cluster, channel, sender, number: 0, node: 0, gaps: 0, next };
        feed.open();
        feed
    }

    /// A new socket, which is read from now on.
    fn open(&mut self) {
        let (map, gaps) = self.cluster.look(|state| (state.map.clone(), state.gaps));
        self.node = map.masters[self.next % map.masters.len()];
        (self.next, self.gaps) = (self.next + 1, gaps);
        self.number = self.cluster.inbox.socket();
        let messages = self.cluster.server.listen(self.node, &self.channel);
        let carried = carry(self.cluster.inbox.clone(), self.number, messages, self.sender.clone());
        self.cluster.machine.process(WORLD).spawn(Box::pin(carried));
    }

    pub(super) async fn run(mut self) {
        let cluster = self.cluster.clone();
        let world = cluster.machine.process(WORLD);
        loop {
            let node = self.node;
            cluster.change(|state| state.socket = Some(node));
            self.stand().await;
            cluster.change(|state| state.socket = None);
            if cluster.look(|state| state.closed) || self.sender.unbounded_send(Notice::Gap).is_err() {
                return;
            }
            cluster.inbox.hang_up();
            loop {
                world.sleep(10 * MS).await;
                cluster.inbox.listens().await;
                world.sleep(cluster.inbox.delay()).await;
                if cluster.look(|state| state.closed) {
                    return;
                }
                self.open();
                world.sleep(cluster.inbox.delay()).await;
                if cluster.server.nodes.is_up(self.node) {
                    break;
                }
                cluster.inbox.hang_up();
                cluster.suspect_map();
            }
            if self.sender.unbounded_send(Notice::Gap).is_err() {
                return;
            }
        }
    }

    /// For as long as the socket is there, and the node a master of the cluster.
    async fn stand(&mut self) {
        let (cluster, node, number) = (self.cluster.clone(), self.node, self.number);
        let world = cluster.machine.process(WORLD);
        let broken = Box::pin(cluster.inbox.broken(number));
        let heartbeat = Box::pin(async {
            loop {
                world.sleep(HEARTBEAT).await;
                if !cluster.server.nodes.is_up(node) && !stays() {
                    return;
                }
            }
        });
        let watched = Box::pin(async {
            let replaced = |state: &State| !state.map.masters.contains(&node) && !stays();
            loop {
                let gaps = self.gaps;
                cluster.until(|state| state.closed || state.gaps != gaps || replaced(state)).await;
                if cluster.look(|state| state.closed || replaced(state)) {
                    return;
                }
                self.gaps = cluster.look(|state| state.gaps);
                let _ = self.sender.unbounded_send(Notice::Gap);
            }
        });
        match select(broken, select(heartbeat, watched)).await {
            Either::Left(_) | Either::Right(_) => {}
        }
    }
}
