//! Who waits for whom. Pure.
//!
//! First the clients are left out that will get on: those that wait for nothing, and then those that wait only for
//! clients that will get on, until no more is found. Those that are left wait for ever, for each other or behind the
//! others. Then those are left out for whom nobody waits. Among the rest, the shortest cycles are looked for.
//!
//! A waiter of a lock waits for its holder, and for all that are before it in the queue. A reader waits for the writer
//! that holds, and for writers before it. A waiter of a semaphore waits for those before it, and for as many permits as
//! it wants: these are there as soon as some of the holders get on, whichever.
//!
//! The ticket of a client that holds a part of the same name does not count. It nearly always belongs to another task,
//! or to a cohort that asks for its next budget ahead.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use crate::names::NameInUse;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::limits::{READ, WRITE};
use crate::protocol::seen::{Seen, SeenHold};
use crate::protocol::ticket::{Claim, Ticket};
use crate::protocol::token::Token;

/// A name and what was stored of it.
#[derive(Clone, Debug)]
pub(super) struct Looked {
    pub(super) name: NameInUse,
    pub(super) seen: Seen,
}

/// A client waits for a name, and another client is in its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) waiter: Uuid,
    /// Which of the names.
    pub(super) at: usize,
    pub(super) claim: Claim,
    pub(super) blocker: Uuid,
    /// The token of the hold that is in the way. `None`: the blocker waits, too.
    pub(super) hold: Option<Token>,
}

impl Looked {
    pub(super) fn new(name: NameInUse, mut seen: Seen) -> Self {
        let holders: BTreeSet<Uuid> = seen.holds.iter().filter_map(|hold| AttemptId::client_of(&hold.id)).collect();
        seen.queue.retain(|ticket| !holders.contains(&ticket.id.client));
        Self { name, seen }
    }

    /// Forgets the holds and tickets that were not in an earlier look.
    pub(super) fn keep_what_was_in(&mut self, before: &Self) {
        let ids: BTreeSet<_> = before.seen.holds.iter().map(|hold| (&hold.id, hold.token)).collect();
        self.seen.holds.retain(|hold| ids.contains(&(&hold.id, hold.token)));
        let ids: BTreeSet<AttemptId> = before.seen.queue.iter().map(|ticket| ticket.id).collect();
        self.seen.queue.retain(|ticket| ids.contains(&ticket.id));
    }

    /// The clients that will not get on if those in `stuck` do not.
    fn stuck<'a>(&'a self, stuck: &'a BTreeSet<Uuid>) -> impl Iterator<Item = Uuid> {
        let (mut all, mut not_readers) = (Two::default(), Two::default());
        let is_stuck = move |ticket: &&Ticket| {
            let client = ticket.id.client;
            let before = if is_reader(ticket.claim) { &not_readers } else { &all };
            let is_stuck = before.has_another(client) || self.held_from(ticket, stuck).next().is_some();
            if stuck.contains(&client) {
                all.add(client);
                if !is_reader(ticket.claim) {
                    not_readers.add(client);
                }
            }
            is_stuck
        };
        self.seen.queue.iter().filter(is_stuck).map(|ticket| ticket.id.client)
    }

    /// The clients in `stuck` that others in `stuck` wait for.
    fn awaited<'a>(&'a self, stuck: &'a BTreeSet<Uuid>) -> impl Iterator<Item = Uuid> {
        let queue = || self.seen.queue.iter().filter(|ticket| stuck.contains(&ticket.id.client));
        let holders = queue().flat_map(|ticket| self.held_from(ticket, stuck).map(|(client, _)| client));
        let (mut all, mut not_readers) = (Two::default(), Two::default());
        let is_awaited = move |ticket: &&Ticket| {
            let client = ticket.id.client;
            let behind = if is_reader(ticket.claim) { &not_readers } else { &all };
            let is_awaited = behind.has_another(client);
            all.add(client);
            if !is_reader(ticket.claim) {
                not_readers.add(client);
            }
            is_awaited
        };
        holders.chain(queue().rev().filter(is_awaited).map(|ticket| ticket.id.client))
    }

    /// The holds of other clients in `stuck` that keep the ticket waiting.
    fn held_from<'a>(
        &'a self,
        ticket: &'a Ticket,
        stuck: &'a BTreeSet<Uuid>,
    ) -> impl Iterator<Item = (Uuid, &'a SeenHold)> {
        let holds = move || {
            let of_client = |hold: &'a SeenHold| Some((AttemptId::client_of(&hold.id)?, hold));
            let others = move |(client, _): &(Uuid, _)| *client != ticket.id.client && stuck.contains(client);
            self.seen.holds.iter().filter_map(of_client).filter(others)
        };
        let keeps_waiting = match ticket.claim {
            Claim::Units { units, limit } if limit != WRITE => {
                let held = holds().map(|(_, hold)| units_of(hold.claim)).fold(0, u32::saturating_add);
                held.saturating_add(units) > self.seen.limit.unwrap_or(limit)
            }
            _ => true,
        };
        holds().filter(move |(_, hold)| keeps_waiting && excludes(ticket.claim, hold.claim))
    }
}

