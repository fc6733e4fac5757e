//! Subscriptions that are interrupted.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use futures::StreamExt;
use futures::future::{Either, select};

use super::lab::{Interruption, Lab};
use super::messages::{self, Notices, subscribe};
use crate::connection::{Connection, Notice};
use crate::mutex::lock;
use crate::runtime;
use crate::testing::report::{Checked, Failing, ensure, failed, not_checked};

const AFTER: &[u8] = b"after";

/// A subscription that was cut, the connection that publishes, and the channel.
struct Scene {
    notices: Notices,
    publisher: Box<dyn Connection>,
    channel: String,
    /// Kept, because its end is that of the subscription.
    _connection: Box<dyn Connection>,
}

impl Scene {
    async fn cut(lab: &Lab<'_>) -> Result<Self, Failing> {
        let (disturb, connection) = (lab.disturb()?, lab.connect().await?);
        let channel = lab.channel();
        let mut notices = subscribe(&*connection, &channel).await.map_err(|_| not_checked("`subscribe` failed"))?;
        // The subscription stands. This is no check of messages, so one of several is enough.
        let first = async {
            loop {
                lab.publish(&*connection, &channel, "before").await?;
                if let Either::Left((Some(Notice::Message(_)), _)) =
                    select(notices.next(), lab.executor.sleep(lab.limit / 10)).await
                {
                    return Ok(());
                }
            }
        };
        match runtime::timeout(&lab.executor, lab.limit / 3, first).await {
            Some(first) => first?,
            None => return Err(not_checked("no message came before the interruption")),
        }
        disturb.cut().await;
        let publisher = lab.connect().await?;
        Ok(Self { notices, publisher, channel, _connection: connection })
    }

    /// Publishes until a message arrives that was published after the cut.
    async fn until_restored(&mut self, lab: &Lab<'_>, seen: &mut Interruption) -> Checked {
        loop {
            lab.publish(&*self.publisher, &self.channel, "after").await?;
            while let Either::Left((notice, _)) = select(self.notices.next(), lab.pause()).await {
                match notice {
                    Some(Notice::Message(message)) if message == AFTER => {
                        seen.is_restored = true;
                        return Ok(());
                    }
                    Some(Notice::Gap) => seen.gaps += 1,
                    Some(Notice::Message(_)) => {}
                    Some(Notice::Refused(refusal)) => {
                        seen.after = format!("the last notice: the server refused: {refusal}")
                    }
                    None => {
                        seen.after = "the stream ended".to_owned();
                        return Ok(());
                    }
                }
            }
        }
    }
}

/// The first check of those that need it makes the interruption.
async fn interrupt(lab: &Lab<'_>) -> Result<Interruption, Failing> {
    if let Some(seen) = &*lock(&lab.interruption) {
        return Ok(seen.clone());
    }
    let mut seen = Interruption { gaps: 0, gap_behind: false, is_restored: false, after: "no message came".to_owned() };
    let mut scene = Scene::cut(lab).await?;
    if let Some(ended) = runtime::timeout(&lab.executor, lab.limit / 2, scene.until_restored(lab, &mut seen)).await {
        ended?;
    }
    // Messages that arrive before the gap of the restoration were not missed, so that gap may come behind one.
    if seen.is_restored && seen.gaps == 1 {
        let behind = scene.notices.by_ref().any(|notice| ready(notice == Notice::Gap));
        seen.gap_behind = runtime::timeout(&lab.executor, lab.limit / 4, behind).await.unwrap_or(false);
    }
    *lock(&lab.interruption) = Some(seen.clone());
    Ok(seen)
}

/// Of a subscription that was restored, the number of gaps before its next message.
async fn gaps(lab: &Lab<'_>) -> Result<usize, Failing> {
    let Interruption { gaps, is_restored, after, .. } = interrupt(lab).await?;
    if is_restored { Ok(gaps) } else { Err(not_checked(format!("the subscription was not restored: {after}"))) }
}

pub(super) async fn told(lab: &Lab<'_>) -> Checked {
    let gaps = gaps(lab).await?;
    ensure(gaps > 0, || "messages were lost by a cut, and the next one came without a gap before it".to_owned())
}

pub(super) async fn told_twice(lab: &Lab<'_>) -> Checked {
    match gaps(lab).await? {
        0 => Err(not_checked("no gap was told")),
        1 => ensure(interrupt(lab).await?.gap_behind, || "one gap only came, before the next message".to_owned()),
        _ => Ok(()),
    }
}

pub(super) async fn restored(lab: &Lab<'_>) -> Checked {
    let Interruption { gaps, is_restored, after, .. } = interrupt(lab).await?;
    ensure(is_restored, || format!("after the sockets were cut, {after}; {gaps} gaps were told"))
}

/// What is published behind the first message after an interruption is delivered in full.
pub(super) async fn delivered_after(lab: &Lab<'_>) -> Checked {
    let mut scene = Scene::cut(lab).await?;
    let mut seen = Interruption { gaps: 0, gap_behind: false, is_restored: false, after: String::new() };
    let restored = runtime::timeout(&lab.executor, lab.limit / 2, scene.until_restored(lab, &mut seen)).await;
    restored.unwrap_or(Ok(()))?;
    if !seen.is_restored {
        // Another clause is about that.
        return Ok(());
    }
    // What was published before the present attempt may come behind a gap, and does not count.
    let present = Arc::new(AtomicUsize::new(0));
    let of_attempt = Arc::clone(&present);
    let is_new = move |notice: &Notice| match notice {
        Notice::Message(message) => message.starts_with(format!("{} ", of_attempt.load(Relaxed)).as_bytes()),
        _ => true,
    };
    let Scene { notices, publisher, channel, _connection } = scene;
    let mut notices: Notices = notices.filter(move |notice| ready(is_new(notice))).boxed();
    for attempt in 0..5 {
        present.store(attempt, Relaxed);
        let batch: Vec<String> = (0..20).map(|n| format!("{attempt} {n}")).collect();
        for message in &batch {
            lab.publish(&*publisher, &channel, message).await?;
        }
        match messages::expect(lab, &mut notices, batch).await {
            Err(Failing::NotChecked(_)) => {}
            done => return done,
        }
    }
    Err(failed("the subscription was interrupted five times in a row"))
}
