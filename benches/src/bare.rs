//! A bare connection of redis-rs, which calls scripts without a library of locks around it.

use std::sync::Arc;

use bowline::Executor;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, cmd};

use crate::Result;
use crate::runtime::Runtime;
use crate::watched::Recorded;

/// A connection that nothing else uses.
#[derive(Clone)]
pub struct BareConnection {
    connection: MultiplexedConnection,
    nothing: String,
}

impl std::fmt::Debug for BareConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BareConnection")
    }
}

/// A call of a script that the server knows.
#[derive(Clone, Debug)]
pub struct ScriptCall {
    sha1: String,
    keys: Vec<String>,
    args: Vec<String>,
}

impl ScriptCall {
    /// The script by its digest, `KEYS` and `ARGV`.
    pub fn new(sha1: &str, keys: &[&str], args: &[&str]) -> Self {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Self { sha1: sha1.to_owned(), keys: owned(keys), args: owned(args) }
    }

    /// The same keys and arguments for another script.
    pub fn of(sha1: &str, recorded: &Recorded) -> Self {
        Self { sha1: sha1.to_owned(), keys: recorded.keys.clone(), args: recorded.args.clone() }
    }

    /// What is sent.
    pub fn command(&self) -> Cmd {
        let mut command = cmd("EVALSHA");
        command.arg(&self.sha1).arg(self.keys.len()).arg(&self.keys).arg(&self.args);
        command
    }
}

impl BareConnection {
    /// Connects as bowline does: over a socket of the runtime, driven by a task of the runtime, with no timer of
    /// redis-rs.
    pub async fn open(runtime: Runtime, executor: &Arc<dyn Executor>, url: &str) -> Result<Self> {
        let mut connection = Self::dial(runtime, executor, url).await?;
        let nothing = cmd("SCRIPT").arg("LOAD").arg("return 1").query_async(&mut connection).await?;
        Ok(Self { connection, nothing })
    }

    /// Another connection to the same server, which has the script of the floor already.
    pub async fn another(&self, runtime: Runtime, executor: &Arc<dyn Executor>, url: &str) -> Result<Self> {
        Ok(Self { connection: Self::dial(runtime, executor, url).await?, nothing: self.nothing.clone() })
    }

    async fn dial(runtime: Runtime, executor: &Arc<dyn Executor>, url: &str) -> Result<MultiplexedConnection> {
        let (stream, login) = runtime.dial(url).await?;
        let config = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
        let login = login.set_protocol(redis::ProtocolVersion::RESP3).set_skip_set_lib_name();
        let (connection, driver) = MultiplexedConnection::new_with_config(&login, stream, config).await?;
        executor.spawn(Box::pin(driver));
        Ok(connection)
    }

    /// The floor of what was sent: as many calls with the same words, of a script that does nothing.
    pub fn floor_of(&self, sent: &[Recorded]) -> Vec<ScriptCall> {
        sent.iter().map(|recorded| ScriptCall::of(&self.nothing, recorded)).collect()
    }

    /// Makes these calls, one after the other. Fails if one of them does.
    pub async fn run(&mut self, calls: &[ScriptCall]) -> Result<()> {
        for call in calls {
            self.connection.send_packed_command(&call.command()).await?.extract_error()?;
        }
        Ok(())
    }
}
