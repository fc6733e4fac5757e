//! What a node says of itself and of the cluster, as far as it knows.

use super::resp::{Say, text};
use crate::nodes::{Node, Nodes, SLOTS, View};

/// All nodes are at this host, each with a port of its own.
pub const HOST: &str = "node";
const PORT: u16 = 7000;

pub fn port(node: Node) -> u16 {
    PORT + node as u16
}

/// The node at that port.
pub fn at(port: u16) -> Node {
    Node::from(port - PORT)
}

/// As in `MOVED`.
pub fn address(node: Node) -> String {
    format!("{HOST}:{}", port(node))
}

pub fn id(node: Node) -> String {
    format!("{:040x}", node + 1)
}

pub fn hello(nodes: &Nodes, node: Node) -> Say {
    let role = if nodes.is_replica(node) { "replica" } else { "master" };
    let pairs = [("server", "redis"), ("version", "7.2.0"), ("mode", "cluster"), ("role", role)];
    Say::Map(pairs.iter().map(|(key, value)| (text(*key), text(*value))).collect())
}

pub fn role(nodes: &Nodes, node: Node) -> Say {
    match nodes.is_replica(node) {
        true => Say::List(vec![text("slave"), text(HOST), Say::Number(0), text("connected"), Say::Number(0)]),
        false => Say::List(vec![text("master"), Say::Number(0), Say::List(Vec::new())]),
    }
}

pub fn info(nodes: &Nodes, node: Node) -> Say {
    let (state, view) = (if nodes.is_up(node) { "ok" } else { "fail" }, nodes.view(node));
    text(format!(
        "cluster_state:{state}\r\ncluster_slots_assigned:{SLOTS}\r\ncluster_slots_ok:{SLOTS}\r\n\
         cluster_known_nodes:{}\r\ncluster_size:{}\r\ncluster_current_epoch:{}\r\ncluster_my_epoch:{}\r\n",
        nodes.count(),
        view.shards.len(),
        nodes.current_epoch(node),
        view.epoch_of(node),
    ))
}

/// The runs of slots that one shard serves.
fn ranges(view: &View) -> Vec<(u16, u16, usize)> {
    let mut ranges: Vec<(u16, u16, usize)> = Vec::new();
    for (slot, shard) in view.owners().into_iter().enumerate() {
        let slot = slot as u16;
        match ranges.last_mut() {
            Some((_, last, other)) if *other == shard => *last = slot,
            _ => ranges.push((slot, slot, shard)),
        }
    }
    ranges
}

pub fn slots(nodes: &Nodes, node: Node) -> Say {
    let view = nodes.view(node);
    let one =
        |node: Node| Say::List(vec![text(HOST), Say::Number(port(node).into()), text(id(node)), Say::List(vec![])]);
    let range = |(first, last, shard): (u16, u16, usize)| {
        let shard = &view.shards[shard];
        let mut fields = vec![Say::Number(first.into()), Say::Number(last.into()), one(shard.master)];
        fields.extend(shard.replicas.iter().map(|replica| one(*replica)));
        Say::List(fields)
    };
    Say::List(ranges(&view).into_iter().map(range).collect())
}

fn written(view: &View, shard: usize) -> String {
    let of = ranges(view).into_iter().filter(|(.., other)| *other == shard);
    let words = of.map(|(first, last, _)| if first == last { format!(" {first}") } else { format!(" {first}-{last}") });
    words.collect()
}

pub fn nodes(nodes: &Nodes, node: Node) -> Say {
    let view = nodes.view(node);
    let line = |other: Node, flags: &str, master: &str, epoch: u64, slots: &str| {
        let myself = if other == node { "myself," } else { "" };
        let (id, address, bus) = (id(other), address(other), u32::from(port(other)) + 10_000);
        format!("{id} {address}@{bus} {myself}{flags} {master} 0 0 {epoch} connected{slots}\n")
    };
    let mut lines = String::new();
    for (at, shard) in view.shards.iter().enumerate() {
        lines += &line(shard.master, "master", "-", shard.epoch, &written(&view, at));
        for replica in &shard.replicas {
            lines += &line(*replica, "slave", &id(shard.master), shard.epoch, "");
        }
    }
    text(lines)
}

pub fn shards(nodes: &Nodes, node: Node) -> Say {
    let view = nodes.view(node);
    let one = |node: Node, role: &str| {
        let field = |name: &str, value: Say| (text(name), value);
        Say::Map(vec![
            field("id", text(id(node))),
            field("port", Say::Number(port(node).into())),
            field("ip", text(HOST)),
            field("endpoint", text(HOST)),
            field("role", text(role)),
            field("replication-offset", Say::Number(0)),
            field("health", text("online")),
        ])
    };
    let shard = |at: usize| {
        let shard = &view.shards[at];
        let own = ranges(&view).into_iter().filter(|(.., other)| *other == at);
        let slots = own.flat_map(|(first, last, _)| [first, last]).map(|slot| Say::Number(slot.into()));
        let replicas = shard.replicas.iter().map(|replica| one(*replica, "replica"));
        let members = std::iter::once(one(shard.master, "master")).chain(replicas).collect();
        Say::Map(vec![(text("slots"), Say::List(slots.collect())), (text("nodes"), Say::List(members))])
    };
    Say::List((0..view.shards.len()).map(shard).collect())
}
