//! What is done to the sockets of a process.

use std::sync::Arc;
use std::time::Duration;

use super::socket::Socket;
use super::{Blocked, Cluster, State};
use crate::executor::WORLD;
use crate::nodes::Node;

impl Cluster {
    /// Does something to the sockets that carry commands to the node.
    fn to_each(&self, node: Node, fault: impl Fn(&Socket)) {
        self.sockets(|socket| socket.node == node && !socket.is_subscribed()).iter().for_each(|socket| fault(socket));
        self.disturbed();
    }

    /// Nothing reaches the node, for so long.
    fn block(self: &Arc<Self>, node: Node, outage: Duration, refuses: bool) {
        let until = self.machine.now() + outage;
        self.change(|state| state.blocked.insert(node, Blocked { until, refuses }));
        self.disturbed();
        self.disturbed_after(outage, |_| ());
    }

    fn disturbed_after(self: &Arc<Self>, duration: Duration, change: impl FnOnce(&mut State) + Send + 'static) {
        let (cluster, sleep) = (self.clone(), self.machine.process(WORLD).sleep(duration));
        self.machine.process(WORLD).spawn(Box::pin(async move {
            sleep.await;
            cluster.change(change);
            cluster.disturbed();
        }));
    }

    /// The sockets that carry commands to the node break. For as long as `outage`, dials get no answer, or are refused.
    pub fn cut(self: &Arc<Self>, node: Node, outage: Duration, refuses: bool) {
        self.block(node, outage, refuses);
        self.to_each(node, Socket::break_off);
    }

    /// The same of one of the sockets that carry messages.
    pub fn cut_messages(self: &Arc<Self>, draw: u64, outage: Duration) {
        if let Some(socket) = self.one_of(draw, Socket::is_subscribed) {
            self.block(socket.node, outage, draw.is_multiple_of(2));
            socket.break_off();
            self.disturbed();
        }
    }

    /// One of the sockets that carry messages takes that much longer, for a while.
    pub fn lag_messages(self: &Arc<Self>, draw: u64, lag: Duration, duration: Duration) {
        let Some(socket) = self.one_of(draw, Socket::is_subscribed) else { return };
        socket.lag(lag);
        self.disturbed();
        let (cluster, sleep) = (self.clone(), self.machine.process(WORLD).sleep(duration));
        self.machine.process(WORLD).spawn(Box::pin(async move {
            sleep.await;
            socket.lag(Duration::ZERO);
            // What was sent before is still late.
            cluster.churned(lag);
            cluster.disturbed();
        }));
    }

    /// Half open: calls reach the node on the sockets that there are, and no answer comes back.
    pub fn silence(self: &Arc<Self>, node: Node) {
        self.to_each(node, Socket::silence);
    }

    /// Half open both ways: nothing gets through to the node or back, and neither side is told until the end, when all
    /// sockets break.
    pub fn mute(self: &Arc<Self>, node: Node, duration: Duration) {
        self.block(node, duration, false);
        let sockets = self.sockets(|socket| socket.node == node);
        sockets.iter().for_each(|socket| socket.mute());
        self.disturbed_after(duration, move |_| sockets.iter().for_each(|socket| socket.break_off()));
    }

    /// From now on, everything on its way takes that much longer.
    pub fn slow_down(&self, by: Duration) {
        self.change(|state| state.slow = by);
        self.disturbed();
    }

    fn one_of(&self, draw: u64, which: impl Fn(&Socket) -> bool) -> Option<Arc<Socket>> {
        let sockets = self.sockets(which);
        sockets.get(draw as usize % sockets.len().max(1)).cloned()
    }

    /// The nodes to which the process has sockets.
    pub fn reached(&self) -> Vec<Node> {
        self.look(|state| state.sockets.values().map(|socket| socket.node).collect())
    }
}
