//! Watches the server, and who can reach it: the invariants that a script, a call or the passing of time can break.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::time::Duration;

use bowline::{Call, Reply};

use crate::executor::Machine;
use crate::network::Link;
use crate::world::MS;
use grants::{Step, listens_to_reply, number, requeued, subjects, verb};
use view::{Dump, View, WRITE, amount_of, client_of, conserved, id_of, is_latch, is_used, lease_of, locks, span, view};
use waits::{Attempt, Client, Moment};

mod grants;
pub mod latch;
mod limits;
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
    /// Every wire id that was granted the lock, by its first token.
    granted: BTreeMap<u64, String>,
    /// Every wire id that was granted permits, and how many.
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

/// What a guard tells of its hold: the key of the name, and whose it is. Several may be the same.
pub struct Known<'a> {
    pub key: &'a str,
    pub client: &'a str,
    pub units: u64,
    pub token: u64,
    /// Nobody had this guard's token before.
    pub is_new: bool,
}

/// A hold may be passed on for as long after its first guard was given out, by clocks that differ, and in time: a process
/// that stands still may do it a moment after it looked at the clock.
const LINE_TIME: Duration = Duration::from_millis(101);

impl Known<'_> {
    /// Nobody else holds anything of the name.
    fn is_alone(&self) -> bool {
        self.key.contains(":lock:") || self.units == WRITE
    }

    /// It may have been passed on in its client's line, with the other tokens that were reserved for it.
    fn holds<'n>(&self, state: &'n State) -> impl Iterator<Item = &'n view::Hold> {
        let holds = state.names.get(self.key).into_iter().flat_map(|name| &name.view.holds);
        holds.filter(|hold| {
            let span = state.attempts.get(&hold.id).map_or(1, |attempt| attempt.span.max(1));
            client_of(&hold.id) == self.client
                && hold.units == self.units
                && (hold.token..hold.token + span).contains(&self.token)
        })
    }
}

