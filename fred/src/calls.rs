//! Runs scripts over the client of the application.

use std::time::Duration;

use bowline::{Call, ConnectionError, Reply};
use fred::error::Error;
use fred::interfaces::ClientLike;
use fred::types::config::Options;
use fred::types::{ClusterHash, CustomCommand, Resp3Frame, Value};

use crate::convert;
use crate::shared::Shared;

type Answer = Result<Reply, ConnectionError>;

/// Between two attempts at a call that fred had no socket for.
const PAUSE: Duration = Duration::from_millis(10);

/// Runs one call within its time limit, unless the connection is closed.
pub(crate) async fn run(shared: &Shared, call: &Call<'_>) -> Answer {
    let limit = call.within.map_or(shared.timeout, |within| within.min(shared.timeout));
    shared.unless_closed(send(shared, call, limit)).await.unwrap_or(Err(ConnectionError::Closed))
}

/// Sends the call again only if it was not executed: after an answer that says so, or if fred had no socket for it.
async fn send(shared: &Shared, call: &Call<'_>, limit: Duration) -> Answer {
    let (executor, sha) = (&shared.executor, call.script.sha1());
    let end = executor.now() + limit;
    // Every call sends the script whole until one call has been answered. A call that tried the SHA1 first and was then
    // sent again could be overtaken by a later call.
    let mut whole = !shared.is_loaded(sha);
    loop {
        let left = end.saturating_duration_since(executor.now());
        if left.is_zero() {
            return Err(ConnectionError::Unreachable(format!("fred has had no connection for {limit:?}")));
        }
        let name = if whole { "EVAL" } else { "EVALSHA" };
        match raw(shared, name, convert::arguments(call, whole), left).await.map(convert::reply) {
            Ok(Ok(reply)) => {
                shared.set_loaded(sha, true);
                return Ok(reply);
            }
            Ok(Err(ConnectionError::Refused { code, .. })) if code == "NOSCRIPT" && !whole => {
                shared.set_loaded(sha, false);
                whole = true;
            }
            Ok(refused) => return refused,
            Err(error) if convert::was_not_routed(&error) => executor.sleep(PAUSE.min(left)).await,
            Err(error) => return Err(convert::unanswered(&error)),
        }
    }
}

/// Sends a command over the client of the application, at most once.
///
/// fred writes a command again after a reconnect as long as the command has attempts left. The attempts of the client's
/// own configuration, 3 by default, do not count here. A command whose time is over is not written any more.
pub(crate) async fn raw(
    shared: &Shared,
    name: &'static str,
    arguments: Vec<Value>,
    limit: Duration,
) -> Result<Resp3Frame, Error> {
    let options = Options { max_attempts: Some(1), timeout: Some(limit), ..Options::default() };
    let (client, command) = (shared.client.with_options(&options), custom(name));
    shared.in_tokio(client.custom_raw(command, arguments)).await
}

pub(crate) fn custom(name: &'static str) -> CustomCommand {
    CustomCommand::new_static(name, ClusterHash::FirstKey, false)
}
