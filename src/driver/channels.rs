//! The channels on which others say that a lock is free. A client subscribes each once, for all of its tasks that wait
//! there, and ends the subscription some time after the last of them is gone.

use std::collections::HashMap;
use std::pin::pin;
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
    /// Notified after each change.
    changed: Arc<Event>,
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
        Self { shared: Arc::new(Shared { executor, connection, engine, table: Mutex::default() }) }
    }

    /// Listens to the channel until the listener is dropped. The first listener subscribes it, in a task.
    pub(crate) fn listen(&self, name: &str) -> Listener {
        let mut table = lock(&self.shared.table);
        if let Some((name, channel)) = table.channels.get_key_value(name) {
            let (name, changed) = (Arc::clone(name), Arc::clone(&channel.changed));
            table.channels.entry(Arc::clone(&name)).and_modify(|channel| channel.listeners += 1);
            drop(table);
            changed.notify(usize::MAX);
            return Listener { shared: Arc::clone(&self.shared), name, changed };
        }
        let (name, changed): (Arc<str>, Arc<Event>) = (name.into(), Arc::default());
        let subscription = Subscription::Begins;
        let channel = Channel { listeners: 1, news: 0, subscription, changed: Arc::clone(&changed) };
        table.channels.insert(Arc::clone(&name), channel);
        drop(table);
        let listener = Listener { shared: Arc::clone(&self.shared), name, changed };
        self.shared.executor.spawn(Box::pin(listener.serve()));
        listener
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
        let changed: Vec<_> = table.channels.values().map(|channel| Arc::clone(&channel.changed)).collect();
        drop(table);
        for changed in changed {
            changed.notify(usize::MAX);
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
                            Notice::Message(_) | Notice::Gap => self.add_news(name),
                            Notice::Refused(refusal) => self.engine.subscription_refused(&refusal),
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
    async fn unused(&self, name: &str, changed: &Event) {
        loop {
            let is_closed = until(changed, || match self.is_used(name) {
                (_, true) => Some(true),
                (false, false) => Some(false),
                (true, false) => None,
            });
            if is_closed.await {
                return;
            }
            let used = pin!(until(changed, || match self.is_used(name) {
                (true, false) => Some(()),
                // The end of the client ends the pause, too.
                (_, is_closed) => is_closed.then_some(()),
            }));
            if let Either::Left(_) = select(self.executor.sleep(CHANNEL_IDLE), used).await {
                return;
            }
        }
    }
}

/// What a listener has heard.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    news: Option<u64>,
    subscription: Subscription,
}

impl Heard {
    /// Whether no message is missed from now on.
    pub(crate) fn is_subscribed(&self) -> bool {
        matches!(self.subscription, Subscription::Open)
    }

    /// Why the channel is not subscribed, and will not be by another attempt.
    pub(crate) fn refusal(self) -> Option<ConnectionError> {
        match self.subscription {
            Subscription::Failed(error) if !error.kind().is_retryable() => Some(error),
            _ => None,
        }
    }
}

/// A task that listens to a channel.
#[derive(Debug)]
pub(crate) struct Listener {
    shared: Arc<Shared>,
    name: Arc<str>,
    changed: Arc<Event>,
}

impl Listener {
    /// Keeps the channel subscribed for as long as it is used.
    fn serve(&self) -> impl Future<Output = ()> + Send + 'static {
        let (shared, name, changed) = (Arc::clone(&self.shared), Arc::clone(&self.name), Arc::clone(&self.changed));
        async move {
            loop {
                let (read, unused) = (pin!(shared.read(&name)), pin!(shared.unused(&name, &changed)));
                match select(read, unused).await {
                    // The connection is closed. Those who listen find out, and the next ones have another channel.
                    Either::Left(_) => {
                        lock(&shared.table).channels.remove(&name);
                        changed.notify(usize::MAX);
                        return;
                    }
                    Either::Right(_) if shared.remove_unused(&name) => return,
                    Either::Right(_) => {}
                }
            }
        }
    }

    pub(crate) fn look(&self) -> Heard {
        self.shared.look(&self.name, |channel| match channel {
            Some(Channel { news, subscription, .. }) => Heard { news: Some(*news), subscription: subscription.clone() },
            None => Heard { news: None, subscription: Subscription::Failed(ConnectionError::Closed) },
        })
    }

    /// Resolves when there is news after that.
    pub(crate) async fn news_after(&self, known: &Heard) {
        until(&self.changed, || (self.look().news != known.news).then_some(())).await;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.shared.change(&self.name, |channel| channel.listeners = channel.listeners.saturating_sub(1));
    }
}
