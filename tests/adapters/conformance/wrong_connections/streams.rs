//! Subscriptions that go wrong.

use std::future::ready;

use bowline::{BoxStream, Connection, ConnectionError, Executor, Notice};
use futures::channel::{mpsc, oneshot};
use futures::{StreamExt, stream};

use super::{WrongConnection, lock};

#[derive(Clone, Copy, Debug)]
pub(super) enum WrongStream {
    SwallowsGaps,
    /// Tells an interruption once.
    SwallowsEveryOtherGap,
    /// Ends when the subscription is interrupted.
    EndsAtAGap,
    /// Delivers nothing any more when the subscription is interrupted.
    FallsSilentAtAGap,
    LosesAMessage,
    DoublesAMessage,
    SwapsMessages,
    SubscribesTwice,
    /// Also delivers the messages of the last channel before.
    MixesChannels,
    /// The subscription goes on when the stream is dropped.
    StaysSubscribed,
    /// The subscription is made also if nobody waits for it.
    SubscribesAlthoughDropped,
    /// The stream does not end when the connection is closed.
    NeverEnds,
}

type Notices = BoxStream<'static, Notice>;

/// The number of the message, from 0, and the notice.
fn numbered(notices: Notices) -> impl futures::Stream<Item = (u64, Notice)> + Send {
    let mut count = 0;
    notices.map(move |notice| {
        count += u64::from(matches!(notice, Notice::Message(_)));
        (count, notice)
    })
}

impl WrongConnection {
    pub(super) async fn wrong_stream(&self, wrong: WrongStream, channel: &str) -> Result<Notices, ConnectionError> {
        if let WrongStream::SubscribesAlthoughDropped = wrong {
            return self.subscribe_in_the_background(channel).await;
        }
        let notices = self.inner.subscribe(channel).await?;
        Ok(match wrong {
            WrongStream::SwallowsGaps => notices.filter(|notice| ready(*notice != Notice::Gap)).boxed(),
            WrongStream::SwallowsEveryOtherGap => {
                let mut gaps = 0;
                let passes = move |notice: &Notice| {
                    gaps += u64::from(*notice == Notice::Gap);
                    ready(*notice != Notice::Gap || gaps % 2 == 1)
                };
                notices.filter(passes).boxed()
            }
            WrongStream::EndsAtAGap => notices.take_while(|notice| ready(*notice != Notice::Gap)).boxed(),
            WrongStream::FallsSilentAtAGap => {
                let until = notices.take_while(|notice| ready(*notice != Notice::Gap));
                // But for the end of the connection, which is another clause.
                until.chain(self.inner.subscribe("nobody:publishes:here").await?.filter(|_| ready(false))).boxed()
            }
            WrongStream::LosesAMessage => {
                numbered(notices).filter_map(|(n, notice)| ready((n != 7).then_some(notice))).boxed()
            }
            WrongStream::DoublesAMessage => {
                let doubled = |(n, notice): (u64, Notice)| vec![notice; if n == 7 { 2 } else { 1 }];
                numbered(notices).flat_map(move |notice| stream::iter(doubled(notice))).boxed()
            }
            WrongStream::SwapsMessages => {
                let mut held = None;
                let swapped = move |(n, notice): (u64, Notice)| match n {
                    7 => {
                        held = Some(notice);
                        stream::iter(Vec::new())
                    }
                    _ => stream::iter([notice].into_iter().chain(held.take()).collect::<Vec<_>>()),
                };
                numbered(notices).flat_map(swapped).boxed()
            }
            WrongStream::SubscribesTwice => {
                let other = self.inner.subscribe(channel).await?;
                // Only one of them is read.
                notices.map(move |notice| (notice, &other).0).boxed()
            }
            WrongStream::MixesChannels => {
                let before = lock(&self.channels).replace(channel.to_owned());
                match before {
                    Some(before) if before != channel => {
                        stream::select(notices, self.inner.subscribe(&before).await?).boxed()
                    }
                    _ => notices,
                }
            }
            WrongStream::StaysSubscribed => {
                let (sender, receiver) = mpsc::unbounded();
                self.shared.executor.spawn(Box::pin(notices.for_each(move |notice| {
                    let _ = sender.unbounded_send(notice);
                    ready(())
                })));
                receiver.boxed()
            }
            WrongStream::NeverEnds => notices.chain(stream::pending()).boxed(),
            WrongStream::SubscribesAlthoughDropped => notices,
        })
    }

    async fn subscribe_in_the_background(&self, channel: &str) -> Result<Notices, ConnectionError> {
        let (sender, subscribed) = oneshot::channel();
        let (inner, channel) = (self.inner.clone(), channel.to_owned());
        self.shared.executor.spawn(Box::pin(async move {
            let notices = inner.subscribe(&channel).await;
            drop(inner);
            if let Err(Ok(unwanted)) = sender.send(notices) {
                // Until the connection is closed.
                unwanted.for_each(|_| ready(())).await;
            }
        }));
        subscribed.await.unwrap_or(Err(ConnectionError::Closed))
    }
}
