//! Who waits for whom. Pure.
//!
//! 1. A client gets on if it waits for nothing, or only for clients that get on. The others are stuck.
//! 2. A stuck client that blocks no other stuck client stands behind a deadlock, and is left out. This is repeated,
//!    because the client in front of it may then block no other one.
//! 3. The shortest cycles are searched among the clients that are left.
//!
//! A waiter of a lock waits for the holder, and for all waiters before it in the queue. A reader waits for a writer
//! that holds, and for writers before it. A waiter of a semaphore waits for all waiters before it, and for permits: it
//! gets on as soon as holders of enough permits do.
//!
//! A ticket does not count if its client holds a part of the same name. It nearly always belongs to another task, or to
//! a cohort that asks for its next budget ahead. The ticket of an upgradable reader that upgrades does count: it waits
//! for the holds of all others.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use crate::names::NameInUse;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::limits::WRITE;
use crate::protocol::seen::{Seen, SeenHold};
use crate::protocol::ticket::{Claim, Ticket};
use crate::protocol::token::Token;

use passed::{Passed, is_reader};

mod passed;

/// A name and what was stored of it.
#[derive(Clone, Debug)]
pub(super) struct Looked {
    pub(super) name: NameInUse,
    /// Those that bowline wrote, with their clients.
    holds: Vec<(Uuid, SeenHold)>,
    /// The limit of a semaphore, if it is stored.
    limit: Option<u32>,
    queue: Vec<Ticket>,
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
    pub(super) fn new(name: NameInUse, Seen { holds, limit, mut queue, .. }: Seen) -> Self {
        let of_client = |hold: SeenHold| Some((AttemptId::client_of(&hold.id)?, hold));
        let holds: Vec<_> = holds.into_iter().filter_map(of_client).collect();
        let holders: BTreeSet<Uuid> = holds.iter().map(|(client, _)| *client).collect();
        queue.retain(|ticket| ticket.claim.goes_first() || !holders.contains(&ticket.id.client));
        Self { name, holds, limit, queue }
    }

    /// Forgets the holds and tickets that were not in an earlier look.
    pub(super) fn keep_what_was_in(&mut self, before: &Self) {
        let ids: BTreeSet<_> = before.holds.iter().map(|(_, hold)| (&hold.id, hold.token)).collect();
        self.holds.retain(|(_, hold)| ids.contains(&(&hold.id, hold.token)));
        let ids: BTreeSet<AttemptId> = before.queue.iter().map(|ticket| ticket.id).collect();
        self.queue.retain(|ticket| ids.contains(&ticket.id));
    }

    /// What these clients hold of the name.
    fn held_by(&self, clients: &BTreeSet<Uuid>) -> Held<'_> {
        let holds: Vec<_> = self.holds.iter().filter(|(client, _)| clients.contains(client)).collect();
        let units = holds.iter().map(|(_, hold)| units_of(hold.claim)).fold(0, u32::saturating_add);
        Held { holds, units, limit: self.limit }
    }

    /// The clients that do not get on if those in `stuck` do not.
    fn stuck(&self, stuck: &BTreeSet<Uuid>) -> impl Iterator<Item = Uuid> {
        let (held, mut before) = (self.held_by(stuck), Passed::default());
        let is_stuck = move |ticket: &&Ticket| {
            let is_stuck = before.has_one_for(ticket) || held.keeps_out(ticket);
            if stuck.contains(&ticket.id.client) {
                before.add(ticket);
            }
            is_stuck
        };
        self.queue.iter().filter(is_stuck).map(|ticket| ticket.id.client)
    }

    /// The clients in `stuck` whose holds may keep out others in `stuck`.
    fn blocking_by_holds(&self, stuck: &BTreeSet<Uuid>) -> impl Iterator<Item = Uuid> {
        let held = self.held_by(stuck);
        let mut tickets = self.queue.iter().filter(|ticket| stuck.contains(&ticket.id.client));
        let is_waited_for = tickets.any(|ticket| held.keeps_out(ticket));
        held.holds.into_iter().filter(move |_| is_waited_for).map(|(client, _)| *client)
    }

    /// The clients in `stuck` that others wait behind. Only those others count that are in `anchors`, or block others
    /// in turn.
    fn blocking_by_tickets(&self, stuck: &BTreeSet<Uuid>, anchors: &BTreeSet<Uuid>) -> impl Iterator<Item = Uuid> {
        let mut behind = Passed::default();
        let is_waited_for = move |ticket: &&Ticket| {
            let is_waited_for = behind.has_one_for(ticket);
            if is_waited_for || anchors.contains(&ticket.id.client) {
                behind.add(ticket);
            }
            is_waited_for
        };
        let queue = self.queue.iter().rev().filter(|ticket| stuck.contains(&ticket.id.client));
        queue.filter(is_waited_for).map(|ticket| ticket.id.client)
    }
}

