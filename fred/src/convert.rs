//! Converts calls to arguments, and what came back to replies and errors.

use bowline::{Arg, Call, ConnectionError, Reply};
use fred::error::{Error, ErrorKind};
use fred::types::{Resp3Frame, Value};

/// What the router of fred says about a command that it has not written to a socket.
const NOT_ROUTED: &str = "Failed to route command.";

/// Errors of fred before a command enters its queue.
const NOT_QUEUED: [&str; 2] =
    ["Failed to send command to router.", "Error sending command while connection is blocked."];

/// The arguments of an `EVALSHA`, or of an `EVAL` if `whole` is set.
pub(crate) fn arguments(call: &Call<'_>, whole: bool) -> Vec<Value> {
    let script = if whole { call.script.source() } else { call.script.sha1() };
    let mut arguments: Vec<Value> = Vec::with_capacity(2 + call.keys.len() + call.args.len());
    arguments.extend([script.into(), call.keys.len().to_string().into()]);
    arguments.extend(call.keys.iter().map(|key| Value::from(*key)));
    arguments.extend(call.args.iter().map(|arg| match *arg {
        Arg::Text(text) => text.into(),
        // A number of fred is an i64.
        Arg::Number(number) => number.to_string().into(),
    }));
    arguments
}

/// Types of RESP3 become those that RESP2 servers send instead.
pub(crate) fn reply(frame: Resp3Frame) -> Result<Reply, ConnectionError> {
    Ok(match frame {
        Resp3Frame::Null => Reply::Nil,
        Resp3Frame::Number { data, .. } => Reply::Integer(data),
        Resp3Frame::Boolean { data, .. } => Reply::Integer(data.into()),
        Resp3Frame::Double { data, .. } => Reply::Bytes(data.to_string().into_bytes()),
        Resp3Frame::BlobString { data, .. }
        | Resp3Frame::SimpleString { data, .. }
        | Resp3Frame::VerbatimString { data, .. }
        | Resp3Frame::BigNumber { data, .. } => Reply::Bytes(data.to_vec()),
        Resp3Frame::Array { data, .. } => list(data)?,
        Resp3Frame::Set { data, .. } => list(data)?,
        Resp3Frame::Map { data, .. } => list(data.into_iter().flat_map(|(key, value)| [key, value]))?,
        Resp3Frame::SimpleError { data, .. } => return Err(refused(&data)),
        Resp3Frame::BlobError { data, .. } => return Err(refused(&String::from_utf8_lossy(&data))),
        _ => return Err(refused("ERR the reply is of a type that no script sends")),
    })
}

fn list(items: impl IntoIterator<Item = Resp3Frame>) -> Result<Reply, ConnectionError> {
    items.into_iter().map(reply).collect::<Result<_, _>>().map(Reply::Array)
}

/// Makes a refusal from the line of the server.
pub(crate) fn refused(line: &str) -> ConnectionError {
    ConnectionError::refused(unquoted(line))
}

/// Leaves out arguments that some servers quote, because these can be attempt ids or a login.
fn unquoted(line: &str) -> &str {
    line.split(", with args beginning with").next().unwrap_or("").trim_end()
}

/// Whether fred had no socket for the command. It was not sent, and will not be.
pub(crate) fn was_not_routed(error: &Error) -> bool {
    error.details() == NOT_ROUTED
}

/// The error of a call that has no answer. `custom_raw` passes on the errors of a server as frames, so an error of fred
/// is none about this call: even if it has the text of a server, the call may have been executed.
pub(crate) fn unanswered(error: &Error) -> ConnectionError {
    let is_unsent = matches!(error.kind(), ErrorKind::Backpressure) || NOT_QUEUED.contains(&error.details());
    let text = unquoted(error.details()).to_owned();
    if is_unsent { ConnectionError::Unreachable(text) } else { ConnectionError::Unknown(text) }
}

/// The error of an attempt at a subscription: a refusal if the text is that of a server, which begins with a code.
pub(crate) fn not_subscribed(error: &Error) -> ConnectionError {
    let code = error.details().split(' ').next().unwrap_or("");
    if code.len() > 2 && code.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return refused(error.details());
    }
    ConnectionError::Unreachable(unquoted(error.details()).to_owned())
}

#[cfg(test)]
mod tests;
