//! The channels on which others say that a lock is free, and the keys whose changes the server reports. A client
//! subscribes each once, for all of its tasks that wait there, and ends the subscription some time after the last of
//! them is gone. A watched key is called a channel here.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::connection::Connection;
use crate::engine::Engine;
use crate::mutex::lock;
use crate::protocol::kind::Kind;
use crate::runtime::Executor;
use shared::{Channel, Shared, Subscription};

pub(crate) use listener::{Heard, Listener};

mod listener;
mod shared;

/// What is announced on a channel that a client publishes to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Announced {
    Locks,
    Permits,
}

impl Announced {
    /// What a release of a hold of that kind announces.
    pub(crate) fn of(kind: Kind) -> Self {
        if let Kind::TimedPermit { .. } = kind { Self::Permits } else { Self::Locks }
    }
}

/// The channels of a client. They end when it is dropped.
#[derive(Debug)]
pub(crate) struct Channels {
    shared: Arc<Shared>,
}

impl Channels {
    /// With the channel of the client, the names are those of keys.
    pub(crate) fn new(
        executor: &Arc<dyn Executor>,
        connection: &Arc<dyn Connection>,
        engine: &Arc<Engine>,
        inbox: Option<String>,
    ) -> Self {
        let (executor, connection, engine) = (Arc::clone(executor), Arc::clone(connection), Arc::clone(engine));
        let (table, is_tried) = (Mutex::default(), Default::default());
        Self { shared: Arc::new(Shared { executor, connection, engine, inbox, table, is_tried }) }
    }

    /// Listens to the channel until the listener is dropped. The first listener subscribes it, in a task.
    pub(crate) fn listen(&self, name: &str) -> Listener {
        let shared = Arc::clone(&self.shared);
        let mut table = lock(&shared.table);
        let name: Arc<str> =
            table.channels.get_key_value(name).map_or_else(|| name.into(), |(name, _)| Arc::clone(name));
        let is_new = !table.channels.contains_key(&name);
        let channel = table.channels.entry(Arc::clone(&name)).or_insert_with(|| Channel {
            listeners: 0,
            news: 0,
            subscription: Subscription::Begins,
            changed: Arc::default(),
            used: Arc::default(),
        });
        channel.listeners += 1;
        let (changed, used) = (Arc::clone(&channel.changed), Arc::clone(&channel.used));
        drop(table);
        used.notify(usize::MAX);
        let listener = Listener { shared, name, changed, used };
        if is_new {
            self.shared.executor.spawn(Box::pin(listener.serve()));
        }
        listener
    }

    /// Whether nobody has found out yet that the user may publish to such channels.
    pub(crate) fn is_untried(&self, of: Announced) -> bool {
        !self.tried(of).load(Ordering::Relaxed)
    }

    pub(crate) fn set_tried(&self, of: Announced) {
        self.tried(of).store(true, Ordering::Relaxed);
    }

    fn tried(&self, of: Announced) -> &AtomicBool {
        let [locks, permits] = &self.shared.is_tried;
        match of {
            Announced::Locks => locks,
            Announced::Permits => permits,
        }
    }

    /// How many tasks listen to the channel.
    pub(crate) fn listeners(&self, name: &str) -> usize {
        self.shared.look(name, |channel| channel.map_or(0, |channel| channel.listeners))
    }
}

impl Channels {
    /// Whether the client has the channel subscribed, with a listener or without.
    pub(crate) fn is_subscribed(&self, name: &str) -> bool {
        self.shared.look(name, |channel| channel.is_some_and(|channel| channel.is_open()))
    }

    /// Whether the server counts the client as a listener of the channel, as far as is known. After a gap, that is not
    /// known before the next message.
    pub(crate) fn hears(&self, name: &str) -> bool {
        self.shared.look(name, |channel| channel.is_some_and(Channel::hears))
    }
}

impl Drop for Channels {
    fn drop(&mut self) {
        let mut table = lock(&self.shared.table);
        table.is_closed = true;
        let used: Vec<_> = table.channels.values().map(|channel| Arc::clone(&channel.used)).collect();
        drop(table);
        for used in used {
            used.notify(usize::MAX);
        }
    }
}
