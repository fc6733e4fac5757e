//! What a client knows of its cluster: the map of slots, and a link to each node that it uses. The router decides where
//! a call goes. The lock of its state is never held during a wait, nor while a link is closed.
//!
//! # The entry of a node
//! | entry | ends with |
//! |---|---|
//! | none | the first call or reading that goes to the node: it makes a link, and a task that keeps the link up |
//! | of a master in the map | a reading without this master: the link is disowned, then closed |
//! | of another node, which an `ASK` named or readings ask | [`NODE_IDLE`] without use: the link is closed; a reading in which the node is a master |
//! | with a closed link, because the runtime dropped its task | the next call or reading that goes to the node: it makes another link |
//!
//! # What is read when
//! The map is read at the start, once a minute, and after each sign that it is old: a `MOVED`, a refusal such as
//! `CLUSTERDOWN`, a lost link, a failed dial, a call that is not answered soon, an answer that came late. Readings keep
//! a pause between them ([`refresh`](super::refresh)). A reading asks several nodes, and takes over what is newer by
//! the config epochs of the masters. So the old view of a node that was cut off changes nothing
//! ([`choice`](super::choice)). A `MOVED` changes the owner of its slot at once. Each change gives the map another
//! version, and calls that still wait for a link then look up their node again.
//!
//! # What a dropped call leaves
//! The router stores nothing for a call. The future of the call holds its node, which keeps the link in use, and a
//! place under the common timer; both go with the future. A call that still waited for a link was never sent. A call
//! that was handed to a link may have been executed, or may be executed later.
//!
//! # Why answers of a replaced master do not count
//! A master that was frozen may have been replaced. When it resumes, it executes the calls that wait in its sockets
//! before it hears of the replacement, and answers them although its writes are lost.
//! - When a reading has found the replacement, the router disowns the link under its lock, before any call can see the
//!   new map. Each answer is checked for this on its way to the caller, even if it arrived earlier. If the link is
//!   disowned, the outcome of the call is unknown.
//! - Until then, an answer that came soon counts, because the master was not frozen while the call was under way. A
//!   late answer waits for a reading that began after the answer came and that another node has answered
//!   ([`sure`](super::sure)). If the master was replaced, this reading disowns the link.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use super::super::dial::Dial;
use super::super::link::Link;
use super::host::Host;
use super::map::SlotMap;
use super::node::{self, Node};
use super::place::Place;
use super::seeds::Seeds;
use super::signals::Signals;
use crate::config::Config;
use crate::connection::ConnectionError;
use crate::mutex::lock;
use crate::observe;
use crate::runtime::Executor;
use crate::tuning::NODE_IDLE;

mod learning;
mod waiting;

/// Shared by the calls, the subscriptions and the task that reads the map.
pub(super) struct Router {
    pub(super) executor: Arc<dyn Executor>,
    pub(super) dialer: Arc<dyn Dial>,
    pub(super) seeds: Seeds,
    pub(super) config: Config,
    pub(super) seed: u64,
    pub(super) signals: Arc<Signals>,
    state: Mutex<RouterState>,
    /// The number of reconnects of subscriptions, and of links that were removed.
    reconnects: AtomicU64,
}

struct RouterState {
    /// Shared, because the map is large and often read.
    map: Arc<SlotMap>,
    /// The number of changes of the map.
    version: u64,
    links: FxHashMap<Host, NodeEntry>,
    /// When the last reading that was answered began, and the nodes that answered and accept calls.
    read: Option<(Instant, Vec<Host>)>,
    closed: bool,
}

struct NodeEntry {
    node: Arc<Node>,
    /// When the link was last used. `None`: the node is a master in the map.
    out: Option<Instant>,
}

/// The node for a call, by this version of the map.
#[derive(Clone)]
pub(super) struct Route {
    /// `None`: no node serves the slot.
    pub(super) node: Option<Arc<Node>>,
    pub(super) version: u64,
}

impl Router {
    pub(super) fn new(
        executor: Arc<dyn Executor>,
        dialer: Arc<dyn Dial>,
        seeds: Seeds,
        config: Config,
        seed: u64,
    ) -> Self {
        let signals = Arc::new(Signals::new(Arc::clone(&executor), seed));
        let (map, links) = (Arc::new(SlotMap::empty()), FxHashMap::default());
        let state = RouterState { map, version: 0, links, read: None, closed: false };
        let (state, reconnects) = (Mutex::new(state), AtomicU64::new(0));
        Self { executor, dialer, seeds, config, seed, signals, state, reconnects }
    }

    /// The route to the master of a slot.
    pub(super) fn to_slot(&self, slot: u16) -> Result<Route, ConnectionError> {
        let state = self.state()?;
        match state.map.owner(slot).cloned() {
            Some(owner) => Ok(self.to(state, owner)),
            None => Ok(Route { node: None, version: state.version }),
        }
    }

    /// The link to the master of a slot, if there is one.
    pub(super) fn link_to(&self, slot: u16) -> Option<Arc<Link>> {
        let state = lock(&self.state);
        let link = state.links.get(state.map.owner(slot)?)?;
        Some(Arc::clone(&link.node.link))
    }

    /// The route to a node, whether or not the map has it.
    pub(super) fn to_host(&self, host: Host) -> Result<Route, ConnectionError> {
        Ok(self.to(self.state()?, host))
    }

