//! The task behind the subscriptions of a client: it hands messages and gaps to the engine.

use std::pin::pin;
use std::sync::Arc;

use event_listener::Event;
use futures::future::{pending, select};
use futures::stream::BoxStream;

use crate::connection::Notice;

pub(crate) use reader::Reader;

use slots::Slots;

mod reader;
mod slots;

/// Ends the dispatching task when dropped.
#[derive(Debug)]
pub(crate) struct Inbox {
    stop: Arc<Event>,
}

impl Inbox {
    /// Starts the task. It reads the client's own inbox as soon as `notices` resolves, and ends if `notices` resolves
    /// to `None`: the inbox will never be subscribed. If messages are sharded, this inbox hears of gaps and revocations
    /// only. The task then also reads inboxes of slots: the engine opens and closes them, and `channel_of` names their
    /// channels.
    pub(crate) fn start(
        reader: Reader,
        notices: impl Future<Output = Option<BoxStream<'static, Notice>>> + Send + 'static,
        channel_of: impl Fn(u16) -> String + Send + 'static,
    ) -> Self {
        let stop = Arc::new(Event::new());
        let stopped = stop.listen();
        let executor = Arc::clone(&reader.executor);
        executor.spawn(Box::pin(async move {
            let reading = pin!(async {
                let Some(notices) = notices.await else { return };
                let first = pin!(reader.read_first(notices));
                let slots = pin!(async {
                    if !reader.connection.topology().sharded_messages {
                        return pending().await;
                    }
                    Slots::new(&reader, channel_of).read().await
                });
                // The client's own inbox ends when the connection is closed.
                select(first, slots).await;
            });
            select(reading, stopped).await;
        }));
        Self { stop }
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.stop.notify(usize::MAX);
    }
}
