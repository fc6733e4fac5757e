//! The end of a connection.

use futures::StreamExt;
use futures::future::Either;

use super::lab::{Lab, polled};
use super::lost::{call, that_loses_answers, until_executed};
use super::messages::{Notices, counted, nobody_is_left, subscribe};
use crate::connection::{Arg, Call, Connection, ConnectionError};
use crate::testing::report::{Checked, Failing, ensure, not_checked};

pub(super) async fn fails_calls(lab: &Lab<'_>) -> Checked {
    for alone in [true, false] {
        under_way(lab, alone).await?;
    }
    let (connection, other) = (lab.connect().await?, lab.connect().await?);
    connection.close();
    later(lab, &*connection, &*other).await?;
    connection.close();
    later(lab, &*connection, &*other).await
}

/// Closes the connection while the answer of a call is missing.
async fn under_way(lab: &Lab<'_>, alone: bool) -> Checked {
    let key = lab.key();
    let connection = match that_loses_answers(lab).await {
        Ok(connection) => connection,
        // Answers arrive, so the call may have one.
        Err(Failing::NotChecked(_)) => {
            let connection = lab.connect().await?;
            let mut call = call(lab, &*connection, &key, alone);
            if polled(&mut call).await.is_pending() {
                connection.close();
                let answer = call.await;
                return ensure(matches!(answer, Ok(_) | Err(ConnectionError::Closed)), || {
                    format!("a call that was under way: {answer:?}")
                });
            }
            return Ok(());
        }
        Err(failing) => return Err(failing),
    };
    let observer = lab.connect().await?;
    match until_executed(lab, &*observer, &key, call(lab, &*connection, &key, alone)).await? {
        Either::Left(answer) => Err(not_checked(format!("a call without an answer returned {answer:?}"))),
        Either::Right(call) => {
            connection.close();
            lab.waits_for("the end of a call whose connection was closed");
            let answer = call.await;
            ensure(answer == Err(ConnectionError::Closed), || format!("a call that was under way: {answer:?}"))
        }
    }
}

async fn later(lab: &Lab<'_>, connection: &dyn Connection, other: &dyn Connection) -> Checked {
    lab.waits_for("the end of a call of a closed connection");
    let key = lab.key();
    let (keys, args) = ([&*key], [Arg::Text("x")]);
    let calls = [Call::new(lab.scripts.count, &keys, &args); 2];
    let mut answers = connection.run_batch(&calls).await;
    ensure(answers.len() == 2, || format!("a later batch of two: {answers:?}"))?;
    answers.push(connection.run(calls[0]).await);
    let all = answers.iter().filter(|answer| **answer == Err(ConnectionError::Closed)).count();
    ensure(all == 3, || format!("a later batch of two, and a call: {answers:?}"))?;
    let subscribed = connection.subscribe(&lab.channel()).await.map(|_| "a stream");
    ensure(subscribed == Err(ConnectionError::Closed), || format!("a later `subscribe`: {subscribed:?}"))?;
    let executed = lab.executed(other, &key).await?;
    ensure(executed == 0, || format!("{executed} of the later calls were executed"))
}

async fn ends(lab: &Lab<'_>, mut notices: Notices, by: &str) {
    lab.waits_for(format!("the end of a stream after {by}"));
    while notices.next().await.is_some() {}
}

pub(super) async fn ends_streams(lab: &Lab<'_>) -> Checked {
    let connection = lab.connect().await?;
    let mut streams = Vec::new();
    for _ in 0..2 {
        streams.push(subscribe(&*connection, &lab.channel()).await?);
    }
    connection.close();
    for notices in streams {
        ends(lab, notices, "`close`").await;
    }
    Ok(())
}

pub(super) async fn by_drop(lab: &Lab<'_>) -> Checked {
    let (connection, other) = (lab.connect().await?, lab.connect().await?);
    let channel = counted(lab, &*other).unwrap_or_else(|_| lab.channel());
    let notices = subscribe(&*connection, &channel).await?;
    drop(connection);
    ends(lab, notices, "the connection was dropped").await;
    if other.topology().publish_counts_everyone {
        nobody_is_left(lab, &*other, &channel, "the connection was dropped").await?;
    }
    Ok(())
}
