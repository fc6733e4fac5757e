//! Watches the server, and who can reach it: the invariants that a script, a call or the passing of time can break.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::time::Duration;

use crate::executor::Machine;
use crate::network::Reach;
use view::View;
use waits::Attempt;

mod calls;
mod forks;
mod grants;
mod known;
pub mod latch;
mod limits;
mod server;
pub mod twice;
pub mod view;
mod waits;

pub use grants::{arg, may_be_long};
pub use known::Known;
pub use server::{Clock, Executed};
pub use waits::{OPENING, PAUSE};

/// A process, and what it reaches the servers by.
type Reached = (usize, Weak<dyn Reach>);

pub struct Judge {
    machine: Arc<Machine>,
    longest_delay: OnceLock<Duration>,
    replicas: OnceLock<Duration>,
    /// Every client is told of its grants, whether it listens or not.
    tells_everyone: AtomicBool,
    /// Clients hear through one inbox for each slot.
    sharded: AtomicBool,
    /// By the client's uuid: its process and its link.
    clients: Mutex<HashMap<String, Reached>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    names: BTreeMap<String, Name>,
    attempts: HashMap<String, Attempt>,
    latches: latch::Latches,
    limits: limits::Limits,
    forsaken: forks::Forsaken,
    /// By inbox.
    listeners: HashMap<String, Listener>,
    /// Until when the server stood or stands still.
    server_calm: Duration,
    looked: Duration,
    violation: Option<String>,
}

/// The subscriptions to an inbox.
#[derive(Clone, Copy, Default)]
struct Listener {
    count: usize,
    /// When the last one was made.
    since: Duration,
    /// When there were none any more.
    silent_since: Duration,
}

/// The inbox of a client, for one slot if messages are sharded.
pub fn inbox(client: &str, slot: Option<&str>) -> String {
    match slot {
        Some(slot) => format!("{client} in {slot}"),
        None => client.to_owned(),
    }
}

#[derive(Default)]
struct Name {
    view: View,
    /// Every attempt id that was granted the lock, by its first token.
    granted: BTreeMap<u64, String>,
    /// Every attempt id that was granted permits, and how many.
    permits: Vec<(String, u64)>,
    held_since: Duration,
    damaged: Duration,
    /// For whom in the queue there is room, and since when.
    fits: BTreeMap<String, Duration>,
    highest: u64,
}

impl Listener {
    fn change(&mut self, count: usize, now: Duration) {
        if count == 0 {
            self.silent_since = now;
        }
        self.count = count;
    }
}

impl Name {
    fn look(&mut self, now: Duration, server: Duration) {
        let since = std::mem::take(&mut self.fits);
        let fits = self.view.fitting(server).map(|t| (t.id.clone(), since.get(&t.id).copied().unwrap_or(now)));
        self.fits = fits.collect();
    }
}

impl Judge {
    pub fn new(machine: &Arc<Machine>) -> Arc<Self> {
        Arc::new(Self {
            machine: machine.clone(),
            longest_delay: OnceLock::new(),
            replicas: OnceLock::new(),
            tells_everyone: AtomicBool::default(),
            sharded: AtomicBool::default(),
            clients: Mutex::default(),
            state: Mutex::default(),
        })
    }

    /// A client, and how it is reached. No delay is longer than that.
    pub fn introduce(&self, client: String, process: usize, reach: Arc<dyn Reach>, longest_delay: Duration) {
        self.longest_delay.get_or_init(|| longest_delay);
        self.clients.lock().unwrap().insert(client, (process, Arc::downgrade(&reach)));
    }

    /// No server knows all who listen.
    pub fn tells_everyone(&self) {
        self.tells_everyone.store(true, Ordering::Relaxed);
    }

    /// Clients hear through one inbox for each slot, and its master knows all who listen.
    pub fn shards_messages(&self) {
        self.tells_everyone.store(false, Ordering::Relaxed);
        self.sharded.store(true, Ordering::Relaxed);
    }

    /// Grants wait for replicas: one batch after the other, each for so long at most.
    pub fn waits_for_replicas(&self, longest: Duration) {
        self.replicas.get_or_init(|| longest);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// The first thing seen that must not happen.
    pub fn violation(&self) -> Option<String> {
        self.lock().violation.clone()
    }

    pub fn found(&self, violation: Option<String>) {
        if let Some(violation) = violation {
            self.lock().violation.get_or_insert(violation);
        }
    }

    pub fn server_stands_still(&self, until: Duration) {
        let mut state = self.lock();
        state.server_calm = state.server_calm.max(until);
    }

    /// A subscription begins or ends, at the server.
    pub fn listens(&self, inbox: &str, begins: bool) {
        let now = self.machine.now();
        self.machine.log_detail(|| format!("    {inbox} {} listening", if begins { "begins" } else { "stops" }));
        let mut state = self.lock();
        let listener = state.listeners.entry(inbox.to_owned()).or_default();
        if begins {
            listener.since = now;
        }
        listener.change(if begins { listener.count + 1 } else { listener.count - 1 }, now);
    }

    /// Another master has brought the inbox so many subscriptions more, or fewer. The client does not know: nothing was
    /// interrupted.
    pub fn listens_elsewhere(&self, inbox: &str, count: usize, here: bool) {
        let now = self.machine.now();
        let mut state = self.lock();
        let listener = state.listeners.entry(inbox.to_owned()).or_default();
        listener.change(if here { listener.count + count } else { listener.count - count }, now);
    }

    /// Inboxes that the server still has subscriptions of.
    pub fn listeners(&self) -> Vec<String> {
        self.lock()
            .listeners
            .iter()
            .filter(|(_, listener)| listener.count > 0)
            .map(|(inbox, _)| inbox.clone())
            .collect()
    }
}