    /// Records a use of the link, which keeps it open if the node is not in the map.
    pub(super) fn use_link(&self, host: &Host) {
        let now = self.executor.now();
        if let Some(used) = lock(&self.state).links.get_mut(host).and_then(|link| link.out.as_mut()) {
            *used = now;
        }
    }

    fn state(&self) -> Result<MutexGuard<'_, RouterState>, ConnectionError> {
        let state = lock(&self.state);
        if state.closed { Err(ConnectionError::Closed) } else { Ok(state) }
    }

    fn to(&self, mut state: MutexGuard<'_, RouterState>, host: Host) -> Route {
        let version = state.version;
        if let Some(link) = state.links.get_mut(&host).filter(|link| !link.node.link.is_closed()) {
            if let Some(used) = &mut link.out {
                *used = self.executor.now();
            }
            return Route { node: Some(Arc::clone(&link.node)), version };
        }
        let place = Arc::new(Place::new(&self.seeds.access, host.clone()).with_map(Arc::clone(&self.signals)));
        let (executor, dialer) = (Arc::clone(&self.executor), Arc::clone(&self.dialer));
        let seed = self.seed.wrapping_add(host.port.into());
        let link = Arc::new(Link::new(executor, dialer, place, &self.config, seed).expecting_answers_soon());
        let out = (!state.map.masters().contains(&host)).then(|| self.executor.now());
        let node = Arc::new(Node::new(host.clone(), link));
        let old = state.links.insert(host, NodeEntry { node: Arc::clone(&node), out });
        drop(state);
        old.inspect(|old| self.count(&old.node));
        if out.is_some() {
            self.signals.idle_later();
        }
        node::start(&node, Arc::clone(&self.signals));
        Route { node: Some(node), version }
    }

    /// A number for the master of a slot. It stays the same until the map changes.
    pub(super) fn number_of(&self, slot: u16) -> u64 {
        let state = lock(&self.state);
        let owner = state.map.owner(slot);
        let place = state.map.masters().iter().position(|master| Some(master) == owner);
        place.and_then(|place| u64::try_from(place).ok()).unwrap_or(u64::MAX)
    }

    /// Records that a node named another master for the slot.
    pub(super) fn moved(&self, slot: u16, owner: &Host) {
        let mut state = lock(&self.state);
        let news = state.map.owner(slot) != Some(owner) && Arc::make_mut(&mut state.map).set(slot, owner);
        state.version += u64::from(news);
        drop(state);
        if news {
            self.signals.change();
        }
        self.signals.suspect_map();
    }

    /// Closes the links that are no longer needed. Returns when to check again.
    pub(super) fn prune(&self) -> Option<Instant> {
        let now = self.executor.now();
        let (mut gone, mut next) = (Vec::new(), None);
        lock(&self.state).links.retain(|_, link| {
            let Some(out) = link.out else { return true };
            let under_way = Arc::strong_count(&link.node) > 1;
            let until = if under_way { now } else { out } + NODE_IDLE;
            if until <= now {
                gone.push(Arc::clone(&link.node));
                return false;
            }
            next = Some(next.map_or(until, |next: Instant| next.min(until)));
            true
        });
        self.cut(gone);
        next
    }

    fn cut(&self, nodes: Vec<Arc<Node>>) {
        for node in nodes {
            self.count(&node);
            node.link.close();
        }
    }

    /// Adds the reconnects of a link that is removed to the total.
    fn count(&self, node: &Node) {
        self.reconnects.fetch_add(node.link.reconnects.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Records that a subscription has moved to another socket.
    pub(super) fn resubscribed(&self) {
        self.reconnects.fetch_add(1, Ordering::Relaxed);
        observe::reconnected(observe::MESSAGES);
    }

    /// The number of connections that were made after the first ones.
    pub(super) fn reconnects(&self) -> u64 {
        let state = lock(&self.state);
        let links = state.links.values().map(|link| link.node.link.reconnects.load(Ordering::Relaxed));
        links.sum::<u64>() + self.reconnects.load(Ordering::Relaxed)
    }

    /// All links, also those to nodes that are not in the map.
    pub(super) fn links(&self) -> Vec<Arc<Node>> {
        lock(&self.state).links.values().map(|link| Arc::clone(&link.node)).collect()
    }

    /// The shortest silence after which a link to any master may be dead.
    pub(super) fn patient(&self) -> Duration {
        let state = lock(&self.state);
        let masters = state.links.values().filter(|link| link.out.is_none());
        masters.map(|link| link.node.link.patient()).max().unwrap_or_default()
    }

    pub(super) fn map(&self) -> Arc<SlotMap> {
        Arc::clone(&lock(&self.state).map)
    }

    /// The address at which this client reaches a node that announces `announced`.
    pub(super) fn public(&self, announced: Host) -> Host {
        let reached = self.seeds.announced.translate(&announced.name, announced.port);
        reached.map_or(announced, |(name, port)| Host::new(&name, port))
    }

    pub(super) fn is_closed(&self) -> bool {
        lock(&self.state).closed
    }

    pub(super) fn close(&self) {
        let links = {
            let mut state = lock(&self.state);
            state.closed = true;
            std::mem::take(&mut state.links)
        };
        self.cut(links.into_values().map(|link| link.node).collect());
        self.signals.change();
        // The map is not read any more. What waits for a reading looks whether the router is closed.
        self.signals.read.notify(usize::MAX);
    }
}

impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = lock(&self.state);
        let masters = state.map.masters();
        f.debug_struct("Router").field("masters", &masters).field("closed", &state.closed).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
