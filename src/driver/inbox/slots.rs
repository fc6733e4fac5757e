//! The inboxes of a client in single slots of a cluster.
//!
//! A slot's inbox is subscribed after the server has said that an attempt waits there. No message is missed before the
//! subscription is confirmed: until then, scripts find no subscriber and pass the ticket over. The confirmation is a
//! gap, after which the server is asked about the ticket. A subscription that fails is tried again, with a gap each
//! time, so that the waiters ask meanwhile.

use std::collections::HashMap;
use std::future::pending;
use std::pin::pin;
use std::sync::Arc;

use futures::future::{BoxFuture, Either, select};
use futures::stream::{AbortHandle, BoxStream, SelectAll, Stream, abortable, unfold};
use futures::{FutureExt, StreamExt};

use super::reader::{Interrupted, Reader};
use crate::backoff::Backoff;
use crate::connection::{Connection, ConnectionError, Notice};
use crate::engine::inboxes::InboxWork;
use crate::error::ErrorKind;
use crate::mutant::{self, Mutant};
use crate::runtime::Executor;
use crate::tuning::INBOX;

pub(super) struct Slots<'a, F> {
    reader: &'a Reader,
    channel_of: F,
    inboxes: SelectAll<BoxStream<'static, (u16, Event)>>,
    /// For each slot, the handle that ends its inbox.
    ends: HashMap<u16, AbortHandle>,
}

/// An event of an inbox.
enum Event {
    /// The subscription is confirmed.
    Subscribed,
    /// There is no subscription.
    Failed(ConnectionError),
    Notice(Notice),
}

impl<'a, F: Fn(u16) -> String> Slots<'a, F> {
    pub(super) fn new(reader: &'a Reader, channel_of: F) -> Self {
        Self { reader, channel_of, inboxes: SelectAll::new(), ends: HashMap::new() }
    }

    /// Opens and closes inboxes as the engine asks for them, and reads them, while it is polled.
    pub(super) async fn read(mut self) {
        let reader = self.reader;
        let Reader { engine, executor, .. } = reader;
        loop {
            let changed = engine.listen_inboxes();
            let InboxWork { open, close, next } = engine.inbox_work(executor.now());
            for slot in close {
                self.close(slot);
            }
            for slot in open {
                self.open(slot);
            }
            let timer: BoxFuture<'_, ()> = match next {
                Some(at) => executor.sleep(at.saturating_duration_since(executor.now())),
                None => pending().boxed(),
            };
            let mut work = pin!(select(changed, timer));
            while let Either::Right(((slot, event), _)) = select(work.as_mut(), pin!(self.next())).await {
                handle(reader, slot, event);
            }
        }
    }

    async fn next(&mut self) -> (u16, Event) {
        match self.inboxes.next().await {
            Some(event) => event,
            // No inbox is open.
            None => pending().await,
        }
    }

    fn open(&mut self, slot: u16) {
        let Reader { connection, executor, engine } = self.reader;
        let backoff = Backoff::new(INBOX, engine.jitter_seed());
        let inbox = inbox(Arc::clone(connection), Arc::clone(executor), (self.channel_of)(slot), backoff);
        let (inbox, end) = abortable(inbox.map(move |event| (slot, event)));
        self.inboxes.push(inbox.boxed());
        self.ends.insert(slot, end);
    }

    fn close(&mut self, slot: u16) {
        if let Some(end) = self.ends.remove(&slot) {
            end.abort();
        }
    }
}

fn handle(reader: &Reader, slot: u16, event: Event) {
    let Reader { engine, executor, .. } = reader;
    let interrupted = match event {
        Event::Notice(notice) => reader.handle(notice),
        Event::Subscribed if mutant::on(Mutant::NoHeartbeatAfterSubscription) => None,
        Event::Subscribed => Some(Interrupted),
        Event::Failed(error) => {
            if matches!(error.kind(), ErrorKind::Denied | ErrorKind::Refused) {
                engine.subscription_refused(&error);
            }
            Some(Interrupted)
        }
    };
    if let Some(Interrupted) = interrupted {
        engine.slot_gap(slot, executor.now());
    }
}

/// The state of the stream of an inbox.
enum Phase {
    Subscribing,
    Pausing,
    Open(BoxStream<'static, Notice>),
    Closed,
}

/// Subscribes until it succeeds, and reads. It ends when the connection is closed.
fn inbox(
    connection: Arc<dyn Connection>,
    executor: Arc<dyn Executor>,
    channel: String,
    backoff: Backoff,
) -> impl Stream<Item = Event> + Send + 'static {
    let parts = (connection, executor, channel, backoff);
    unfold((Phase::Subscribing, parts), |(phase, mut parts)| async move {
        let (connection, executor, channel, backoff) = &mut parts;
        let mut notices = match phase {
            Phase::Closed => return None,
            Phase::Open(notices) => notices,
            Phase::Subscribing | Phase::Pausing => {
                if let Phase::Pausing = phase {
                    executor.sleep(backoff.pause()).await;
                }
                let (event, phase) = match connection.subscribe(channel).await {
                    Ok(notices) => (Event::Subscribed, Phase::Open(notices)),
                    Err(error @ ConnectionError::Closed) => (Event::Failed(error), Phase::Closed),
                    Err(error) => (Event::Failed(error), Phase::Pausing),
                };
                return Some((event, (phase, parts)));
            }
        };
        let notice = notices.next().await?;
        Some((Event::Notice(notice), (Phase::Open(notices), parts)))
    })
}

#[cfg(test)]
mod tests;
