//! Finds out whether a connection to a cluster sends calls again.

use std::pin::pin;
use std::time::Duration;

use ::redis::{Cmd, RedisError, Value};
use futures::future::{Either, select};
use uuid::Uuid;

use super::super::convert;
use super::shared::Shared;
use crate::connection::{ConnectionError, Reply};
use crate::error::{Error, ErrorKind, Result};

/// Counts its executions, and fails in a way that no server does after the execution of a script. redis-rs sends such a
/// command again, as it does after an answer that was lost. The first command changes nothing, but fails if the user
/// may not use it, so that no key is left that does not expire.
const COUNTED: &str = "redis.call('PEXPIRE', KEYS[1], '60000')
redis.call('RPUSH', KEYS[1], 'x') redis.call('PEXPIRE', KEYS[1], '60000')
return {err = 'TRYAGAIN asked by bowline'}";

const PAUSE: Duration = Duration::from_millis(50);

/// Fails if the connection has sent a call again.
#[expect(clippy::disallowed_methods, reason = "an adapter may draw a random name")]
pub(super) async fn refuse(shared: &Shared, prefix: &str) -> Result<()> {
    let key = format!("{prefix}:resends:{{{}}}", Uuid::new_v4().simple());
    let looked = shared.within(shared.timeout, looked(shared, &key)).await;
    looked.unwrap_or_else(|| Err(Error::because(ErrorKind::Unavailable, "connect", "no answer of the cluster")))
}

async fn looked(shared: &Shared, key: &str) -> Result<()> {
    let mut counted = ::redis::cmd("EVAL");
    counted.arg(COUNTED).arg(1).arg(key);
    let mut first = shared.application.send(&counted);
    loop {
        let sleep = shared.executor.sleep(PAUSE);
        match select(first, pin!(sleep)).await {
            Either::Left((answer, _)) => {
                is_turned_away(answer)?;
                judge(executed(shared, key).await?)?;
                // It would expire by itself, as it does if a call that comes late brings it back.
                let _ = shared.application.send(::redis::cmd("UNLINK").arg(key)).await;
                return Ok(());
            }
            Either::Right(((), pending)) => first = pending,
        }
        judge(executed(shared, key).await?)?;
    }
}

fn judge(executed: i64) -> Result<()> {
    if executed <= 1 {
        return Ok(());
    }
    let reason = "this ClusterConnection sends calls again whose outcome is unknown; build its client with retries(0)";
    Err(Error::because(ErrorKind::Unsupported, "connect", reason))
}

/// The answer must be the error that was asked for.
fn is_turned_away(answer: ::redis::RedisResult<Value>) -> Result<()> {
    match answer {
        Ok(Value::ServerError(error)) if error.code() == "TRYAGAIN" => Ok(()),
        Ok(Value::ServerError(error)) => Err(failed(&error.into())),
        Ok(_) => Ok(()),
        Err(error) if error.code() == Some("TRYAGAIN") => Ok(()),
        Err(error) => Err(failed(&error)),
    }
}

async fn executed(shared: &Shared, key: &str) -> Result<i64> {
    let mut length: Cmd = ::redis::cmd("LLEN");
    length.arg(key);
    let value = shared.application.send(&length).await.map_err(|error| failed(&error))?;
    match convert::reply(value) {
        Ok(Reply::Integer(executed)) => Ok(executed),
        Ok(_) => Ok(0),
        Err(refusal) => Err(refused(&refusal)),
    }
}

fn failed(error: &RedisError) -> Error {
    match convert::refused_by_server(error) {
        Some(refusal) => refused(&refusal),
        None => Error::because(ErrorKind::Unavailable, "connect", error.to_string()),
    }
}

fn refused(refusal: &ConnectionError) -> Error {
    Error::because(refusal.kind(), "connect", refusal.to_string())
}
