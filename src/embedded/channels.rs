//! Channels: their subscriptions, and the unread messages of each.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use crate::mutex::lock;

/// The unread messages of one subscription, in the order in which they were published.
#[derive(Default)]
pub(super) struct Queue(Mutex<Unread>);

#[derive(Default)]
struct Unread {
    messages: VecDeque<Vec<u8>>,
    ended: bool,
    waker: Option<Waker>,
}

impl Queue {
    /// `None` after the end. Messages published before the end are delivered first.
    pub(super) fn poll(&self, context: &mut Context<'_>) -> Poll<Option<Vec<u8>>> {
        // A waker is foreign code: it is cloned before the lock is taken and dropped after it is released.
        let mut waker = Some(context.waker().clone());
        let mut unread = lock(&self.0);
        match unread.messages.pop_front() {
            Some(message) => Poll::Ready(Some(message)),
            None if unread.ended => Poll::Ready(None),
            None => {
                std::mem::swap(&mut unread.waker, &mut waker);
                Poll::Pending
            }
        }
    }

    pub(super) fn end(&self) {
        let waker = {
            let mut unread = lock(&self.0);
            unread.ended = true;
            unread.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

#[derive(Default)]
pub(super) struct Channels {
    listeners: BTreeMap<Vec<u8>, Vec<Arc<Queue>>>,
    wakers: Vec<Waker>,
}

impl Channels {
    pub(super) fn subscribe(&mut self, channel: &[u8], queue: &Arc<Queue>) {
        self.listeners.entry(channel.to_vec()).or_default().push(queue.clone());
    }

    pub(super) fn unsubscribe(&mut self, channel: &[u8], queue: &Arc<Queue>) {
        if let Some(queues) = self.listeners.get_mut(channel) {
            queues.retain(|other| !Arc::ptr_eq(other, queue));
            if queues.is_empty() {
                self.listeners.remove(channel);
            }
        }
    }

    /// Publishes a message and returns the number of subscriptions. The caller must wake the
    /// [wakers](Self::take_wakers) after it has unlocked the server.
    pub(super) fn publish(&mut self, channel: &[u8], message: &[u8]) -> usize {
        let queues = self.listeners.get(channel).map_or(&[][..], Vec::as_slice);
        for queue in queues {
            let mut unread = lock(&queue.0);
            unread.messages.push_back(message.to_vec());
            self.wakers.extend(unread.waker.take());
        }
        queues.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.listeners.is_empty()
    }

    pub(super) fn names(&self) -> Vec<Vec<u8>> {
        self.listeners.keys().cloned().collect()
    }

    pub(super) fn listeners(&self, channel: &[u8]) -> usize {
        self.listeners.get(channel).map_or(0, Vec::len)
    }

    pub(super) fn take_wakers(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.wakers)
    }
}
