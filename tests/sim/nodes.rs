//! The servers behind one address, or those of a cluster: masters, and the replicas that are behind them.
//!
//! What a script writes arrives at each replica later, and so does every message that it publishes, whether it had a
//! subscriber at the master or not; as with Redis, which replicates both. A failover makes a replica the master. The
//! old master follows it, or goes on for a while and knows nothing of it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bowline::ConnectionError;
use bowline::embedded::{EmbeddedConnection, Server};
use event_listener::Event;
use futures::future::{Either, select};

use crate::executor::{Machine, WORLD};
use crate::judge::view::Dump;
use place::{Messages, Place};

mod clocks;
mod failover;
mod inbox;
mod place;
mod slots;
mod views;

use clocks::Clocks;
pub use failover::{Failover, Fork};
pub use inbox::{reader, slot_of};
pub use place::{LOCAL_KEYS, SHARDED, SPY, dump};
use slots::Slots;
pub use slots::slot;
pub use views::{SLOTS, View};

/// One of the servers. The first is a master until a failover.
pub type Node = usize;

/// How long a message is under way from one server of a cluster to another.
pub const BUS: Duration = Duration::from_micros(200);

pub struct Nodes {
    machine: Arc<Machine>,
    state: Mutex<State>,
    /// Something has arrived at a replica, or a name has another master.
    arrived: Event,
}

struct State {
    places: Vec<Place>,
    shards: Vec<Shard>,
    /// Masters that were replaced and do not know it.
    astray: Vec<Astray>,
    /// Nodes that stand still, and until when.
    frozen: BTreeMap<Node, Duration>,
    /// `None`: no cluster, but one master behind one address.
    slots: Option<Slots>,
    /// When something was last done to the masters and the slots.
    altered: Duration,
    /// `None`: all show the same.
    clocks: Option<Clocks>,
}

/// A master that was replaced and does not know it.
struct Astray {
    node: Node,
    shard: usize,
    /// How far behind it will be.
    lag: Duration,
    since: Duration,
}

/// A master, and those that follow it.
struct Shard {
    master: Node,
    followers: Vec<Follower>,
    /// The epoch in which the master got what it serves.
    epoch: u64,
}

struct Follower {
    node: Node,
    /// How late what the master does arrives.
    lag: Duration,
    /// Nothing arrives before that.
    stalled: Duration,
    on_the_way: VecDeque<Record>,
}

/// What a script has left, and the messages that it has published.
#[derive(Clone)]
struct Record {
    due: Duration,
    number: u64,
    dump: Arc<Dump>,
    messages: Arc<Messages>,
}

impl State {
    fn shard_of(&mut self, master: Node) -> Option<&mut Shard> {
        self.shards.iter_mut().find(|shard| shard.master == master)
    }

    /// A replica executes what has arrived.
    fn arrive(&mut self, node: Node, record: &Record) {
        let place = &mut self.places[node];
        place.follow(&record.dump);
        place.repeat(&record.messages);
        place.written = record.number;
    }
}

