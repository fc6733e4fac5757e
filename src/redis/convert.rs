//! Converts calls to commands and values to replies.

use ::redis::{Cmd, RedisError, ServerError, ServerErrorKind, Value};

use crate::connection::{Arg, Call, ConnectionError, Reply};
#[cfg(feature = "redis-1")]
use crate::protocol::Script;

/// Makes an `EVALSHA`, or an `EVAL` with the source if `whole` is set.
pub(super) fn command(call: &Call<'_>, whole: bool) -> Cmd {
    let (name, script) = if whole { ("EVAL", call.script.source()) } else { ("EVALSHA", call.script.sha1()) };
    let size = |arg: &Arg<'_>| match arg {
        Arg::Text(text) => text.len(),
        Arg::Number(_) => 20,
    };
    let bytes = name.len()
        + script.len()
        + 4
        + call.keys.iter().map(|key| key.len()).sum::<usize>()
        + call.args.iter().map(size).sum::<usize>();
    let mut command = Cmd::with_capacity(3 + call.keys.len() + call.args.len(), bytes);
    command.arg(name).arg(script).arg(call.keys.len());
    for key in call.keys {
        command.arg(*key);
    }
    for arg in call.args {
        match *arg {
            Arg::Text(text) => command.arg(text),
            Arg::Number(number) => command.arg(number),
        };
    }
    command
}

pub(super) fn is_noscript(value: &Value) -> bool {
    matches!(value, Value::ServerError(error) if error.kind() == Some(ServerErrorKind::NoScript))
}

/// Whether this answer can only come from a server that is a replica or has just become one.
pub(super) fn is_of_a_replica(error: &ConnectionError) -> bool {
    matches!(error, ConnectionError::Refused { code, .. } if matches!(&**code, "READONLY" | "MASTERDOWN" | "UNBLOCKED"))
}

/// Converts a value. Types of RESP3 become those that RESP2 servers send instead. Scripts reply with neither maps nor
/// doubles, but a proxy in front of Redis may.
pub(super) fn reply(value: Value) -> Result<Reply, ConnectionError> {
    Ok(match value {
        Value::Nil => Reply::Nil,
        Value::Int(number) => Reply::Integer(number),
        Value::Boolean(truth) => Reply::Integer(truth.into()),
        Value::BulkString(bytes) => Reply::Bytes(bytes),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Reply::Bytes(text.into_bytes()),
        Value::Okay => Reply::Bytes(b"OK".to_vec()),
        Value::Double(number) => Reply::Bytes(number.to_string().into_bytes()),
        Value::Array(items) | Value::Set(items) => list(items)?,
        Value::Map(pairs) => list(pairs.into_iter().flat_map(|(key, value)| [key, value]))?,
        Value::Attribute { data, .. } => reply(*data)?,
        Value::ServerError(error) => return Err(refused(&error)),
        _ => {
            return Err(ConnectionError::Refused {
                code: "ERR".to_owned(),
                message: "the reply is of a type that no script sends".to_owned(),
            });
        }
    })
}

fn list(items: impl IntoIterator<Item = Value>) -> Result<Reply, ConnectionError> {
    items.into_iter().map(reply).collect::<Result<_, _>>().map(Reply::Array)
}

/// The `EVAL` in place of an `EVALSHA` that [`command`] has made.
#[cfg(feature = "redis-1")]
pub(super) fn whole(by_sha: &Cmd, script: &Script) -> Cmd {
    let mut whole = ::redis::cmd("EVAL");
    whole.arg(script.source());
    for arg in by_sha.args_iter().skip(2) {
        // No command of this file has a cursor.
        if let ::redis::Arg::Simple(bytes) = arg {
            whole.arg(bytes);
        }
    }
    whole
}

/// The error as the server sent it.
pub(super) fn refused(error: &ServerError) -> ConnectionError {
    refusal(error.code(), error.details())
}

/// An error of redis-rs, if the server sent it.
pub(super) fn refused_by_server(error: &RedisError) -> Option<ConnectionError> {
    error.code().map(|code| refusal(code, error.detail()))
}

/// Leaves out arguments that some servers quote, because these can be attempt ids or a login.
pub(super) fn refusal(code: &str, details: Option<&str>) -> ConnectionError {
    let details = details.unwrap_or("").split(", with args beginning with").next().unwrap_or("");
    ConnectionError::refused(format!("{code} {details}").trim_end())
}

#[cfg(test)]
mod tests;
