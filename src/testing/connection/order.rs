//! The order of calls.

use futures::FutureExt;

use super::lab::{Lab, polled};
use crate::connection::{Arg, Call, ConnectionError, Reply};
use crate::in_turn::in_turn;
use crate::testing::report::{Checked, ensure};

/// The connection is up when a call was answered: one to a cluster connects to a node at the first call for it. It has
/// sent none of the scripts before.
pub(super) async fn calls(lab: &Lab<'_>) -> Checked {
    for round in 0..5 {
        let (connection, key) = (lab.connect().await?, lab.key());
        let _ = lab.executed(&*connection, &key).await?;
        let known = lab.scripts.count;
        let new = lab.new_script();
        let scripts = (0..100).map(|n| if n % 3 == round % 3 { new } else { known });
        let answers = in_turn(scripts.map(|script| lab.count_by(script, &*connection, &key))).await;
        let mut last = 0;
        for (n, answer) in (1..).zip(&answers) {
            // That a call fails is not a matter of the order. It may have been executed or not.
            let Ok(Reply::Integer(place)) = *answer else { continue };
            ensure(place > last, || {
                format!("the call that was polled as number {n} was executed as number {place}, after number {last}")
            })?;
            last = place;
        }
    }
    Ok(())
}

pub(super) async fn batches(lab: &Lab<'_>) -> Checked {
    let connection = lab.connect().await?;
    let (key, wrong) = (lab.key(), lab.key());
    let (keys, wrong) = ([&*key], [&*wrong]);
    let (count, fail) = ([Arg::Text("x")], [Arg::Text("own")]);
    let calls: Vec<Call<'_>> = (0..40)
        .map(|n| {
            if n % 4 == 3 {
                Call::new(lab.scripts.fail, &wrong, &fail)
            } else {
                Call::new(lab.scripts.count, &keys, &count)
            }
        })
        .collect();
    let answers = connection.run_batch(&calls).await;
    ensure(answers.len() == calls.len(), || format!("{} calls have {} answers", calls.len(), answers.len()))?;
    let mut counted = 0;
    for (n, answer) in answers.iter().enumerate() {
        let right = if n % 4 == 3 {
            matches!(answer, Err(ConnectionError::Refused { .. }))
        } else {
            counted += 1;
            *answer == Ok(Reply::Integer(counted))
        };
        ensure(right, || format!("answer {n} of a batch is {answer:?}"))?;
    }
    let none = connection.run_batch(&[]).await;
    ensure(none.is_empty(), || format!("a batch without calls has the answers {none:?}"))
}

/// Calls and batches are dropped after their first poll.
pub(super) async fn dropped_calls(lab: &Lab<'_>) -> Checked {
    let connection = lab.connect().await?;
    let mut dropped = Vec::new();
    for round in 0..50 {
        let key = lab.key();
        {
            let (keys, args) = ([&*key], [Arg::Text("x")]);
            let batch = [Call::new(lab.scripts.count, &keys, &args)];
            let _ = if round % 2 == 0 {
                polled(&mut lab.count(&*connection, &key).boxed()).await.map(|_| ())
            } else {
                polled(&mut connection.run_batch(&batch)).await.map(|_| ())
            };
        }
        let text = format!("after {round} dropped calls");
        let answer = lab.echo(&*connection, &text).await;
        ensure(answer == Ok(Reply::Bytes(text.clone().into_bytes())), || format!("the call {text} got {answer:?}"))?;
        dropped.push(key);
    }
    for key in dropped {
        let executed = lab.executed(&*connection, &key).await?;
        ensure(executed <= 1, || format!("a dropped call was executed {executed} times"))?;
    }
    Ok(())
}

/// As in a task that has many futures, and polls one of them until it is done.
pub(super) async fn kept_calls(lab: &Lab<'_>) -> Checked {
    let (connection, key) = (lab.connect().await?, lab.key());
    let mut kept: Vec<_> = (0..100).map(|_| lab.count(&*connection, &key).boxed()).collect();
    for call in &mut kept {
        let _ = polled(call).await;
    }
    let answer = lab.echo(&*connection, "another").await;
    ensure(answer == Ok(Reply::Bytes(b"another".to_vec())), || {
        format!("while {} calls were kept after their first poll, another one got {answer:?}", kept.len())
    })
}
