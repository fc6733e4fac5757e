//! Listening to a channel.

use std::pin::pin;
use std::sync::Arc;

use event_listener::Event;
use futures::future::{Either, select};

use super::shared::{Channel, Shared, Subscription};
use crate::connection::ConnectionError;
use crate::error::{Error, Result};
use crate::mutex::lock;
use crate::until::until;

/// What a listener has heard.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    news: Option<u64>,
    subscription: Subscription,
}

impl Heard {
    /// Whether no message is missed from now on.
    pub(crate) fn is_subscribed(&self) -> bool {
        matches!(self.subscription, Subscription::Open { .. })
    }

    /// Whether the user lacks a right to subscribe the channel, or to watch the key.
    pub(crate) fn lacks_a_right(&self) -> bool {
        matches!(&self.subscription, Subscription::Failed(ConnectionError::Refused { code, .. }) if code == "NOPERM")
    }

    /// Fails if the channel is not subscribed, and will not be by another attempt.
    pub(crate) fn check(&self, operation: &'static str, name: &str) -> Result<()> {
        match &self.subscription {
            Subscription::Failed(error) if !error.kind().is_retryable() => {
                Err(Error::new(error.kind(), operation).with_name(name).with_source(error.clone()))
            }
            _ => Ok(()),
        }
    }
}

/// A task that listens to a channel.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(super) shared: Arc<Shared>,
    pub(super) name: Arc<str>,
    pub(super) changed: Arc<Event>,
    pub(super) used: Arc<Event>,
}

impl Listener {
    /// Keeps the channel subscribed for as long as it is used.
    pub(super) fn serve(&self) -> impl Future<Output = ()> + Send + 'static {
        let (shared, name) = (Arc::clone(&self.shared), Arc::clone(&self.name));
        let (changed, used) = (Arc::clone(&self.changed), Arc::clone(&self.used));
        async move {
            loop {
                let (read, unused) = (pin!(shared.read(&name)), pin!(shared.unused(&name, &used)));
                match select(read, unused).await {
                    // The connection is closed. Those who listen find out, and the next ones have another channel.
                    Either::Left(_) => {
                        lock(&shared.table).channels.remove(&name);
                        changed.notify(usize::MAX);
                        return;
                    }
                    Either::Right(_) if shared.remove_unused(&name) => return,
                    // A task has come at the last moment, and the subscription begins anew.
                    Either::Right(_) => shared.set(&name, Subscription::Begins),
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
        let mut table = lock(&self.shared.table);
        // When a connection was closed, another channel may have taken the place of this one.
        let own = table.channels.get_mut(&self.name).filter(|channel| Arc::ptr_eq(&channel.used, &self.used));
        if let Some(channel) = own {
            channel.listeners = channel.listeners.saturating_sub(1);
        }
        drop(table);
        self.used.notify(usize::MAX);
    }
}
