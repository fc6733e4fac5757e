//! Subscriptions that stand.

use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};

use super::lab::{Lab, polled};
use crate::connection::{Connection, ConnectionError, Notice};
use crate::error::ErrorKind;
use crate::testing::report::{Checked, Failing, ensure, failed, not_checked};

pub(super) type Notices = BoxStream<'static, Notice>;

pub(super) async fn subscribe(connection: &dyn Connection, channel: &str) -> Result<Notices, Failing> {
    connection.subscribe(channel).await.map_err(|error| failed(format!("subscribe: {error}")))
}

/// The kinds of channels that a client uses in this topology.
fn channels(lab: &Lab<'_>, connection: &dyn Connection) -> Vec<String> {
    let mut channels = vec![lab.channel()];
    channels.extend(connection.topology().sharded_messages.then(|| lab.shard_channel()));
    channels
}

/// A channel whose subscribers the server counts.
pub(super) fn counted(lab: &Lab<'_>, connection: &dyn Connection) -> Result<String, Failing> {
    let topology = connection.topology();
    if !topology.publish_counts_everyone {
        return Err(not_checked("no server of this topology counts all subscribers"));
    }
    Ok(if topology.sharded_messages { lab.shard_channel() } else { lab.channel() })
}

pub(super) async fn subscribed(lab: &Lab<'_>) -> Checked {
    let connection = lab.connect().await?;
    for _ in 0..5 {
        let channel = counted(lab, &*connection)?;
        let _notices = subscribe(&*connection, &channel).await?;
        let told = lab.publish(&*connection, &channel, "x").await?;
        ensure(told == 1, || format!("a call that published right after `subscribe` reached {told} subscribers"))?;
    }
    Ok(())
}

/// The messages must be the next ones.
pub(super) async fn expect(
    lab: &Lab<'_>,
    notices: &mut Notices,
    messages: impl IntoIterator<Item = String>,
) -> Checked {
    for message in messages {
        lab.waits_for(format!("the message `{message}`, which was published while the subscription stood"));
        match notices.next().await {
            Some(Notice::Message(bytes)) => ensure(bytes == message.as_bytes(), || {
                format!("the message `{}` in place of `{message}`", String::from_utf8_lossy(&bytes))
            })?,
            Some(Notice::Gap) => return Err(not_checked("the subscription was interrupted")),
            other => return Err(failed(format!("{other:?} in place of the message `{message}`"))),
        }
    }
    Ok(())
}

/// While nothing is interrupted.
pub(super) async fn delivered(lab: &Lab<'_>) -> Checked {
    let connection = lab.connect().await?;
    for channel in channels(lab, &*connection) {
        let mut notices = subscribe(&*connection, &channel).await?;
        // The first ones are published before anybody reads.
        let messages: Vec<String> = (0..100).map(|n| n.to_string()).collect();
        for message in &messages {
            lab.publish(&*connection, &channel, message).await?;
        }
        expect(lab, &mut notices, messages).await?;
        for message in ["", "\r\n+x \u{e9}\0"] {
            lab.publish(&*connection, &channel, message).await?;
            expect(lab, &mut notices, [message.to_owned()]).await?;
        }
    }
    Ok(())
}

pub(super) async fn own_channel(lab: &Lab<'_>) -> Checked {
    let connection = lab.connect().await?;
    let [a, b] = [lab.channel(), lab.channel()];
    let (mut at_a, mut at_b) = (subscribe(&*connection, &a).await?, subscribe(&*connection, &b).await?);
    for (channel, message) in [(&a, "1 for a"), (&b, "2 for b"), (&a, "3 for a"), (&b, "4 for b")] {
        lab.publish(&*connection, channel, message).await?;
    }
    for (notices, channel) in [(&mut at_a, "a"), (&mut at_b, "b")] {
        for _ in 0..2 {
            lab.waits_for(format!("a message of channel {channel}"));
            let notice = notices.next().await;
            let is_own = match &notice {
                Some(Notice::Message(bytes)) => bytes.ends_with(channel.as_bytes()),
                _ => true,
            };
            ensure(is_own, || format!("the subscription of channel {channel} delivered {notice:?}"))?;
        }
    }
    Ok(())
}

/// Publishes until the server counts no subscriber.
pub(super) async fn nobody_is_left(lab: &Lab<'_>, connection: &dyn Connection, channel: &str, since: &str) -> Checked {
    loop {
        let told = lab.publish(connection, channel, "x").await?;
        if told == 0 {
            return Ok(());
        }
        lab.waits_for(format!("the end of {told} subscriptions, after {since}"));
        lab.pause().await;
    }
}

pub(super) async fn unsubscribes(lab: &Lab<'_>) -> Checked {
    let connection = lab.connect().await?;
    let channel = counted(lab, &*connection)?;
    let notices = subscribe(&*connection, &channel).await?;
    drop(notices);
    nobody_is_left(lab, &*connection, &channel, "the stream was dropped").await?;
    // The connection is not used up.
    let mut notices = subscribe(&*connection, &channel).await?;
    lab.publish(&*connection, &channel, "again").await?;
    match expect(lab, &mut notices, ["again".to_owned()]).await {
        // Other clauses are about messages.
        Err(Failing::NotChecked(_)) | Ok(()) => Ok(()),
        failed => failed,
    }
}

pub(super) async fn dropped_subscribe(lab: &Lab<'_>) -> Checked {
    let connection = lab.connect().await?;
    let mut dropped = Vec::new();
    for _ in 0..10 {
        let channel = counted(lab, &*connection)?;
        let _ = polled(&mut connection.subscribe(&channel)).await.map(|subscribed| subscribed.is_ok());
        dropped.push(channel);
    }
    // What the connection was about to send is before this one.
    drop(subscribe(&*connection, &counted(lab, &*connection)?).await?);
    for channel in dropped {
        nobody_is_left(lab, &*connection, &channel, "`subscribe` was dropped in its first poll").boxed().await?;
    }
    Ok(())
}

pub(super) async fn watched_keys(lab: &Lab<'_>) -> Checked {
    let connection = lab.connect().await?;
    let key = lab.key();
    let mut notices = match connection.watch_key(&key, &lab.channel()).await {
        Ok(notices) => notices,
        Err(ConnectionError::Unsupported(_)) => return Ok(()),
        Err(error) if error.kind() == ErrorKind::Denied => return Err(not_checked(error.to_string())),
        Err(error) => return Err(failed(format!("watch_key: {error}"))),
    };
    for n in 0..5 {
        // What an earlier change was reported by is no report of this one.
        lab.pause().await;
        while let Some(Some(_)) = notices.next().now_or_never() {}
        lab.count(&*connection, &key).await.map_err(|error| not_checked(format!("a call: {error}")))?;
        lab.waits_for(format!("a report of change {n} of a watched key"));
        match notices.next().await {
            Some(Notice::Message(_)) => {}
            Some(Notice::Gap) => return Err(not_checked("the watch was interrupted")),
            other => return Err(failed(format!("{other:?} in place of a report that the key has changed"))),
        }
    }
    Ok(())
}
