//! Answers.

use super::lab::Lab;
use crate::connection::{Arg, Call, ConnectionError, Reply};
use crate::in_turn::in_turn;
use crate::testing::report::{Checked, ensure, failed, not_checked};

pub(super) async fn connects(lab: &Lab<'_>) -> Checked {
    for time in ["first", "second"] {
        let connection = lab.try_connect().await.map_err(|error| failed(format!("the {time} time: {error}")))?;
        connection.close();
    }
    Ok(())
}

pub(super) async fn replies(lab: &Lab<'_>) -> Checked {
    let connection = lab.connect().await?;
    let (key, text) = (lab.key(), "\r\n$-1\r\n \u{e9}\0'");
    let bytes = |text: &str| Reply::Bytes(text.as_bytes().to_vec());
    let list = Reply::Array(vec![
        bytes(&key),
        bytes(text),
        bytes("18446744073709551615"),
        Reply::Integer(7),
        Reply::Array(Vec::new()),
        Reply::Array(vec![Reply::Nil, bytes("x")]),
    ]);
    for (kind, expected) in [
        ("nil", Reply::Nil),
        ("integer", Reply::Integer(-3)),
        ("status", bytes("FINE")),
        ("bytes", Reply::Bytes(vec![0, 13, 10, 255])),
        ("list", list),
    ] {
        let args = [Arg::Text(kind), Arg::Text(text), Arg::Number(u64::MAX)];
        let answer = connection.run(Call::new(lab.scripts.echo, &[&key], &args)).await;
        ensure(answer.as_ref() == Ok(&expected), || format!("{kind}: {answer:?} instead of {expected:?}"))?;
    }
    Ok(())
}

pub(super) async fn new_scripts(lab: &Lab<'_>) -> Checked {
    let connection = lab.connect().await?;
    let (script, key) = (lab.new_script(), lab.key());
    for count in 1..=2 {
        let answer = lab.count_by(script, &*connection, &key).await;
        ensure(answer == Ok(Reply::Integer(count)), || format!("call {count} of a new script: {answer:?}"))?;
    }
    let (first, second) = (lab.new_script(), lab.new_script());
    let keys = [&*key];
    let calls = [first, script, second, first].map(|script| Call::new(script, &keys, &[Arg::Text("x")]));
    let answers = connection.run_batch(&calls).await;
    let all = answers.iter().filter(|answer| matches!(answer, Ok(Reply::Integer(3..=6)))).count();
    ensure(all == 4, || format!("a batch with new scripts: {answers:?}"))
}

/// The connection has called the script before, and may take it for known.
pub(super) async fn lost_scripts(lab: &Lab<'_>) -> Checked {
    let (disturb, connection) = (lab.disturb()?, lab.connect().await?);
    let (key, script) = (lab.key(), lab.new_script());
    let keys = [&*key];
    for round in 0..3 {
        let answer = lab.count_by(script, &*connection, &key).await;
        ensure(answer == Ok(Reply::Integer(3 * round + 1)), || format!("a call, in round {round}: {answer:?}"))?;
        if round == 2 {
            break;
        }
        if !disturb.forget_scripts().await {
            return Err(not_checked("what disturbs the connection cannot have the server forget its scripts"));
        }
        let calls = [Call::new(script, &keys, &[Arg::Text("x")]); 2];
        let answers = connection.run_batch(&calls).await;
        let all = answers.iter().filter(|answer| matches!(answer, Ok(Reply::Integer(_)))).count();
        ensure(all == 2, || format!("a batch after the server lost its scripts: {answers:?}"))?;
        if !disturb.forget_scripts().await {
            return Err(not_checked("what disturbs the connection cannot have the server forget its scripts"));
        }
    }
    Ok(())
}

pub(super) async fn own(lab: &Lab<'_>) -> Checked {
    let connection = lab.connect().await?;
    let texts: Vec<String> = (0..200).map(|n| format!("call {n}")).collect();
    let answers = in_turn(texts.iter().map(|text| lab.echo(&*connection, text))).await;
    for (text, answer) in texts.iter().zip(answers) {
        ensure(answer == Ok(Reply::Bytes(text.as_bytes().to_vec())), || format!("{text} got {answer:?}"))?;
    }
    Ok(())
}

pub(super) async fn refusals(lab: &Lab<'_>) -> Checked {
    let connection = lab.connect().await?;
    let key = lab.key();
    let keys = [&*key];
    for (kind, expected, word) in [("own", "BOWLINETEST", "on purpose"), ("command", "WRONGTYPE", "")] {
        let args = [Arg::Text(kind)];
        let call = Call::new(lab.scripts.fail, &keys, &args);
        let alone = connection.run(call).await;
        let mut batch = connection.run_batch(&[call]).await;
        for answer in [alone, batch.pop().unwrap_or(Ok(Reply::Nil))] {
            let told = match &answer {
                Err(ConnectionError::Refused { code, message }) => code == expected && message.contains(word),
                _ => false,
            };
            ensure(told, || format!("the server answered with `{expected} {word}`, and the call with {answer:?}"))?;
        }
    }
    let answer = lab.echo(&*connection, "later").await;
    ensure(answer == Ok(Reply::Bytes(b"later".to_vec())), || format!("the call after the errors: {answer:?}"))
}
