//! Slots that move from one master to another.

use std::ops::RangeInclusive;

use redis::RedisResult;

use super::Cluster;
use crate::server::Server;

impl Cluster {
    /// Moves slots with the keys in them to the master `to`, as an operator does, one after the other.
    pub fn reshard(&self, slots: RangeInclusive<u16>, to: usize) {
        for slot in slots {
            let from = self.owner_of_slot(slot);
            if from != to {
                self.open_slot(slot, from, to);
                self.close_slot(slot, from, to);
            }
        }
        self.await_agreement();
    }

    /// Begins to move a slot: `from` sends clients that ask for a missing key to `to`, and answers `TRYAGAIN` to a call
    /// of which it has some keys only.
    pub fn open_slot(&self, slot: u16, from: usize, to: usize) {
        self.set_slot(to, slot, &["IMPORTING", &self.ids[from]]).unwrap();
        self.set_slot(from, slot, &["MIGRATING", &self.ids[to]]).unwrap();
    }

    /// Moves those keys of an open slot that are there now, at most `most`; returns how many these were.
    pub fn move_keys(&self, slot: u16, from: usize, to: usize, most: usize) -> usize {
        let mut client = self.nodes[from].client();
        let keys: Vec<String> =
            redis::cmd("CLUSTER").arg("GETKEYSINSLOT").arg(slot).arg(most).query(&mut client).unwrap();
        if !keys.is_empty() {
            let mut migrate = redis::cmd("MIGRATE");
            migrate.arg("127.0.0.1").arg(self.nodes[to].port()).arg("").arg(0).arg(10_000).arg("KEYS").arg(&keys);
            migrate.exec(&mut client).unwrap();
        }
        keys.len()
    }

    /// Moves the keys that are left in an open slot, and makes `to` its master.
    pub fn close_slot(&self, slot: u16, from: usize, to: usize) {
        let owner = ["NODE", &self.ids[to]];
        // The new master is told first, because it tells all other nodes.
        loop {
            while self.move_keys(slot, from, to, 100) > 0 {}
            self.set_slot(to, slot, &owner).unwrap();
            // The old master does not give up a slot that has keys, and a key may have been written again.
            if self.set_slot(from, slot, &owner).is_ok() {
                break;
            }
        }
        for node in self.alive().filter(|&node| node != from && node != to) {
            // A replica refuses, and learns of the change from its master.
            let _ = self.set_slot(node, slot, &owner);
        }
    }

    fn set_slot(&self, node: usize, slot: u16, what: &[&str]) -> RedisResult<()> {
        let mut client = Server::client(&self.nodes[node]);
        redis::cmd("CLUSTER").arg("SETSLOT").arg(slot).arg(what).exec(&mut client)
    }
}
