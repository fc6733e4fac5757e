//! Watches the server, and who can reach it: the invariants that a script, a call or the passing of time can break.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::time::Duration;

use bowline::{Call, Reply};

use crate::executor::Machine;
use crate::network::Link;
use crate::world::MS;
use grants::{Step, arg, number, subjects};
use view::{Dump, View, client_of, is_used, locks, view};
use waits::{Attempt, Client, Moment};

mod grants;
pub mod twice;
pub mod view;
mod waits;

pub use grants::may_be_long;

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
    held_since: Duration,
    free_since: Option<Duration>,
    seen: Duration,
    highest: u64,
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

    /// Clients that the server still has subscriptions of.
    pub fn listeners(&self) -> Vec<String> {
        self.lock().listeners.iter().filter(|(_, (n, _))| *n > 0).map(|(client, _)| client.clone()).collect()
    }

    /// I8: what a client has begun to release or cancel, it never asks about again.
    pub fn called(&self, call: Call<'_>) {
        if !is_used(call.keys[0]) {
            return;
        }
        let now = self.machine.now();
        self.machine.log_detail(|| format!("    {} {:?} begins", call.script.name(), subjects(&call)));
        let mut state = self.lock();
        for id in subjects(&call) {
            let attempt = state.attempts.entry(id.to_owned()).or_default();
            match call.script.name() {
                "lock_release" | "lock_cancel" => {
                    attempt.decided.get_or_insert(now);
                }
                "lock_force_release" => {}
                script => {
                    if script == "lock_acquire" {
                        attempt.asking = now;
                        attempt.lease = Duration::from_millis(number(&call, 2));
                    }
                    if let Some(decided) = attempt.decided {
                        let ago = now - decided;
                        state.violation.get_or_insert(format!("I8 {script} of {id}, given up {ago:?} ago"));
                    }
                }
            }
        }
    }

    /// The client has the answer.
    pub fn answered(&self, call: Call<'_>, reply: &Reply) {
        let Reply::Array(items) = reply else { return };
        let now = self.machine.now();
        self.machine.log_detail(|| format!("    {} {:?} answered", call.script.name(), subjects(&call)));
        let mut state = self.lock();
        let mut told = |id: &str| {
            if let Some(attempt) = state.attempts.get_mut(id) {
                attempt.told = Some(now);
                attempt.learned = attempt.asked;
            }
        };
        match call.script.name() {
            "lock_acquire" if twice::word(reply) == "QUEUED" => told(arg(&call, 0)),
            "lock_touch" => {
                let states = items[3..].iter().step_by(2);
                subjects(&call)
                    .into_iter()
                    .zip(states)
                    .filter(|(_, state)| twice::word(state) == "WAITING")
                    .for_each(|(id, _)| told(id));
            }
            _ => {}
        }
    }

    /// A process has the guard of that token.
    pub fn delivered(&self, name: &str, token: u64) {
        let mut state = self.lock();
        let hold = state.names.get(&format!("bowline:lock:{{{name}}}")).and_then(|name| name.view.hold.as_ref());
        if let Some(id) = hold.filter(|hold| hold.token == token).map(|hold| hold.id.clone()) {
            state.attempts.entry(id).or_default().delivered = true;
        }
    }

    /// What is left of the lease of the hold with that token, for the server.
    pub fn left(&self, name: &str, token: u64, server: Duration) -> Duration {
        let state = self.lock();
        let hold = state.names.get(&format!("bowline:lock:{{{name}}}")).and_then(|name| name.view.hold.as_ref());
        hold.filter(|hold| hold.token == token).map_or(Duration::ZERO, |hold| hold.ends.saturating_sub(server))
    }

    /// What only time has changed. To be called before anything else changes something.
    pub fn look(&self, server: Duration) {
        let now = self.machine.now();
        let mut state = self.lock();
        let state = &mut *state;
        state.looked = now;
        for name in state.names.values_mut() {
            if let Some(hold) = name.view.hold.take_if(|hold| hold.ends.as_millis() < server.as_millis()) {
                let ended = now.saturating_sub(server - hold.ends);
                name.free_since = Some(ended.clamp(name.seen, now));
            }
            name.seen = now;
        }
        if state.violation.is_some() {
            return;
        }
        let client = |id: &str| self.client(client_of(id), state.server_calm, &state.listeners);
        let mut found = None;
        for name in state.names.values() {
            let Name { view, held_since, free_since, .. } = name;
            let longest_delay = self.longest_delay.get().copied().unwrap_or_default();
            let moment = Moment { now, server, longest_delay, held_since: *held_since, free_since: *free_since };
            let attempt = |id: &str| state.attempts.get(id).cloned().unwrap_or_default();
            let tickets = view.queue.iter().find_map(|t| moment.ticket(t, &attempt(&t.id), client(&t.id)));
            let hold = view.hold.as_ref().and_then(|hold| moment.hold(hold, &attempt(&hold.id), client(&hold.id)));
            found = found.or(tickets).or(hold);
        }
        state.violation = found;
    }

    /// As [`look`](Self::look), unless that was done a moment ago.
    pub fn look_now_and_then(&self, server: impl FnOnce() -> Duration) {
        if self.machine.now() >= self.lock().looked + 10 * MS {
            self.look(server());
        }
    }

    /// `None` if it cannot be reached now.
    fn client(
        &self,
        client: &str,
        server_calm: Duration,
        listeners: &HashMap<String, (usize, Duration)>,
    ) -> Option<Client> {
        let (process, link) = self.clients.lock().unwrap().get(client).cloned()?;
        let (count, listens) = *listeners.get(client)?;
        let calm = link.upgrade()?.calm_since()?.max(self.machine.awake_since(process)?).max(server_calm);
        (count > 0 && calm <= self.machine.now()).then_some(Client { calm, listens })
    }

    /// Something was done to the data that no script of ours did: nobody knows how long a lease lasts now.
    pub fn damaged(&self, dump: &Dump) {
        self.update(dump);
        let now = self.machine.now();
        for name in self.lock().names.values_mut() {
            name.held_since = now;
        }
    }

    fn update(&self, dump: &Dump) {
        let now = self.machine.now();
        let mut state = self.lock();
        let state = &mut *state;
        let known: BTreeSet<String> = state.names.keys().cloned().chain(locks(dump)).collect();
        for lock in known {
            let new = view(dump, &lock);
            let name = state.names.entry(lock).or_default();
            let old = std::mem::replace(&mut name.view, new);
            let was = |id: &str| {
                old.hold.as_ref().is_some_and(|hold| hold.id == id) || old.queue.iter().any(|ticket| ticket.id == id)
            };
            let ids = name.view.hold.iter().map(|hold| &hold.id).chain(name.view.queue.iter().map(|ticket| &ticket.id));
            for id in ids.filter(|id| !was(id)) {
                state.attempts.entry(id.clone()).or_default().appeared = now;
            }
            match &name.view.hold {
                Some(hold) => {
                    name.free_since = None;
                    name.highest = name.highest.max(hold.token);
                    if old.hold.is_none_or(|old| old.id != hold.id) {
                        name.held_since = now;
                    }
                }
                None => {
                    name.free_since.get_or_insert(now);
                }
            }
            name.seen = now;
        }
    }

    /// A script was executed, at that time of the server.
    pub fn executed(&self, call: Call<'_>, word: &str, before: &Dump, after: &Dump, server: Duration) {
        let now = self.machine.now();
        self.machine.log_detail(|| {
            let view = view(after, call.keys[0]);
            format!("    {} {:?}: {word}, {view:?}", call.script.name(), subjects(&call))
        });
        if call.script.name() == "lock_renew" {
            let created = after.keys().find(|key| !before.contains_key(*key));
            self.found(created.map(|key| format!("I8 a renewal created {key}")));
        }
        let lock = call.keys[0];
        if !is_used(lock) {
            return;
        }
        let found = {
            let mut state = self.lock();
            for id in subjects(&call) {
                if !matches!(call.script.name(), "lock_release" | "lock_cancel") {
                    state.attempts.entry(id.to_owned()).or_default().asked = now;
                }
            }
            let highest = state.names.get(lock).map_or(0, |name| name.highest);
            let (before, after) = (view(before, lock), view(after, lock));
            let granted = after.hold.as_ref().filter(|hold| before.hold.as_ref().is_none_or(|old| old.id != hold.id));
            if let Some(hold) = granted {
                state.attempts.entry(hold.id.clone()).or_default().granted_in_reply =
                    subjects(&call).contains(&&*hold.id);
            }
            let listens = |id: &str| state.listeners.get(client_of(id)).is_some_and(|(n, _)| *n > 0);
            Step { call, word, before: &before, after: &after, now: server }.check(highest, listens)
        };
        self.found(found);
        self.update(after);
    }
}
