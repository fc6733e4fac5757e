//! Calls that wait for replicas. No replica is needed: they wait for none.

use std::time::Duration;

use super::lab::Lab;
use crate::connection::{Acknowledged, Arg, Call, ConnectionError, Reply};
use crate::testing::report::{Checked, ensure, not_checked};

pub(super) async fn answered_in_order(lab: &Lab<'_>) -> Checked {
    let connection = lab.connect().await?;
    let (key, wrong) = (lab.key(), lab.key());
    let (keys, wrong) = ([&*key], [&*wrong]);
    let (count, fail) = ([Arg::Text("x")], [Arg::Text("own")]);
    let counting = Call::new(lab.scripts.count, &keys, &count);
    let calls = [counting, Call::new(lab.scripts.fail, &wrong, &fail), counting];
    let answers = connection.run_acknowledged(&calls, 0, Duration::from_secs(1)).await;
    if answers.iter().any(|answer| matches!(answer, Err(ConnectionError::Refused { code, .. }) if code == "NOPERM")) {
        return Err(not_checked("the user may not wait for replicas"));
    }
    let executed = lab.executed(&*connection, &key).await?;
    let is_right = match &answers[..] {
        [
            Err(ConnectionError::Unsupported(_)),
            Err(ConnectionError::Unsupported(_)),
            Err(ConnectionError::Unsupported(_)),
        ] => executed == 0,
        [Ok(first), Err(ConnectionError::Refused { .. }), Ok(second)] => {
            let counted = |answer: &Acknowledged, count| answer.reply == Reply::Integer(count);
            counted(first, 1) && counted(second, 2) && executed == 2
        }
        _ => false,
    };
    ensure(is_right, || format!("a call, one that fails and a call: {answers:?}, and {executed} were executed"))
}
