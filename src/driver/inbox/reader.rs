//! Passes the messages and interruptions of all inboxes to the engine.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::BoxStream;

use crate::connection::{Connection, Notice};
use crate::engine::Engine;
use crate::protocol::message::Message;
use crate::runtime::Executor;

/// The state that all inboxes need.
#[derive(Debug)]
pub(crate) struct Reader {
    pub(crate) executor: Arc<dyn Executor>,
    pub(crate) connection: Arc<dyn Connection>,
    pub(crate) engine: Arc<Engine>,
}

/// The subscription was interrupted, so messages may have been missed.
pub(super) struct Interrupted;

impl Reader {
    /// Reads the client's own inbox, which is open as long as the client is.
    pub(super) async fn read_first(&self, mut notices: BoxStream<'static, Notice>) {
        while let Some(notice) = notices.next().await {
            if let Some(Interrupted) = self.handle(notice) {
                self.engine.gap(self.executor.now());
            }
        }
    }

    /// Passes one notice to the engine.
    pub(super) fn handle(&self, notice: Notice) -> Option<Interrupted> {
        match notice {
            // Any client of the server may publish to the channel, so other payloads are ignored.
            Notice::Message(payload) => {
                if let Some(message) = Message::parse(&payload) {
                    self.engine.deliver(message, self.executor.now());
                }
                None
            }
            Notice::Gap => Some(Interrupted),
            // The refusal is logged and counted. Waiters learn of their grants by heartbeats instead.
            Notice::Refused(refusal) => {
                self.engine.subscription_refused(&refusal);
                None
            }
        }
    }
}
