//! Whose inbox a channel is, and which slot it is about.

use bowline::wire::{PREFIX, Resource};

/// The names of runs and scenes over a cluster. Each has a slot of its own.
pub(super) const NAMES: [&str; 7] = ["name 0", "name 1", "name 2", "name 3", "name 4", "name 5", "scene"];

/// The client that reads the channel.
pub fn reader(channel: &str) -> &str {
    channel.rsplit(':').next().unwrap_or(channel)
}

/// The slot of a shard channel. `None`: the channel has none, as that of a lock of Redisson on one server.
pub fn slot_of(channel: &str) -> Option<&'static str> {
    (channel.starts_with(PREFIX) && channel.contains('{')).then(|| {
        let client = reader(channel).parse().expect("the id of a client");
        let is_inbox = |name: &&str| Resource::lock(PREFIX, name).unwrap().sharded(true).inbox(client) == channel;
        *NAMES.iter().find(|name| is_inbox(name)).expect("a name that stands in the list")
    })
}