impl Nodes {
    pub fn new(machine: &Arc<Machine>) -> Self {
        let place = Place::new(machine, clocks::START, 0);
        let shards = vec![Shard { master: 0, followers: Vec::new(), epoch: 1 }];
        let (astray, frozen, altered) = (Vec::new(), BTreeMap::new(), Duration::ZERO);
        let state = State { places: vec![place], shards, astray, frozen, slots: None, altered, clocks: None };
        Self { machine: machine.clone(), state: Mutex::new(state), arrived: Event::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Where the address leads.
    pub fn primary(&self) -> Node {
        self.lock().shards[0].master
    }

    /// Whether another server must hear of what is written and published.
    pub fn is_spied(&self) -> bool {
        let state = self.lock();
        state.slots.is_some() || state.shards.iter().any(|shard| !shard.followers.is_empty())
    }

    /// The primary.
    pub fn server(&self) -> Server {
        let state = self.lock();
        state.places[state.shards[0].master].server.clone()
    }

    pub fn at(&self, node: Node) -> (Server, Arc<EmbeddedConnection>) {
        let place = &self.lock().places[node];
        (place.server.clone(), place.connection.clone())
    }

    /// From now on every master has one more replica, which is as far behind.
    pub fn replicate(&self, lag: Duration) {
        let shards = self.lock().shards.len();
        (0..shards).for_each(|at| self.replicate_one(at, lag));
    }

    fn replicate_one(&self, at: usize, lag: Duration) {
        let mut state = self.lock();
        let primary = state.shards[at].master;
        let server = state.places[primary].server.clone();
        let mut replica = state.place(&self.machine);
        replica.follow(&dump(&server));
        replica.written = state.places[primary].written;
        state.places.push(replica);
        let node = state.places.len() - 1;
        state.shards[at].followers.push(Follower { node, lag, stalled: Duration::ZERO, on_the_way: VecDeque::new() });
        state.nothing_is_new();
    }

    /// For a while, nothing arrives at one of the replicas; says which.
    pub fn stall(self: &Arc<Self>, draw: u64, duration: Duration) -> Option<Node> {
        let now = self.machine.now();
        let mut state = self.lock();
        let mut followers: Vec<_> = state.shards.iter_mut().flat_map(|shard| &mut shard.followers).collect();
        let count = followers.len().max(1) as u64;
        let follower = followers.get_mut((draw % count) as usize)?;
        follower.stalled = now + duration;
        for record in &mut follower.on_the_way {
            record.due = record.due.max(now + duration);
        }
        let node = follower.node;
        drop(followers);
        drop(state);
        self.deliver_after(duration);
        Some(node)
    }

    /// The server has executed something, and `wrote`, as far as the caller can see.
    pub fn changed(self: &Arc<Self>, node: Node, wrote: bool) {
        let mut state = self.lock();
        let (messages, marked) = state.places[node].news();
        if !wrote && !marked && messages.is_empty() {
            return;
        }
        let messages = if state.slots.is_some() {
            // Over the bus of the cluster, unless the node is cut off from it.
            if !state.astray.iter().any(|astray| astray.node == node) {
                self.broadcast(node, messages);
            }
            Vec::new()
        } else {
            messages
        };
        let place = &mut state.places[node];
        place.written += u64::from(wrote || marked);
        let (number, dump) = (place.written, Arc::new(dump(&place.server)));
        let record = Record { due: Duration::ZERO, number, dump, messages: Arc::new(messages) };
        let now = self.machine.now();
        let Some(shard) = state.shard_of(node) else { return };
        for follower in &mut shard.followers {
            let last = follower.on_the_way.back().map_or(Duration::ZERO, |record| record.due);
            let due = (now + follower.lag).max(last).max(follower.stalled);
            follower.on_the_way.push_back(Record { due, ..record.clone() });
            self.deliver_after(due.saturating_sub(now));
        }
    }

    fn deliver_after(self: &Arc<Self>, duration: Duration) {
        let nodes = self.clone();
        let sleep = self.machine.process(WORLD).sleep(duration);
        self.machine.process(WORLD).spawn(Box::pin(async move {
            sleep.await;
            nodes.deliver();
        }));
    }

    /// A moment later all other servers tell their subscribers.
    fn broadcast(self: &Arc<Self>, from: Node, messages: Messages) {
        let (nodes, sleep) = (self.clone(), self.machine.process(WORLD).sleep(BUS));
        self.machine.process(WORLD).spawn(Box::pin(async move {
            sleep.await;
            let state = nodes.lock();
            let astray = |node: &Node| state.astray.iter().any(|astray| astray.node == *node);
            let others = (0..state.places.len()).filter(|node| *node != from && !astray(node));
            others.for_each(|node| state.places[node].repeat(&messages));
        }));
    }

    /// What is due arrives.
    fn deliver(&self) {
        let now = self.machine.now();
        let mut state = self.lock();
        let mut arrived = Vec::new();
        for follower in state.shards.iter_mut().flat_map(|shard| &mut shard.followers) {
            while follower.on_the_way.front().is_some_and(|record| record.due <= now) {
                arrived.extend(follower.on_the_way.pop_front().map(|record| (follower.node, record)));
            }
        }
        arrived.iter().for_each(|(node, record)| state.arrive(*node, record));
        drop(state);
        self.arrived.notify(usize::MAX);
    }

    /// The number of the last write at that server.
    pub fn written(&self, node: Node) -> u64 {
        self.lock().places[node].written
    }

    /// Until so many replicas have the write of that number, or that time has come. Says how many have it. The wait
    /// ends with an error when the server is demoted.
    pub async fn acknowledged(
        &self,
        node: Node,
        number: u64,
        replicas: u32,
        until: Duration,
    ) -> Result<u32, ConnectionError> {
        let world = self.machine.process(WORLD);
        let demoted = self.lock().places[node].demoted;
        loop {
            let arrived = self.arrived.listen();
            if self.lock().places[node].demoted != demoted {
                let line = "UNBLOCKED force unblock from blocking operation, instance state changed";
                return Err(ConnectionError::refused(line));
            }
            let count = self.followers_with(node, number);
            let left = until.saturating_sub(self.machine.now());
            if count >= replicas || left.is_zero() {
                return Ok(count);
            }
            if let Either::Right(_) = select(arrived, world.sleep(left)).await {
                return Ok(self.followers_with(node, number));
            }
        }
    }

    /// How many of those that follow the server have the write of that number.
    fn followers_with(&self, node: Node, number: u64) -> u32 {
        let mut state = self.lock();
        let Some(shard) = state.shard_of(node) else { return 0 };
        let followers: Vec<Node> = shard.followers.iter().map(|follower| follower.node).collect();
        followers.into_iter().filter(|follower| state.places[*follower].written >= number).count() as u32
    }
}
