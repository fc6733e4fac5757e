//! The floor: the same commands with scripts that do nothing, on a bare connection of redis-rs.

use std::sync::Arc;

use bowline::Executor;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Value, cmd};

use crate::Result;
use crate::runtime::Runtime;
use crate::watched::Recorded;

/// A connection that nothing but the floor uses.
#[derive(Clone)]
pub struct Floor {
    connection: MultiplexedConnection,
    sha1: String,
}

impl std::fmt::Debug for Floor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Floor")
    }
}

impl Floor {
    /// Connects as bowline does: over a socket of the runtime, driven by a task of the runtime, with no timer of redis-rs.
    pub async fn open(runtime: Runtime, executor: &Arc<dyn Executor>, url: &str) -> Result<Self> {
        let (stream, login) = runtime.dial(url).await?;
        let config = AsyncConnectionConfig::new().set_response_timeout(None).set_connection_timeout(None);
        let login = login.set_protocol(redis::ProtocolVersion::RESP3).set_skip_set_lib_name();
        let (mut connection, driver) = MultiplexedConnection::new_with_config(&login, stream, config).await?;
        executor.spawn(Box::pin(driver));
        let sha1 = cmd("SCRIPT").arg("LOAD").arg("return 1").query_async(&mut connection).await?;
        Ok(Self { connection, sha1 })
    }

    /// Sends each of these with the script that does nothing, one after the other.
    pub async fn run(&mut self, commands: &[Recorded]) -> Result<()> {
        for Recorded { keys, args } in commands {
            let mut command = cmd("EVALSHA");
            command.arg(&self.sha1).arg(keys.len()).arg(keys).arg(args);
            match self.connection.send_packed_command(&command).await? {
                Value::Int(1) => {}
                other => return Err(format!("the floor's script replied {other:?}").into()),
            }
        }
        Ok(())
    }
}