/// Whether the ticket waits for an earlier one of another client.
fn waits_behind(ticket: &Ticket, before: &Ticket) -> bool {
    ticket.id.client != before.id.client && !(is_reader(ticket.claim) && is_reader(before.claim))
}

/// Whether a hold with the claim `held` keeps out one that is wanted. Holds of permits add up instead.
fn excludes(wanted: Claim, held: Claim) -> bool {
    !(is_reader(wanted) && is_reader(held))
}

fn is_reader(claim: Claim) -> bool {
    matches!(claim, Claim::Units { units: READ, limit: WRITE })
}

fn units_of(claim: Claim) -> u32 {
    if let Claim::Units { units, .. } = claim { units } else { 0 }
}

/// The first two clients of many: enough to know whether there is one beside a certain one.
#[derive(Default)]
struct Two(Vec<Uuid>);

impl Two {
    fn add(&mut self, client: Uuid) {
        if self.0.len() < 2 && !self.0.contains(&client) {
            self.0.push(client);
        }
    }

    fn has_another(&self, client: Uuid) -> bool {
        self.0.iter().any(|other| *other != client)
    }
}

/// Cycles of clients that wait for each other: of those through a client, the one with the fewest waits behind others
/// in a queue, and of these the shortest. Each has a hold in it. Each client of a cycle is in one of them; at most
/// `most` are returned.
pub(super) fn cycles(looked: &[Looked], most: usize) -> Vec<Vec<Edge>> {
    let waiting = looked.iter().flat_map(|look| look.seen.queue.iter().map(|ticket| ticket.id.client)).collect();
    let stuck = shrunk(waiting, |stuck| looked.iter().flat_map(|look| look.stuck(stuck)).collect());
    // Those behind a deadlock are many, and nobody waits for the last of them.
    let core = shrunk(stuck, |stuck| looked.iter().flat_map(|look| look.awaited(stuck)).collect());
    let edges = edges(looked, &core);
    let (mut found, mut covered) = (Vec::new(), BTreeSet::new());
    for client in &core {
        if found.len() == most || covered.contains(client) {
            continue;
        }
        let cycle = cycle_of(*client, &edges).filter(|cycle| cycle.iter().any(|edge| edge.hold.is_some()));
        if let Some(cycle) = cycle {
            covered.extend(cycle.iter().map(|edge| edge.waiter));
            found.push(cycle);
        }
    }
    found
}

/// Keeps what `next` keeps of it, until nothing more goes.
fn shrunk(mut all: BTreeSet<Uuid>, next: impl Fn(&BTreeSet<Uuid>) -> BTreeSet<Uuid>) -> BTreeSet<Uuid> {
    loop {
        let kept: BTreeSet<Uuid> = next(&all).intersection(&all).copied().collect();
        if kept.len() == all.len() {
            return kept;
        }
        all = kept;
    }
}

type Edges = BTreeMap<Uuid, BTreeMap<Uuid, Edge>>;

/// From each client that is stuck to the stuck clients in its way: by a hold if there is one, otherwise by a ticket.
fn edges(looked: &[Looked], stuck: &BTreeSet<Uuid>) -> Edges {
    let mut edges = Edges::new();
    let mut add = |edge: Edge| {
        let known = edges.entry(edge.waiter).or_default().entry(edge.blocker).or_insert(edge);
        if known.hold < edge.hold {
            *known = edge;
        }
    };
    for (at, look) in looked.iter().enumerate() {
        let mut before: Vec<&Ticket> = Vec::new();
        for ticket in look.seen.queue.iter().filter(|ticket| stuck.contains(&ticket.id.client)) {
            let Ticket { id, claim, .. } = *ticket;
            let edge = |blocker, hold| Edge { waiter: id.client, at, claim, blocker, hold };
            look.held_from(ticket, stuck).for_each(|(blocker, hold)| add(edge(blocker, Some(hold.token))));
            before
                .iter()
                .filter(|other| waits_behind(ticket, other))
                .for_each(|other| add(edge(other.id.client, None)));
            before.push(ticket);
        }
    }
    edges
}

/// The cheapest way from a client back to itself, by Dijkstra's algorithm.
fn cycle_of(client: Uuid, edges: &Edges) -> Option<Vec<Edge>> {
    type Cost = (u32, u32);
    let mut best: BTreeMap<Uuid, (Cost, Edge)> = BTreeMap::new();
    let mut open: BTreeSet<(Cost, Uuid)> = BTreeSet::from([((0, 0), client)]);
    while let Some(((queued, length), from)) = open.pop_first() {
        if from == client && length > 0 {
            break;
        }
        for (to, edge) in edges.get(&from).into_iter().flatten() {
            let cost = (queued + u32::from(edge.hold.is_none()), length + 1);
            if best.get(to).is_none_or(|(known, _)| cost < *known) {
                if let Some((known, _)) = best.insert(*to, (cost, *edge)) {
                    open.remove(&(known, *to));
                }
                open.insert((cost, *to));
            }
        }
    }
    let mut cycle = vec![best.get(&client)?.1];
    while let Some((_, edge)) =
        cycle.last().filter(|edge| edge.waiter != client).and_then(|edge| best.get(&edge.waiter))
    {
        cycle.push(*edge);
    }
    cycle.reverse();
    Some(cycle)
}

#[cfg(test)]
mod tests;
