//! The channels on which others say that a lock is free. A client subscribes each once, for all of its tasks that wait
//! there, and ends the subscription some time after the last of them is gone.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use event_listener::Event;
use futures::StreamExt;
use futures::future::{Either, select};

use crate::backoff::Backoff;
use crate::connection::{Connection, ConnectionError, Notice};
use crate::engine::Engine;
use crate::mutant::{self, Mutant};
use crate::mutex::lock;
use crate::runtime::Executor;
use crate::tuning::{CHANNEL_IDLE, INBOX};
use crate::until::until;

pub(crate) use listener::{Heard, Listener};

mod listener;

/// The channels of a client. They end when it is dropped.
#[derive(Debug)]
pub(crate) struct Channels {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    executor: Arc<dyn Executor>,
    connection: Arc<dyn Connection>,
    engine: Arc<Engine>,
    table: Mutex<Table>,
    /// Whether the user may publish to such a channel.
    is_tried: AtomicBool,
}

#[derive(Debug, Default)]
struct Table {
    channels: HashMap<Arc<str>, Channel>,
    is_closed: bool,
}

#[derive(Debug)]
struct Channel {
    listeners: usize,
    /// Grows when something may have changed: with each message and each gap, and when the subscription begins or ends.
    news: u64,
    subscription: Subscription,
    /// Notified after each change of these, for those who listen.
    changed: Arc<Event>,
    /// Notified when the first listener comes and the last one goes, for the task. It also tells this channel from an
    /// earlier one of the same name.
    used: Arc<Event>,
}

#[derive(Clone, Debug)]
enum Subscription {
    Begins,
    Open,
    /// There is none now. It is tried again, unless the connection is closed.
    Failed(ConnectionError),
}

impl Channels {
    pub(crate) fn new(executor: &Arc<dyn Executor>, connection: &Arc<dyn Connection>, engine: &Arc<Engine>) -> Self {
        let (executor, connection, engine) = (Arc::clone(executor), Arc::clone(connection), Arc::clone(engine));
        let (table, is_tried) = (Mutex::default(), AtomicBool::new(false));
        Self { shared: Arc::new(Shared { executor, connection, engine, table, is_tried }) }
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

    /// Whether nobody has found out yet that the user may publish.
    pub(crate) fn is_untried(&self) -> bool {
        !self.shared.is_tried.load(Ordering::Relaxed)
    }

    pub(crate) fn set_tried(&self) {
        self.shared.is_tried.store(true, Ordering::Relaxed);
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
}

impl Channel {
    fn is_open(&self) -> bool {
        matches!(self.subscription, Subscription::Open)
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

impl Shared {
    fn look<T>(&self, name: &str, found: impl FnOnce(Option<&Channel>) -> T) -> T {
        found(lock(&self.table).channels.get(name))
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut Channel)) {
        let changed = {
            let mut table = lock(&self.table);
            let Some(channel) = table.channels.get_mut(name) else { return };
            change(channel);
            Arc::clone(&channel.changed)
        };
        changed.notify(usize::MAX);
    }

    /// Something may have changed.
    fn add_news(&self, name: &str) {
        self.change(name, |channel| channel.news += 1);
    }

    /// What was released before the subscription is not announced on it, so that its beginning is news.
    fn set(&self, name: &str, subscription: Subscription) {
        let is_news = u64::from(!mutant::on(Mutant::SubscriptionNoNews));
        self.change(name, |channel| (channel.subscription, channel.news) = (subscription, channel.news + is_news));
    }

    /// Whether the channel has a listener, or the client is gone.
    fn is_used(&self, name: &str) -> (bool, bool) {
        let table = lock(&self.table);
        (table.channels.get(name).is_some_and(|channel| channel.listeners > 0), table.is_closed)
    }

    /// Removes the channel, unless a task listens.
    fn remove_unused(&self, name: &str) -> bool {
        let mut table = lock(&self.table);
        let is_used = table.channels.get(name).is_some_and(|channel| channel.listeners > 0) && !table.is_closed;
        if !is_used {
            table.channels.remove(name);
        }
        !is_used
    }

    /// Reads the channel until the connection is closed.
    async fn read(&self, name: &str) {
        let mut backoff = Backoff::new(INBOX, self.engine.jitter_seed());
        loop {
            match self.connection.subscribe(name).await {
                Ok(mut notices) => {
                    self.set(name, Subscription::Open);
                    while let Some(notice) = notices.next().await {
                        match notice {
                            // What the message says does not matter: whoever waits asks the server.
                            Notice::Message(_) if mutant::on(Mutant::AnnouncementIgnored) => {}
                            Notice::Message(_) => self.add_news(name),
                            // After a refusal, it is subscribed again.
                            Notice::Gap => self.set(name, Subscription::Open),
                            Notice::Refused(refusal) => {
                                self.engine.subscription_refused(&refusal);
                                self.set(name, Subscription::Failed(refusal));
                            }
                        }
                    }
                    self.set(name, Subscription::Failed(ConnectionError::Closed));
                    return;
                }
                Err(error) => {
                    let is_closed = matches!(error, ConnectionError::Closed);
                    self.set(name, Subscription::Failed(error));
                    if is_closed {
                        return;
                    }
                    self.executor.sleep(backoff.pause()).await;
                }
            }
        }
    }

    /// Resolves when nobody has listened for a time, or the client is gone.
    async fn unused(&self, name: &str, used: &Event) {
        loop {
            let is_closed = until(used, || match self.is_used(name) {
                (_, true) => Some(true),
                (false, false) => Some(false),
                (true, false) => None,
            });
            if is_closed.await {
                return;
            }
            let again = pin!(until(used, || match self.is_used(name) {
                (true, false) => Some(()),
                // The end of the client ends the pause, too.
                (_, is_closed) => is_closed.then_some(()),
            }));
            if let Either::Left(_) = select(self.executor.sleep(CHANNEL_IDLE), again).await {
                return;
            }
        }
    }
}
