//! Watches the server, and who can reach it: the invariants that a script, a call or the passing of time can break.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::time::Duration;

use crate::executor::Machine;
use crate::network::Link;
use view::View;
use waits::Attempt;

mod calls;
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
pub use server::Executed;

pub struct Judge {
    machine: Arc<Machine>,
    longest_delay: OnceLock<Duration>,
    /// By the client's uuid: its process and its link.
    clients: Mutex<HashMap<String, (usize, Weak<Link>)>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    names: BTreeMap<String, Name>,
    attempts: HashMap<String, Attempt>,
    latches: latch::Latches,
    limits: limits::Limits,
    /// By the client's uuid: how many subscriptions, and when the last one was made.
    listeners: HashMap<String, (usize, Duration)>,
    /// Until when the server stood or stands still.
    server_calm: Duration,
    looked: Duration,
    violation: Option<String>,
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
            clients: Mutex::default(),
            state: Mutex::default(),
        })
    }

    /// A client, and how it is reached. No delay is longer than that.
    pub fn introduce(&self, client: String, process: usize, link: &Arc<Link>, longest_delay: Duration) {
        self.longest_delay.get_or_init(|| longest_delay);
        self.clients.lock().unwrap().insert(client, (process, Arc::downgrade(link)));
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
    pub fn listens(&self, client: &str, begins: bool) {
        let now = self.machine.now();
        self.machine.log_detail(|| format!("    {client} {} listening", if begins { "begins" } else { "stops" }));
        let mut state = self.lock();
        let listener = state.listeners.entry(client.to_owned()).or_default();
        if begins {
            *listener = (listener.0 + 1, now);
        } else {
            listener.0 -= 1;
        }
    }

    /// A failover has brought the client so many subscriptions more, or fewer. It does not know: nothing was interrupted.
    pub fn listens_elsewhere(&self, client: &str, count: usize, here: bool) {
        let mut state = self.lock();
        let listener = state.listeners.entry(client.to_owned()).or_default();
        listener.0 = if here { listener.0 + count } else { listener.0 - count };
    }

    /// Clients that the server still has subscriptions of.
    pub fn listeners(&self) -> Vec<String> {
        self.lock().listeners.iter().filter(|(_, (n, _))| *n > 0).map(|(client, _)| client.clone()).collect()
    }
}