/// Returns the clients in `stuck` that block other clients in it. A client is left out if it waits in one queue only,
/// if it holds nothing that another client in `stuck` waits for, and if all clients behind it in the queue are left
/// out.
fn blocking(looked: &[Looked], stuck: &BTreeSet<Uuid>) -> BTreeSet<Uuid> {
    let holders: BTreeSet<Uuid> = looked.iter().flat_map(|look| look.blocking_by_holds(stuck)).collect();
    let (mut once, mut anchors) = (BTreeSet::new(), holders.clone());
    for ticket in looked.iter().flat_map(|look| &look.queue) {
        if !once.insert(ticket.id.client) {
            anchors.insert(ticket.id.client);
        }
    }
    let waited_for = looked.iter().flat_map(|look| look.blocking_by_tickets(stuck, &anchors));
    waited_for.chain(holders).collect()
}

/// What some clients hold of a name.
struct Held<'a> {
    holds: Vec<&'a (Uuid, SeenHold)>,
    units: u32,
    limit: Option<u32>,
}

impl Held<'_> {
    /// Whether the ticket may have to wait as long as these holds last. A reader waits for those of them only that are
    /// not readers', see [`blockers`](Self::blockers).
    fn keeps_out(&self, ticket: &Ticket) -> bool {
        match ticket.claim {
            Claim::Units { units, limit } if limit != WRITE => {
                !self.holds.is_empty() && self.units.saturating_add(units) > self.limit.unwrap_or(limit)
            }
            _ => self.of_others(ticket).next().is_some(),
        }
    }

    /// The holds of other clients.
    fn of_others(&self, ticket: &Ticket) -> impl Iterator<Item = &(Uuid, SeenHold)> {
        let waiter = ticket.id.client;
        self.holds.iter().copied().filter(move |(client, _)| *client != waiter)
    }

    /// The holds that the ticket waits for.
    fn blockers(&self, ticket: &Ticket) -> impl Iterator<Item = &(Uuid, SeenHold)> {
        let (is_kept_out, claim) = (self.keeps_out(ticket), ticket.claim);
        self.of_others(ticket).filter(move |(_, hold)| is_kept_out && excludes(claim, hold.claim))
    }
}

/// Whether two clients can never have both at once. Permits count as if they could not.
fn excludes(wanted: Claim, held: Claim) -> bool {
    match (wanted, held) {
        // An upgrade asks for the rest of the units, and has all of them once it is granted.
        (Claim::Units { units, limit: WRITE }, Claim::Units { units: held, .. }) => {
            wanted.goes_first() || units.saturating_add(held) > WRITE
        }
        _ => true,
    }
}

/// Whether the ticket waits for an earlier one of another client.
fn waits_behind(ticket: &Ticket, before: &Ticket) -> bool {
    ticket.id.client != before.id.client && !(is_reader(ticket.claim) && is_reader(before.claim))
}

