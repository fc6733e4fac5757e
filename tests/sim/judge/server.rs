//! The server's side: what it has executed, and what the passing of time has changed in it.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use bowline::Call;

use super::grants::{Step, listens_to_reply, requeued, subjects, verb};
use super::view::{self, Dump, client_of, conserved, id_of, is_latch, is_used, locks, view};
use super::waits::{Client, Moment};
use super::{Judge, Name};
use crate::world::MS;

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
