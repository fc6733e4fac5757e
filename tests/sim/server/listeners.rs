//! Who listens at which server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use super::SimServer;
use crate::judge::{Judge, inbox};
use crate::nodes::{Node, Nodes, reader, slot_of};

/// The subscriptions to each inbox at each server. The judge knows of those that hear what the masters publish.
#[derive(Default)]
pub struct Listeners(BTreeMap<(Node, String), Subscribed>);

struct Subscribed {
    client: String,
    /// That of a shard channel.
    slot: Option<&'static str>,
    count: usize,
    /// What a script that a master executes publishes gets there.
    heard: bool,
}

/// What is published through shard channels stays at the master of the slot.
fn is_heard(nodes: &Nodes, node: Node, slot: Option<&str>) -> bool {
    match slot {
        Some(slot) => nodes.map().owner(slot) == node,
        None => nodes.on_the_bus().contains(&node),
    }
}

impl Listeners {
    /// Names or slots may have other masters.
    pub fn moved(&mut self, judge: &Judge, nodes: &Nodes) {
        for ((node, inbox), subscribed) in &mut self.0 {
            let did = std::mem::replace(&mut subscribed.heard, is_heard(nodes, *node, subscribed.slot));
            if did != subscribed.heard {
                judge.listens_elsewhere(inbox, subscribed.count, subscribed.heard);
            }
        }
    }

    /// The clients that have a shard channel of the slot at this server.
    pub fn at(&self, node: Node, slot: &str) -> BTreeSet<String> {
        let here = self.0.iter().filter(|((at, _), subscribed)| *at == node && subscribed.slot == Some(slot));
        here.filter(|(_, subscribed)| subscribed.count > 0).map(|(_, subscribed)| subscribed.client.clone()).collect()
    }
}

/// A subscription, counted for as long as it lives.
pub struct Listening {
    judge: Arc<Judge>,
    all: Arc<Mutex<Listeners>>,
    at: (Node, String),
}

impl Listening {
    pub fn new(server: &SimServer, node: Node, channel: &str) -> Self {
        let (client, slot) = (reader(channel).to_owned(), slot_of(channel));
        let (judge, all) = (server.judge.clone(), server.listening.clone());
        let listening = Self { judge, all, at: (node, inbox(&client, slot)) };
        let heard = is_heard(&server.nodes, node, slot);
        let subscribed = Subscribed { client, slot, count: 0, heard };
        listening.all.lock().unwrap().0.entry(listening.at.clone()).or_insert(subscribed);
        listening.count(true);
        listening
    }

    fn count(&self, begins: bool) {
        let mut all = self.all.lock().unwrap();
        let Some(subscribed) = all.0.get_mut(&self.at) else { return };
        subscribed.count = if begins { subscribed.count + 1 } else { subscribed.count - 1 };
        if subscribed.heard {
            self.judge.listens(&self.at.1, begins);
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.count(false);
    }
}