/// A script, and what the server had before and after it.
pub struct Executed<'a> {
    pub call: Call<'a>,
    /// Nobody waits for the answer: it is a second copy, or its sender has given up.
    pub late: bool,
    pub word: &'a str,
    pub before: &'a Dump,
    pub after: &'a Dump,
    /// The server's time.
    pub server: Duration,
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
        if is_latch(call.keys[0]) {
            let found = state.latches.called(call, now);
            drop(state);
            return self.found(found);
        }
        for id in subjects(&call) {
            let attempt = state.attempts.entry(id.to_owned()).or_default();
            match verb(&call) {
                "release" | "cancel" => {
                    attempt.decided.get_or_insert(now);
                }
                "force_release" => {}
                verb => {
                    if verb == "acquire" {
                        attempt.span = span(call.keys[0], number(&call, 3));
                    }
                    if let "acquire" | "change" = verb {
                        attempt.first_asking.get_or_insert(now);
                        attempt.asking = now;
                        attempt.lease = Duration::from_millis(number(&call, if verb == "acquire" { 2 } else { 3 }));
                    }
                    if verb == "renew" && attempt.changing {
                        state.violation.get_or_insert(format!("I8 renew of {id}, which is being changed"));
                    } else if let Some(decided) = attempt.decided {
                        let ago = now - decided;
                        state.violation.get_or_insert(format!("I8 {verb} of {id}, given up {ago:?} ago"));
                    } else {
                        attempt.changing = verb == "change" && id == subjects(&call)[0];
                    }
                }
            }
        }
        // What was passed on before is known by its first token.
        if let ("change", [old, new]) = (verb(&call), &subjects(&call)[..]) {
            let span = state.attempts.get(*old).map_or(0, |attempt| attempt.span);
            state.attempts.entry((*new).to_owned()).or_default().span = span;
        }
        if let Some(ticket) = requeued(&call) {
            let attempt = state.attempts.entry(id_of(ticket).to_owned()).or_default();
            attempt.first_asking.get_or_insert(now);
            (attempt.asking, attempt.lease) = (now, lease_of(ticket));
            attempt.span = span(call.keys[0], amount_of(ticket));
            if attempt.decided.is_some() {
                state.violation.get_or_insert(format!("I8 {ticket} is queued, and was given up"));
            }
        }
    }

    /// The client has the answer.
    pub fn answered(&self, call: Call<'_>, reply: &Reply) {
        let Reply::Array(items) = reply else { return };
        let now = self.machine.now();
        self.machine.log_detail(|| format!("    {} {:?} answered", call.script.name(), subjects(&call)));
        let mut state = self.lock();
        if is_latch(call.keys[0]) {
            if twice::word(reply) == "QUEUED" {
                state.latches.told_to_wait(subjects(&call)[0]);
            }
            return;
        }
        let mut told = |id: &str| {
            if let Some(attempt) = state.attempts.get_mut(id) {
                attempt.told = Some(now);
                attempt.learned = attempt.asked;
            }
        };
        match (verb(&call), twice::word(reply)) {
            ("acquire", "QUEUED") => told(subjects(&call)[0]),
            // It is not told when the lease in the way ends.
            ("release", "RELEASED") => {
                if let Some(attempt) = requeued(&call).and_then(|ticket| state.attempts.get_mut(id_of(ticket))) {
                    attempt.told = Some(now);
                }
            }
            ("change", word) => {
                let old = state.attempts.entry(subjects(&call)[0].to_owned()).or_default();
                old.changing = false;
                // What is not decided yet is asked again.
                let more = word == "BUSY" && items[1] == Reply::Integer(1);
                if word != "STALE" && !more {
                    old.decided.get_or_insert(now);
                }
            }
            ("touch", _) => {
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

    /// A process has the guard.
    pub fn delivered(&self, known: &Known<'_>) {
        let awake = self.clients.lock().unwrap().get(known.client).map(|(process, _)| self.machine.awake(*process));
        let mut state = self.lock();
        let ids: Vec<String> = known.holds(&state).map(|hold| hold.id.clone()).collect();
        let mut late = None;
        for id in ids {
            let attempt = state.attempts.entry(id).or_default();
            attempt.delivered = true;
            let awake = awake.expect("a client that was introduced");
            let since = awake - *attempt.first_delivered.get_or_insert(awake);
            late = late.or((since > LINE_TIME).then_some(since));
        }
        if let Some(since) = late.filter(|_| known.is_new && known.is_alone()) {
            let Known { key, token, .. } = known;
            state.violation.get_or_insert(format!("I4 {key}: token {token} was passed on after {since:?}"));
        }
    }

    /// When it was asked for under the wire id that the guard has it by: in a line, that may be long before somebody asked
    /// for the guard. Of permits, the first time that is possible.
    pub fn asked(&self, known: &Known<'_>) -> Option<Duration> {
        let state = self.lock();
        let name = state.names.get(known.key)?;
        if known.is_alone() {
            let (first, id) = name.granted.range(..=known.token).next_back()?;
            let attempt = state.attempts.get(id)?;
            return attempt.first_asking.filter(|_| known.token < first + attempt.span);
        }
        let holds = name.permits.iter().filter(|(id, units)| client_of(id) == known.client && *units == known.units);
        let attempts = holds.filter_map(|(id, _)| state.attempts.get(id));
        attempts.filter(|attempt| attempt.decided.is_none()).filter_map(|attempt| attempt.first_asking).min()
    }

    /// What is left of the lease, for the server; of the longest, if there are several.
    pub fn left(&self, known: &Known<'_>, server: Duration) -> Duration {
        let state = self.lock();
        let left = known.holds(&state).map(|hold| hold.ends.saturating_sub(server)).max();
        left.unwrap_or_default()
    }

    /// What only time has changed. To be called before anything else changes something.
    pub fn look(&self, server: Duration) {
        let now = self.machine.now();
        let mut state = self.lock();
        let state = &mut *state;
        state.looked = now;
        state.names.values_mut().for_each(|name| name.look(now, server));
        if state.violation.is_some() {
            return;
        }
        let client = |id: &str| self.client(client_of(id), state.server_calm, &state.listeners);
        let longest_delay = self.longest_delay.get().copied().unwrap_or_default();
        let moment = Moment { now, server, longest_delay, held_since: Duration::ZERO, damaged: Duration::ZERO };
        let mut found = state.latches.look(&moment, client);
        for name in state.names.values() {
            let Name { view, fits, held_since, damaged, .. } = name;
            let moment = Moment { held_since: *held_since, damaged: *damaged, ..moment };
            let attempt = |id: &str| state.attempts.get(id).cloned().unwrap_or_default();
            let ticket = |t: &view::Ticket| {
                moment.ticket(
                    t,
                    fits.get(&t.id).copied(),
                    !view.is_behind_dead(t, server),
                    &attempt(&t.id),
                    client(&t.id),
                )
            };
            let tickets = view.queue.iter().find_map(ticket);
            let mut holds = view.holds.iter().filter(|hold| hold.lives(server));
            let hold = holds.find_map(|hold| moment.hold(hold, &attempt(&hold.id), client(&hold.id)));
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
    pub fn damaged(&self, dump: &Dump, server: Duration) {
        self.update(dump, server);
        let now = self.machine.now();
        let mut state = self.lock();
        state.latches.damaged(dump, now, server);
        for name in state.names.values_mut() {
            name.held_since = now;
            name.damaged = now;
        }
    }

    fn update(&self, dump: &Dump, server: Duration) {
        let now = self.machine.now();
        let mut state = self.lock();
        let state = &mut *state;
        let known: BTreeSet<String> = state.names.keys().cloned().chain(locks(dump)).collect();
        for lock in known {
            let new = view(dump, &lock);
            state.limits.note(&lock, new.limit, now);
            let name = state.names.entry(lock).or_default();
            let old = std::mem::replace(&mut name.view, new);
            let ids =
                name.view.holds.iter().map(|hold| &hold.id).chain(name.view.queue.iter().map(|ticket| &ticket.id));
            for id in ids.filter(|id| !old.knows(id)) {
                state.attempts.entry(id.clone()).or_default().appeared = now;
            }
            for hold in &name.view.holds {
                name.highest = name.highest.max(hold.token);
                name.granted.insert(hold.token, hold.id.clone());
                if old.hold(&hold.id).is_none() {
                    name.permits.push((hold.id.clone(), hold.units));
                }
                if !old.hold(&hold.id).is_some_and(|hold| hold.lives(server)) {
                    name.held_since = now;
                    state.attempts.entry(hold.id.clone()).or_default().granted = now;
                }
            }
            name.look(now, server);
        }
    }

    /// A script was executed.
    pub fn executed(&self, executed: Executed<'_>) {
        let Executed { call, late, word, before, after, server } = executed;
        let now = self.machine.now();
        self.machine.log_detail(|| {
            let view = view(after, call.keys[0]);
            format!("    {} {:?}: {word}, {view:?}", call.script.name(), subjects(&call))
        });
        if verb(&call) == "renew" {
            let created = after.keys().find(|key| !before.contains_key(*key));
            self.found(created.map(|key| format!("I8 a renewal created {key}")));
        }
        let lock = call.keys[0];
        if !is_used(lock) {
            return;
        }
        if is_latch(lock) {
            let found = self.lock().latches.executed(call, word, after, now, server);
            return self.found(found);
        }
        let found = {
            let mut state = self.lock();
            let requeued = requeued(&call).filter(|_| word != "NOT_HELD").map(id_of);
            let highest = state.names.get(lock).map_or(0, |name| name.highest);
            let (before, after) = (view(before, lock), view(after, lock));
            for id in subjects(&call).into_iter().chain(requeued) {
                let attempt = state.attempts.entry(id.to_owned()).or_default();
                if !late && (!matches!(verb(&call), "release" | "cancel") || requeued == Some(id)) {
                    attempt.asked = now;
                }
                // A renewal is about several names, and brings nothing back.
                if verb(&call) != "renew" {
                    // A release or a change ends holds, not tickets.
                    let stays = attempt.ghost && (late || matches!(verb(&call), "release" | "change"));
                    attempt.ghost = stays || (late && attempt.gone);
                    attempt.gone = !after.knows(id);
                }
            }
            for hold in after.holds.iter().filter(|hold| before.hold(&hold.id).is_none()) {
                let told = || listens_to_reply(&call) && client_of(subjects(&call)[0]) == client_of(&hold.id);
                state.attempts.entry(hold.id.clone()).or_default().granted_unheard =
                    late && (subjects(&call).contains(&&*hold.id) || requeued == Some(&*hold.id) || told());
            }
            let listens = |id: &str| state.listeners.get(client_of(id)).is_some_and(|(n, _)| *n > 0);
            Step { call, word, before: &before, after: &after, now: server }.check(highest, listens)
        };
        self.found(found);
        if call.script.name().starts_with("permit_") && !matches!(verb(&call), "renew" | "inspect") {
            self.found(conserved(after, lock));
        }
        self.update(after, server);
    }
}
