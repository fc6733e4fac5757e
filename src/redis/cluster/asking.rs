//! A call for a slot that a node is taking over. The node executes it only directly after an `ASKING`.

use ::redis::{Pipeline, Value};

use super::super::convert::{command, is_noscript};
use super::super::link::Up;
use super::super::sending::{in_order, lost};
use crate::connection::{Call, ConnectionError};

/// Sends `ASKING` and the call in one write. If the node does not have the script, it has executed nothing, and the
/// source is sent instead.
pub(super) async fn send(up: &Up, call: &Call<'_>) -> Result<Value, ConnectionError> {
    if up.loaded.sent(call.script).is_some() {
        let value = send_as(up, call, false).await?;
        if !is_noscript(&value) {
            return Ok(value);
        }
    }
    send_as(up, call, true).await
}

async fn send_as(up: &Up, call: &Call<'_>, whole: bool) -> Result<Value, ConnectionError> {
    let mut pipeline = Pipeline::with_capacity(2);
    pipeline.cmd("ASKING");
    pipeline.add_command(command(call, whole));
    let mut connection = up.connection.clone();
    let mut sent = in_order(connection.send_packed_commands(&pipeline, 0, 2)).await.map_err(lost)?;
    sent.pop().ok_or_else(|| ConnectionError::Unknown("the answer is missing".to_owned()))
}
