//! The task behind the one subscription of a client: it hands messages and gaps to the engine.

use std::sync::Arc;

use event_listener::Event;
use futures::StreamExt;
use futures::future::{Either, select};
use futures::stream::BoxStream;

use crate::connection::Notice;
use crate::engine::Engine;
use crate::protocol::message::Message;
use crate::runtime::Executor;

/// Ends the dispatching task when dropped.
#[derive(Debug)]
pub(crate) struct Inbox {
    stop: Arc<Event>,
}

impl Inbox {
    pub(crate) fn start(
        executor: &Arc<dyn Executor>,
        engine: Arc<Engine>,
        mut notices: BoxStream<'static, Notice>,
    ) -> Self {
        let stop = Arc::new(Event::new());
        let mut stopped = stop.listen();
        let clock = executor.clone();
        executor.spawn(Box::pin(async move {
            while let Either::Left((Some(notice), _)) = select(notices.next(), &mut stopped).await {
                match notice {
                    // Any client of the server may publish to the channel, so other payloads are ignored.
                    Notice::Message(payload) => {
                        if let Some(message) = Message::parse(&payload) {
                            engine.deliver(message, clock.now());
                        }
                    }
                    Notice::Gap => engine.gap(clock.now()),
                    // The log and the counters tell of it. Waiters learn of grants from their heartbeats.
                    Notice::Refused(refusal) => engine.subscription_refused(&refusal),
                }
            }
        }));
        Self { stop }
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.stop.notify(usize::MAX);
    }
}
