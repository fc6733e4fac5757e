//! The server's side: what it has executed, and what the passing of time has changed in it.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bowline::Call;

use super::grants::{Step, listens_to_reply, requeued, subjects, verb};
use super::view::{self, Dump, client_of, conserved, id_of, is_latch, is_used, locks, view};
use super::waits::{Client, Moment};
use super::{Judge, Listener, Name, inbox};
use crate::nodes::slot;
use crate::world::MS;

/// What the clock of the server shows that has a key.
pub type Clock<'a> = &'a dyn Fn(&str) -> Duration;

/// A script, and what the server had before and after it.
pub struct Executed<'a> {
    pub call: Call<'a>,
    /// The answer is not awaited: the call is a second copy, or its sender has given up.
    pub late: bool,
    pub word: &'a str,
    pub before: &'a Dump,
    pub after: &'a Dump,
    /// The server's time, and that of every name's master.
    pub server: Duration,
    pub clock: Clock<'a>,
    /// If messages are sharded: the clients that have the inbox of the slot at the server.
    pub hears: Option<BTreeSet<String>>,
}

impl Judge {
    /// What only time has changed. To be called before anything else changes something.
    pub fn look(&self, clock: Clock<'_>) {
        let now = self.machine.now();
        let mut state = self.lock();
        let state = &mut *state;
        state.looked = now;
        state.names.iter_mut().for_each(|(key, name)| name.look(now, clock(key)));
        if state.violation.is_some() {
            return;
        }
        let astray = |id: &str| state.attempts.get(id).is_some_and(|attempt| attempt.astray);
        let reach = |id: &str| self.calm(client_of(Some(id).filter(|id| !astray(id))?), state.server_calm);
        let listener = |id: &str, key: &str| state.listeners.get(&self.inbox(client_of(id), key)).copied();
        let client = |id: &str, key: &str| {
            let listener = listener(id, key).filter(|listener| listener.count > 0)?;
            Some(Client { calm: reach(id)?, listens: listener.since })
        };
        let longest_delay = self.longest_delay.get().copied().unwrap_or_default();
        let replicas = self.replicas.get().copied().unwrap_or_default();
        let zero = Duration::ZERO;
        let moment = Moment { now, server: clock(""), longest_delay, held_since: zero, damaged: zero, replicas };
        let mut found = state.latches.look(&moment, |id| client(id, ""));
        for (key, name) in &state.names {
            let Name { view, fits, held_since, damaged, .. } = name;
            let server = clock(key);
            let moment = Moment { server, held_since: *held_since, damaged: *damaged, ..moment };
            let attempt = |id: &str| state.attempts.get(id).cloned().unwrap_or_default();
            let deaf = |t: &view::Ticket| {
                let Listener { count, silent_since, .. } = listener(&t.id, key).unwrap_or_default();
                let deaf = self.is_sharded() && count == 0;
                moment.deaf(t, &attempt(&t.id), reach(&t.id).filter(|_| deaf)?, silent_since)
            };
            let ticket = |t: &view::Ticket| {
                let (attempt, client) = (attempt(&t.id), client(&t.id, key));
                let foreseen = !view.is_behind_dead(t, server);
                moment.ticket(t, fits.get(&t.id).copied(), foreseen, &attempt, client).or_else(|| deaf(t))
            };
            let tickets = view.queue.iter().find_map(ticket);
            let mut holds = view.holds.iter().filter(|hold| hold.lives(server));
            let hold = holds.find_map(|hold| moment.hold(hold, &attempt(&hold.id), client(&hold.id, key)));
            found = found.or(tickets).or(hold);
        }
        state.violation = found;
    }

    /// As [`look`](Self::look), unless that was done a moment ago.
    pub fn look_now_and_then(&self, clock: Clock<'_>) {
        if self.machine.now() >= self.lock().looked + 10 * MS {
            self.look(clock);
        }
    }

    /// Since when the client can be reached. `None` if it cannot be reached now.
    fn calm(&self, client: &str, server_calm: Duration) -> Option<Duration> {
        let (process, link) = self.clients.lock().unwrap().get(client).cloned()?;
        let calm = link.upgrade()?.calm_since()?.max(self.machine.awake_since(process)?).max(server_calm);
        (calm <= self.machine.now()).then_some(calm)
    }

    fn is_sharded(&self) -> bool {
        self.sharded.load(Ordering::Relaxed)
    }

    /// Where a client hears of the name.
    fn inbox(&self, client: &str, key: &str) -> String {
        inbox(client, self.is_sharded().then(|| slot(key)))
    }

    /// Something was done to the data that no script of ours did: it is unknown how long a lease lasts now.
    pub fn damaged(&self, dump: &Dump, clock: Clock<'_>) {
        self.update(dump, clock);
        let now = self.machine.now();
        let mut state = self.lock();
        state.latches.damaged(dump, now, clock(""));
        for name in state.names.values_mut() {
            name.held_since = now;
            name.damaged = now;
        }
    }

    fn update(&self, dump: &Dump, clock: Clock<'_>) {
        let now = self.machine.now();
        let mut state = self.lock();
        let state = &mut *state;
        let known: BTreeSet<String> = state.names.keys().cloned().chain(locks(dump)).collect();
        for lock in known {
            let (new, server) = (view(dump, &lock), clock(&lock));
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
        let Executed { call, late, word, before, after, server, clock, hears } = executed;
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
                // A renewal concerns several names, and restores nothing.
                if verb(&call) != "renew" {
                    // A release or a change ends holds, but no tickets.
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
            let everyone = self.tells_everyone.load(Ordering::Relaxed);
            let listens = |id: &str| match &hears {
                Some(clients) => clients.contains(client_of(id)),
                None => everyone || state.listeners.get(client_of(id)).is_some_and(|listener| listener.count > 0),
            };
            let found = Step { call, word, before: &before, after: &after, now: server }.check(highest, listens);
            found.or_else(|| state.never_had(lock, &call, &before))
        };
        self.found(found);
        if call.script.name().starts_with("permit_") && !matches!(verb(&call), "renew" | "inspect") {
            self.found(conserved(after, lock));
        }
        self.update(after, clock);
    }
}