fn units_of(claim: Claim) -> u32 {
    if let Claim::Units { units, .. } = claim { units } else { 0 }
}

/// Cycles of clients that wait for each other: of those through a client that have a hold in it, the one with the
/// fewest waits behind others in a queue, and of these the shortest. At most `most` are returned.
pub(super) fn cycles(looked: &[Looked], most: usize) -> Vec<Vec<Edge>> {
    let waiting = looked.iter().flat_map(|look| look.queue.iter().map(|ticket| ticket.id.client)).collect();
    let stuck = shrunk(waiting, |stuck| looked.iter().flat_map(|look| look.stuck(stuck)).collect());
    // A deadlock may have a long queue behind it.
    let core = shrunk(stuck, |stuck| blocking(looked, stuck));
    let edges = edges(looked, &core);
    let (mut found, mut covered) = (Vec::new(), BTreeSet::new());
    for client in &core {
        if found.len() == most || covered.contains(client) {
            continue;
        }
        let is_news = |cycle: &Vec<Edge>| cycle.iter().any(|edge| !covered.contains(&edge.waiter));
        if let Some(cycle) = cycle_of(*client, &edges).filter(is_news) {
            covered.extend(cycle.iter().map(|edge| edge.waiter));
            found.push(cycle);
        }
    }
    found
}

/// Repeats `next`, which says whom to keep, until it keeps all.
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
        let (held, mut before) = (look.held_by(stuck), Vec::<&Ticket>::new());
        for ticket in look.queue.iter().filter(|ticket| stuck.contains(&ticket.id.client)) {
            let Ticket { id, claim, .. } = *ticket;
            let edge = |blocker, hold| Edge { waiter: id.client, at, claim, blocker, hold };
            held.blockers(ticket).for_each(|(blocker, hold)| add(edge(*blocker, Some(hold.token))));
            let before_it = before.iter().filter(|other| waits_behind(ticket, other));
            before_it.for_each(|other| add(edge(other.id.client, None)));
            before.push(ticket);
        }
    }
    edges
}

/// The cheapest cycle through the client that has a hold in it, by Dijkstra's algorithm. A place is a client, and
/// whether the way to it has a hold. If the cycle visits another client twice, the part between the two visits is a
/// cycle with a hold, and is returned instead.
fn cycle_of(client: Uuid, edges: &Edges) -> Option<Vec<Edge>> {
    type Cost = (u32, u32);
    type Place = (Uuid, bool);
    let (start, end): (Place, Place) = ((client, false), (client, true));
    let mut best: BTreeMap<Place, (Cost, Place, Edge)> = BTreeMap::new();
    let mut open: BTreeSet<(Cost, Place)> = BTreeSet::from([((0, 0), start)]);
    while let Some(((queued, length), from)) = open.pop_first() {
        if from == end {
            break;
        }
        for (to, edge) in edges.get(&from.0).into_iter().flatten() {
            let to = (*to, from.1 || edge.hold.is_some());
            let cost = (queued + u32::from(edge.hold.is_none()), length + 1);
            if to != start && best.get(&to).is_none_or(|(known, ..)| cost < *known) {
                if let Some((known, ..)) = best.insert(to, (cost, from, *edge)) {
                    open.remove(&(known, to));
                }
                open.insert((cost, to));
            }
        }
    }
    let (mut cycle, mut at) = (Vec::new(), end);
    while at != start {
        let (_, from, edge) = best.get(&at)?;
        cycle.push(*edge);
        at = *from;
    }
    cycle.reverse();
    let again = |end: &usize| cycle[..*end].iter().position(|edge| edge.waiter == cycle[*end].waiter);
    let inner = (0..cycle.len()).find_map(|end| Some(again(&end)?..end));
    Some(inner.map_or_else(|| cycle.clone(), |inner| cycle[inner].to_vec()))
}

#[cfg(test)]
mod tests;
