//! A client of a cluster, which behaves as the adapter does: calls follow `MOVED` and `ASK`, wait out `TRYAGAIN`, and are never
//! sent again after an unknown outcome; the map is read anew at every sign that it is old; links to masters that were replaced are
//! cut; one subscription at any master, and one for each slot in which it waits if messages are sharded.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::Executor;
use event_listener::Event;

use crate::census::Counted;
use crate::executor::{Machine, Process, WORLD};
use crate::network::{Backend, Link, Reach};
use crate::nodes::{Map, Node};
use crate::server::SimServer;
use at::At;

mod at;
mod connection;
mod feed;
mod follow;
mod run;
mod sharded;

pub use connection::SimCluster;
pub use run::run_on;

/// Between two readings of the map.
const PAUSE: Duration = Duration::from_millis(100);

/// Calls that were told to wait while something changed have gone on by then.
const SETTLED: Duration = Duration::from_millis(60);

/// The mistakes of that name are made here, as the adapter is not in the simulation.
#[cfg(feature = "_mutants")]
fn is_on(mutant: bowline::Mutant) -> bool {
    bowline::Switch::is_on(mutant)
}

/// What a process knows of the cluster, and its links to the nodes.
pub struct Cluster {
    machine: Arc<Machine>,
    server: Arc<SimServer>,
    executor: Arc<dyn Executor>,
    process: Process,
    delays: (Duration, Duration),
    /// Carries messages only.
    inbox: Arc<Link>,
    state: Mutex<State>,
    changed: Event,
    _counted: Counted,
}

#[derive(Default)]
struct State {
    map: Map,
    /// Counts the changes of the map.
    version: u64,
    links: BTreeMap<Node, Arc<Link>>,
    /// Carry the messages of one slot each.
    shards: Vec<Arc<Link>>,
    /// How much longer than usual everything takes on those that are made.
    slow: Duration,
    /// The map is to be read anew.
    suspect: bool,
    /// Counts the events after which messages may have been missed.
    gaps: u64,
    /// Where the subscription is.
    socket: Option<Node>,
    disturbed: Duration,
    closed: bool,
}

fn message_link(
    machine: &Arc<Machine>,
    server: &Arc<SimServer>,
    process: Process,
    (shortest, longest): (Duration, Duration),
) -> Arc<Link> {
    let backend: Arc<dyn Backend> = Arc::new(At { server: server.clone(), node: 0 });
    let link = Link::new(machine, backend, process, shortest, longest);
    link.needs_no_proof();
    link
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cluster({})", self.process)
    }
}

impl Cluster {
    pub fn new(
        machine: &Arc<Machine>,
        server: &Arc<SimServer>,
        process: Process,
        delays: (Duration, Duration),
    ) -> Arc<Self> {
        let inbox = message_link(machine, server, process, delays);
        let state = State { map: server.nodes.map(), ..State::default() };
        let cluster = Arc::new(Self {
            machine: machine.clone(),
            server: server.clone(),
            executor: machine.process(process),
            process,
            delays,
            inbox,
            state: Mutex::new(state),
            changed: Event::new(),
            _counted: Counted::new("cluster"),
        });
        machine.process(WORLD).spawn(Box::pin(cluster.clone().keep_map()));
        cluster
    }

    fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.lock().unwrap())
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.state.lock().unwrap());
        self.changed.notify(usize::MAX);
        changed
    }

    async fn until(&self, holds: impl Fn(&State) -> bool) {
        loop {
            let changed = self.changed.listen();
            if self.look(&holds) {
                return;
            }
            changed.await;
        }
    }

    /// The link to a node, made when it is first needed.
    pub fn link(self: &Arc<Self>, node: Node) -> Arc<Link> {
        if let Some(link) = self.look(|state| state.links.get(&node).cloned()) {
            return link;
        }
        let backend: Arc<dyn Backend> = Arc::new(At { server: self.server.clone(), node });
        let link = Link::new(&self.machine, backend, self.process, self.delays.0, self.delays.1);
        self.change(|state| state.links.insert(node, link.clone()));
        self.machine.process(WORLD).spawn(Box::pin(self.clone().watch(link.clone())));
        link
    }

    /// A link that carries the messages of a slot.
    fn shard_link(&self) -> Arc<Link> {
        let link = message_link(&self.machine, &self.server, self.process, self.delays);
        let slow = self.look(|state| state.slow);
        if !slow.is_zero() {
            link.slow_down(slow, 10 * slow);
        }
        self.change(|state| state.shards.push(link.clone()));
        link
    }

    /// From now on, the inboxes of slots are slow when they are opened.
    pub fn slow_down_inboxes(&self, by: Duration) {
        self.change(|state| state.slow = by);
    }

    /// Messages may have been missed whenever a link was made anew.
    async fn watch(self: Arc<Self>, link: Arc<Link>) {
        let mut connection = 0;
        while let Some(next) = link.restored(connection).await {
            connection = next;
            self.change(|state| state.gaps += 1);
        }
    }

    /// The links that there are, and the one that carries messages.
    pub fn links(&self) -> Vec<Arc<Link>> {
        self.look(|state| state.links.values().cloned().collect())
    }

    pub fn inbox(&self) -> &Arc<Link> {
        &self.inbox
    }

    /// Those that carry messages of single slots.
    pub fn shards(&self) -> Vec<Arc<Link>> {
        self.look(|state| state.shards.clone())
    }

    /// Where the subscription is.
    pub fn socket(&self) -> Option<Node> {
        self.look(|state| state.socket)
    }

    fn suspect_map(&self) {
        self.change(|state| state.suspect = true);
    }

    async fn keep_map(self: Arc<Self>) {
        let world = self.machine.process(WORLD);
        loop {
            self.until(|state| state.suspect || state.closed).await;
            if self.change(|state| {
                state.suspect = false;
                state.closed
            }) {
                return;
            }
            let map = self.read().await;
            self.learn(map);
            world.sleep(PAUSE).await;
        }
    }

    /// Asks one node after the other until one says that it is a part of the cluster; the last one is believed anyway.
    async fn read(&self) -> Map {
        let world = self.machine.process(WORLD);
        for _ in 0..20 {
            let nodes = self.server.nodes.count() as u64;
            let node = self.machine.random(|random| random.below(nodes)) as Node;
            let link = self.look(|state| state.links.get(&node).cloned());
            if link.is_some_and(|link| !link.answers()) {
                world.sleep(PAUSE).await;
                continue;
            }
            world.sleep(self.inbox.delay()).await;
            let (map, up) = (self.server.nodes.map(), self.server.nodes.is_up(node));
            world.sleep(self.inbox.delay()).await;
            if up {
                return map;
            }
        }
        self.server.nodes.map()
    }

    /// Takes over a map that was read. The links to masters that were replaced are cut: what those do is lost.
    fn learn(&self, map: Map) {
        let now = self.machine.now();
        let replaced: Vec<Arc<Link>> = self.change(|state| {
            if state.map == map {
                return Vec::new();
            }
            let gone: Vec<Node> =
                state.map.masters.iter().copied().filter(|node| !map.masters.contains(node)).collect();
            state.gaps += u64::from(!gone.is_empty());
            state.map = map;
            state.version += 1;
            state.disturbed = now;
            gone.iter().filter_map(|node| state.links.remove(node)).collect()
        });
        replaced.iter().for_each(|link| link.kill());
    }

    /// A node said that another one serves the slot.
    fn moved(&self, slot: &str, owner: Node) {
        let now = self.machine.now();
        self.change(|state| {
            if state.map.owner(slot) != owner {
                state.map.moved.insert(slot.to_owned(), owner);
                state.version += 1;
                state.disturbed = now;
            }
            state.suspect = true;
        });
    }

    /// The process is gone, or wants no more of it.
    pub fn kill(&self) {
        let (links, shards) = self.change(|state| {
            state.closed = true;
            (std::mem::take(&mut state.links), std::mem::take(&mut state.shards))
        });
        links.values().chain(&shards).for_each(|link| link.kill());
        self.inbox.kill();
    }
}

impl Reach for Cluster {
    fn calm_since(&self) -> Option<Duration> {
        let (settled, truth) = (self.server.nodes.settled()? + SETTLED, self.server.nodes.map());
        let state = self.state.lock().unwrap();
        let slots = state.map.moved.keys().chain(truth.moved.keys());
        let same = state.map.masters == truth.masters
            && slots.into_iter().all(|slot| state.map.owner(slot) == truth.owner(slot));
        let stands = state.socket.is_some_and(|node| truth.masters.contains(&node));
        if state.closed || state.suspect || !same || !stands {
            return None;
        }
        let mut calm = settled.max(state.disturbed).max(self.inbox.undisturbed()?);
        for link in state.links.values().chain(&state.shards) {
            calm = calm.max(link.undisturbed()?);
        }
        (calm <= self.machine.now()).then_some(calm)
    }
}
