//! A watch of a key.
//!
//! With `CLIENT TRACKING`, the server remembers which keys a connection has read, and reports the next change of each,
//! once. So the key is read again after a report, and the report is passed on only then: what changes later is reported
//! again. The server looks up who has read a key, so a watch costs nothing but for changes of its own key. (Tracking by
//! prefixes, `BCAST`, would make each write of each client compare its key with all prefixes.)

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use ::redis::aio::{AsyncPushSender, MultiplexedConnection, SendError};
use ::redis::{Cmd, PushInfo, PushKind, Value};
use futures::channel::mpsc::{self, UnboundedReceiver};
use futures::future::{Either, select};
use futures::{FutureExt, StreamExt};

use super::super::convert;
use super::super::dial::handshake::{Fresh, driven};
use super::super::failure::Failure;
use crate::connection::{ConnectionError, Reply};
use crate::error::ErrorKind;
use crate::runtime::{Executor, timeout};

/// The key, and what the server has reported about it.
#[derive(Debug)]
pub(in super::super) struct Tracked {
    key: String,
    reports: UnboundedReceiver<()>,
}

impl Tracked {
    /// With what hears the reports of a socket.
    pub(in super::super) fn new(key: &str) -> (Self, Arc<dyn AsyncPushSender>) {
        let (sender, reports) = mpsc::unbounded();
        let push = move |push: PushInfo| {
            if push.kind == PushKind::Invalidate {
                // The socket may outlive its reader for a moment.
                let _ = sender.unbounded_send(());
            }
            Ok::<_, SendError>(())
        };
        (Self { key: key.to_owned(), reports }, Arc::new(push))
    }

    /// Has the server report the next change.
    pub(in super::super) async fn begin(&self, fresh: &mut Fresh) -> Result<(), Failure> {
        let Fresh { connection, driver, .. } = fresh;
        let mut command = ::redis::cmd("CLIENT");
        command.arg("TRACKING").arg("ON");
        answer(driven(driver, connection.send_packed_command(&command)).await?)?.map_err(|refusal| match refusal {
            ConnectionError::Refused { code, message } if code == "ERR" => {
                Failure::Refused(ConnectionError::Unsupported(format!("the server cannot watch keys: {message}")))
            }
            other => Failure::Refused(other),
        })?;
        let read = answer(driven(driver, connection.send_packed_command(&reading(&self.key))).await?)?;
        read.map(drop).map_err(|refusal| match refusal.kind() {
            ErrorKind::Denied => Failure::Refused(refusal),
            // The node of a cluster may have given the slot to another one.
            _ => Failure::Io(refusal.to_string()),
        })
    }
}

/// Calls `report` for reports, until the key cannot be read any more; without a key, for ever. The key is also read
/// after each `pause`. An answer takes `limit` at most.
pub(in super::super) async fn pass_on(
    tracked: Option<&mut Tracked>,
    executor: &Arc<dyn Executor>,
    mut connection: MultiplexedConnection,
    (pause, limit): (Duration, Duration),
    report: impl Fn(),
) {
    let Some(Tracked { key, reports }) = tracked else { return pending().await };
    let read = reading(key);
    loop {
        let is_reported = match select(reports.next(), executor.sleep(pause)).await {
            Either::Left((Some(()), _)) => true,
            Either::Left((None, _)) => return,
            Either::Right(_) => false,
        };
        // One reading answers all that was reported before it.
        while let Some(Some(())) = reports.next().now_or_never() {}
        match timeout(executor, limit, connection.send_packed_command(&read)).await.map(answer) {
            Some(Ok(Ok(_))) if is_reported => report(),
            Some(Ok(Ok(_))) => {}
            _ => return,
        }
    }
}

fn reading(key: &str) -> Cmd {
    let mut command = ::redis::cmd("EXISTS");
    command.arg(key);
    command
}

fn answer(answer: ::redis::RedisResult<Value>) -> Result<Result<Reply, ConnectionError>, Failure> {
    answer.map(convert::reply).map_err(|error| Failure::Io(error.to_string()))
}
