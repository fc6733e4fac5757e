//! Calls whose answers are lost, by sockets that are cut or fall silent.

use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Either, select};

use super::lab::{Answer, Lab, polled};
use crate::connection::{Arg, Call, Connection, ConnectionError};
use crate::in_turn::in_turn;
use crate::testing::report::{Checked, Failing, ensure, failed, not_checked};

/// A call, and how often the server has executed it.
struct Outcome {
    what: &'static str,
    answer: Answer,
    executed: i64,
}

/// Alone or as a batch of one.
pub(super) fn call<'a>(
    lab: &'a Lab<'_>,
    connection: &'a dyn Connection,
    key: &'a str,
    alone: bool,
) -> BoxFuture<'a, Answer> {
    async move {
        if alone {
            return lab.count(connection, key).await;
        }
        let (keys, args) = ([key], [Arg::Text("x")]);
        let mut answers = connection.run_batch(&[Call::new(lab.scripts.count, &keys, &args)]).await;
        answers.pop().unwrap_or_else(|| Err(ConnectionError::Unsupported("a batch of one has no answer".to_owned())))
    }
    .boxed()
}

/// A connection that is up and has sent the script. From then on, answers on its sockets are lost.
pub(super) async fn that_loses_answers(lab: &Lab<'_>) -> Result<Box<dyn Connection>, Failing> {
    let (disturb, connection) = (lab.disturb()?, lab.connect().await?);
    let first = lab.count(&*connection, &lab.key()).await;
    if first.is_err() {
        return Err(not_checked(format!("the first call of a connection: {first:?}")));
    }
    if !disturb.lose_answers().await {
        return Err(not_checked("what disturbs the connection cannot lose answers only"));
    }
    Ok(connection)
}

/// Returns the answer if the call ends before it is executed.
pub(super) async fn until_executed<'a>(
    lab: &Lab<'_>,
    observer: &dyn Connection,
    key: &str,
    call: BoxFuture<'a, Answer>,
) -> Result<Either<Answer, BoxFuture<'a, Answer>>, Failing> {
    let executed = async {
        while lab.executed(observer, key).await? == 0 {
            lab.pause().await;
        }
        Ok(())
    };
    match select(call, executed.boxed()).await {
        Either::Left((answer, _)) => Ok(Either::Left(answer)),
        Either::Right((executed, call)) => executed.map(|()| Either::Right(call)),
    }
}

/// The server executes the call, and its answer never arrives.
async fn unanswered(lab: &Lab<'_>, alone: bool) -> Result<Outcome, Failing> {
    let (disturb, connection) = (lab.disturb()?, that_loses_answers(lab).await?);
    let (observer, key) = (lab.connect().await?, lab.key());
    let answer = match until_executed(lab, &*observer, &key, call(lab, &*connection, &key, alone)).await? {
        Either::Left(answer) => answer,
        Either::Right(call) => {
            disturb.cut().await;
            lab.waits_for("the end of a call whose connection was cut");
            call.await
        }
    };
    // What the connection repeats is before this call.
    let _ = lab.count(&*connection, &lab.key()).await;
    let executed = lab.executed(&*lab.connect().await?, &key).await?;
    Ok(Outcome { what: if alone { "a call" } else { "a call in a batch" }, answer, executed })
}

/// Many calls are under way when the sockets are cut. Which of them are sent or executed is up to chance.
async fn cut(lab: &Lab<'_>, round: u32) -> Result<Vec<Outcome>, Failing> {
    let (disturb, connection) = (lab.disturb()?, lab.connect().await?);
    let _ = lab.count(&*connection, &lab.key()).await;
    let keys: Vec<String> = (0..60).map(|_| lab.key()).collect();
    let calls = keys.iter().enumerate().map(|(n, key)| call(lab, &*connection, key, n % 3 > 0));
    let mut calls = in_turn(calls).boxed();
    if polled(&mut calls).await.is_ready() {
        return Ok(Vec::new());
    }
    // Between nothing and all of them.
    let answers = match select(calls, lab.executor.sleep(Duration::from_micros(300) * round)).await {
        Either::Left((answers, _)) => answers,
        Either::Right(((), calls)) => {
            disturb.cut().await;
            lab.waits_for("the end of calls whose connection was cut");
            calls.await
        }
    };
    let _ = lab.count(&*connection, &lab.key()).await;
    let observer = lab.connect().await?;
    let mut outcomes = Vec::new();
    for (key, answer) in keys.iter().zip(answers) {
        let executed = lab.executed(&*observer, key).await?;
        outcomes.push(Outcome { what: "one of many calls", answer, executed });
    }
    Ok(outcomes)
}

pub(super) async fn at_most_once(lab: &Lab<'_>) -> Checked {
    let mut all = Vec::new();
    for round in 0..5 {
        all.extend(cut(lab, round).await?);
    }
    // Last, because it is not checked if only sockets can be cut.
    for alone in [true, false] {
        match unanswered(lab, alone).await {
            Ok(outcome) => all.push(outcome),
            Err(Failing::NotChecked(_)) => break,
            Err(failing) => return Err(failing),
        }
    }
    for Outcome { what, answer, executed } in all {
        ensure(executed <= 1, || format!("{what} was executed {executed} times and returned {answer:?}"))?;
    }
    Ok(())
}

pub(super) async fn outcomes(lab: &Lab<'_>) -> Checked {
    for alone in [true, false] {
        let Outcome { what, answer, executed } = unanswered(lab, alone).await?;
        // More than once is another clause.
        let is_true = executed != 1 || matches!(answer, Err(ConnectionError::Unknown(_)));
        ensure(is_true, || format!("{what} was executed, lost its answer and returned {answer:?}"))?;
    }
    for round in 0..3 {
        for Outcome { what, answer, executed } in cut(lab, round).await? {
            let is_true = match answer {
                Ok(_) => executed > 0,
                Err(ConnectionError::Unknown(_)) => true,
                Err(_) => executed == 0,
            };
            ensure(is_true, || format!("{what} was executed {executed} times and returned {answer:?}"))?;
        }
    }
    Ok(())
}

pub(super) async fn deadline(lab: &Lab<'_>) -> Checked {
    let (connection, key) = (that_loses_answers(lab).await?, lab.key());
    for alone in [true, false] {
        let (timeout, call) = (lab.command_timeout, call(lab, &*connection, &key, alone));
        // The contract sets the time. What the machine adds is not counted.
        let ended = select(call, lab.executor.sleep(timeout * 2 + Duration::from_secs(5))).await;
        if let Either::Right(_) = ended {
            return Err(failed(format!("a call went on for more than twice the command_timeout of {timeout:?}")));
        }
    }
    Ok(())
}

pub(super) async fn reconnects(lab: &Lab<'_>) -> Checked {
    let (disturb, connection) = (lab.disturb()?, lab.connect().await?);
    for round in 1..=2 {
        disturb.cut().await;
        loop {
            let answer = lab.count(&*connection, &lab.key()).await;
            if answer.is_ok() {
                break;
            }
            lab.waits_for(format!(
                "an answer after the sockets were cut for the {round}. time; the last call: {answer:?}"
            ));
            lab.pause().await;
        }
    }
    Ok(())
}
