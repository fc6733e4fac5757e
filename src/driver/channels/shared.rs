//! The state of the channels of a client, and the task that keeps one of them subscribed.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::AtomicBool;
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

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) executor: Arc<dyn Executor>,
    pub(super) connection: Arc<dyn Connection>,
    pub(super) engine: Arc<Engine>,
    /// The channel of the client, if the names are those of keys.
    pub(super) inbox: Option<String>,
    pub(super) table: Mutex<Table>,
    /// Whether the user may publish to channels of locks, and of permits.
    pub(super) is_tried: [AtomicBool; 2],
}

#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) channels: HashMap<Arc<str>, Channel>,
    pub(super) is_closed: bool,
}

#[derive(Debug)]
pub(super) struct Channel {
    pub(super) listeners: usize,
    /// Grows when something may have changed: with each message and each gap, and when the subscription begins or ends.
    pub(super) news: u64,
    pub(super) subscription: Subscription,
    /// Notified after each change of these, for those who listen.
    pub(super) changed: Arc<Event>,
    /// Notified when the first listener comes and the last one goes, for the task. It also tells this channel from an
    /// earlier one of the same name.
    pub(super) used: Arc<Event>,
}

#[derive(Clone, Debug)]
pub(super) enum Subscription {
    Begins,
    /// `hears`: a message has come since the last gap, if there was one. Until then, the socket may be down.
    Open {
        hears: bool,
    },
    /// There is none now. It is tried again, unless the connection is closed.
    Failed(ConnectionError),
}

impl Channel {
    pub(super) fn is_open(&self) -> bool {
        matches!(self.subscription, Subscription::Open { .. })
    }

    pub(super) fn hears(&self) -> bool {
        matches!(self.subscription, Subscription::Open { hears: true })
    }
}

impl Shared {
    pub(super) fn look<T>(&self, name: &str, found: impl FnOnce(Option<&Channel>) -> T) -> T {
        found(lock(&self.table).channels.get(name))
    }

    pub(super) fn change(&self, name: &str, change: impl FnOnce(&mut Channel)) {
        let changed = {
            let mut table = lock(&self.table);
            let Some(channel) = table.channels.get_mut(name) else { return };
            change(channel);
            Arc::clone(&channel.changed)
        };
        changed.notify(usize::MAX);
    }

    /// Something may have changed.
    pub(super) fn add_news(&self, name: &str) {
        self.change(name, |channel| {
            channel.news += 1;
            if let Subscription::Open { hears } = &mut channel.subscription {
                *hears = true;
            }
        });
    }

    /// What was released before the subscription is not announced on it, so that its beginning is news.
    pub(super) fn set(&self, name: &str, subscription: Subscription) {
        let is_news = u64::from(!mutant::on(Mutant::SubscriptionNoNews));
        self.change(name, |channel| (channel.subscription, channel.news) = (subscription, channel.news + is_news));
    }

    /// Whether the channel has a listener, or the client is gone.
    pub(super) fn is_used(&self, name: &str) -> (bool, bool) {
        let table = lock(&self.table);
        (table.channels.get(name).is_some_and(|channel| channel.listeners > 0), table.is_closed)
    }

    /// Removes the channel, unless a task listens.
    pub(super) fn remove_unused(&self, name: &str) -> bool {
        let mut table = lock(&self.table);
        let is_used = table.channels.get(name).is_some_and(|channel| channel.listeners > 0) && !table.is_closed;
        if !is_used {
            table.channels.remove(name);
        }
        !is_used
    }

    /// Reads the channel until the connection is closed.
    pub(super) async fn read(&self, name: &str) {
        let mut backoff = Backoff::new(INBOX, self.engine.jitter_seed());
        loop {
            let subscribed = match &self.inbox {
                Some(inbox) => self.connection.watch_key(name, inbox),
                None => self.connection.subscribe(name),
            };
            match subscribed.await {
                Ok(mut notices) => {
                    self.set(name, Subscription::Open { hears: true });
                    while let Some(notice) = notices.next().await {
                        match notice {
                            // What the message says does not matter: whoever waits asks the server.
                            Notice::Message(_) if mutant::on(Mutant::AnnouncementIgnored) => {}
                            Notice::Message(_) => self.add_news(name),
                            Notice::Gap if self.inbox.is_some() && mutant::on(Mutant::WatchGapIgnored) => {}
                            // After a refusal, it is subscribed again.
                            Notice::Gap => self.set(name, Subscription::Open { hears: false }),
                            Notice::Refused(refusal) => {
                                // Who watches a key does not wait for a grant.
                                if self.inbox.is_none() {
                                    self.engine.subscription_refused(&refusal);
                                }
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
    pub(super) async fn unused(&self, name: &str, used: &Event) {
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
