//! The connection that says good-bye.

use std::time::Duration;

use super::lab::Lab;
use crate::connection::Reply;
use crate::driver::watchdog::goodbye::poll_until;
use crate::testing::report::{Checked, ensure, failed, not_checked};

pub(super) async fn reaches_the_server(lab: &Lab<'_>) -> Checked {
    let (connection, key) = (lab.connect().await?, lab.key());
    let other = lab.connect().await?;
    connection.close();
    let Some(alone) = connection.without_runtime(Duration::from_secs(5)) else {
        return Err(not_checked("the connection has none, or could not connect within 5 s"));
    };
    for count in 1..=2 {
        let until = lab.executor.now() + Duration::from_secs(5);
        let answer = poll_until(&*lab.executor, until, lab.count(&*alone, &key));
        let answer = answer.ok_or_else(|| failed(format!("call {count} does not end without the runtime")))?;
        ensure(answer == Ok(Reply::Integer(count)), || format!("call {count}: {answer:?}"))?;
    }
    let executed = lab.executed(&*other, &key).await?;
    ensure(executed == 2, || format!("2 calls were answered, and {executed} were executed on the server of the others"))
}
