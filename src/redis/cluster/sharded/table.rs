//! Which shard channels are wanted, where each one is subscribed, and which subscriptions get its messages. Pure.
//!
//! | a channel is | left by |
//! |---|---|
//! | wanted | the drop of its last subscription; a refusal, if none of its subscriptions was confirmed before |
//! | subscribed at a master | the loss of the subscription there, after which the channel is still wanted |

use std::sync::Arc;

use futures::channel::mpsc::UnboundedSender;
use rustc_hash::FxHashMap;

use super::super::super::failure::Failure;
use super::super::host::Host;
use super::news::News;
use super::places::Places;
use super::subscriber::{Confirm, Subscriber};
use crate::connection::Notice;
use crate::protocol::slot;

#[derive(Default)]
pub(in super::super) struct Table {
    channels: FxHashMap<Arc<str>, Channel>,
    pub(in super::super) places: Places,
    news: News,
    last_id: u64,
    closed: bool,
}

struct Channel {
    slot: u16,
    /// The master at which the channel is subscribed.
    at: Option<Host>,
    /// The last failure, until the channel is subscribed.
    trouble: Option<Failure>,
    /// Whether a refusal was reported since the channel was last subscribed.
    refused: bool,
    subscriptions: Vec<Subscriber>,
}

impl Table {
    /// Adds a subscription, and returns its number. `None`: the connection is closed.
    pub(super) fn add(&mut self, name: &Arc<str>, notices: UnboundedSender<Notice>, confirm: Confirm) -> Option<u64> {
        if self.closed {
            return None;
        }
        self.last_id += 1;
        let channel = self.channels.entry(Arc::clone(name)).or_insert_with(|| {
            let slot = slot::of(name);
            self.places.want(name, slot);
            Channel { slot, at: None, trouble: None, refused: false, subscriptions: Vec::new() }
        });
        let mut subscription = Subscriber { id: self.last_id, notices, confirm: Some(confirm) };
        if channel.at.is_some() {
            self.news.confirm(&mut subscription);
        }
        channel.subscriptions.push(subscription);
        Some(self.last_id)
    }

    pub(super) fn remove(&mut self, name: &Arc<str>, id: u64) {
        let Some(channel) = self.channels.get_mut(name) else { return };
        self.news.ended(channel.subscriptions.extract_if(.., |subscription| subscription.id == id));
        if channel.subscriptions.is_empty() {
            self.unwant(name);
        }
    }

    fn unwant(&mut self, name: &str) {
        let Some((name, channel)) = self.channels.remove_entry(name) else { return };
        if let Some(host) = &channel.at {
            self.places.left(host, &name);
        }
        self.places.unwant(&name, channel.slot);
    }

    /// Whether the channel is wanted at this master.
    pub(super) fn is_wanted_at(&self, name: &str, host: &Host) -> bool {
        self.places.wanted(host).is_some_and(|wanted| wanted.contains(name))
    }

    /// Records that a master has subscribed the channel. For subscriptions confirmed before, this ends an interruption.
    pub(super) fn subscribed(&mut self, name: &Arc<str>, host: &Host) {
        let Some(channel) = self.channels.get_mut(name) else { return };
        channel.trouble = None;
        channel.refused = false;
        let moved = channel.at.as_ref() != Some(host);
        if moved {
            if let Some(old) = channel.at.replace(host.clone()) {
                self.places.left(&old, name);
            }
            self.places.subscribed(host, name);
        }
        for subscription in &mut channel.subscriptions {
            if !self.news.confirm(subscription) && moved {
                self.news.notice(&subscription.notices, Notice::Gap);
            }
        }
    }

    /// Records the answer of a master that the channel is subscribed. The answer does not count if the slot has another
    /// master by now: the new one may have confirmed the channel already.
    pub(super) fn confirmed(&mut self, name: &Arc<str>, host: &Host) {
        if self.is_wanted_at(name, host) {
            self.subscribed(name, host);
        }
    }

    /// Records that the channel is no longer subscribed at this master.
    pub(super) fn left(&mut self, name: &str, host: &Host) {
        if let Some(channel) = self.channels.get_mut(name).filter(|channel| channel.at.as_ref() == Some(host)) {
            channel.interrupt(&mut self.news);
            self.places.left(host, name);
        }
    }

    /// Records that no channel is subscribed at this master any more.
    pub(super) fn left_all(&mut self, host: &Host) {
        for name in self.places.left_all(host) {
            if let Some(channel) = self.channels.get_mut(&name) {
                channel.interrupt(&mut self.news);
            }
        }
    }

    /// Records a failure that may pass.
    pub(super) fn failed(&mut self, name: &str, failure: &Failure) {
        if let Some(channel) = self.channels.get_mut(name) {
            channel.trouble = Some(failure.clone());
        }
    }

    /// Records the refusal of a server. New subscriptions fail. The others are notified once and continue.
    pub(super) fn refused(&mut self, name: &str, failure: &Failure) {
        let Some(channel) = self.channels.get_mut(name) else { return };
        let told = std::mem::replace(&mut channel.refused, true);
        let news = &mut self.news;
        let ended = channel.subscriptions.extract_if(.., |subscription| match subscription.confirm.take() {
            Some(confirm) => {
                news.confirmed(confirm, Err(failure.clone()));
                true
            }
            None => {
                if !told {
                    news.notice(&subscription.notices, Notice::Refused(failure.clone().into()));
                }
                false
            }
        });
        let ended: Vec<_> = ended.collect();
        self.news.ended(ended);
        if channel.subscriptions.is_empty() {
            self.unwant(name);
        }
    }

    /// The last failure so far.
    pub(super) fn trouble(&mut self, name: &str) -> Option<Failure> {
        self.channels.get(name)?.trouble.clone()
    }

    /// Delivers a message that came from this master. It is ignored if the master has no such subscription any more, or
    /// if another one has the slot by now: it may have been replaced.
    pub(super) fn deliver(&mut self, name: &str, host: &Host, payload: Vec<u8>) {
        if !self.is_wanted_at(name, host) {
            return;
        }
        let Some(channel) = self.channels.get(name).filter(|channel| channel.at.as_ref() == Some(host)) else { return };
        for subscription in &channel.subscriptions {
            self.news.notice(&subscription.notices, Notice::Message(payload.clone()));
        }
    }

    /// Ends all subscriptions.
    pub(super) fn close(&mut self) {
        self.closed = true;
        self.news.ended(self.channels.drain().flat_map(|(_, channel)| channel.subscriptions));
        self.places.clear();
    }

    /// What the subscriptions are to be told of the last changes.
    pub(super) fn take_news(&mut self) -> News {
        std::mem::take(&mut self.news)
    }
}

impl Channel {
    fn interrupt(&mut self, news: &mut News) {
        self.at = None;
        for subscription in self.subscriptions.iter().filter(|subscription| subscription.confirm.is_none()) {
            news.notice(&subscription.notices, Notice::Gap);
        }
    }
}

#[cfg(test)]
mod tests;
