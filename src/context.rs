//! What all handles and guards of one client share.

use std::sync::Arc;
use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::config::Config;
use crate::connection::Connection;
use crate::driver::inbox::Inbox;
use crate::driver::retry::Retry;
use crate::driver::server_clock::ServerClock;
use crate::driver::watchdog::Watchdog;
use crate::engine::Engine;
use crate::error::{Error, ErrorKind, Result};
use crate::protocol::dispatch::{Failure, Scripts};
use crate::protocol::key::{Keys, inbox_prefix};
use crate::protocol::kind::Kind;
use crate::protocol::message::Message;
use crate::protocol::reply::ServerMillis;
use crate::runtime::Executor;

/// How much later than the client gives up may a request be executed: the client's estimate of the server's clock lags by a
/// network delay.
const CLOCK_SLACK: Duration = Duration::from_millis(100);

/// Clients, handles and guards keep it alive. When the last of them is dropped, the tasks end.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) executor: Arc<dyn Executor>,
    pub(crate) connection: Arc<dyn Connection>,
    pub(crate) config: Config,
    /// The identity of this client in Redis.
    pub(crate) client: Uuid,
    pub(crate) engine: Arc<Engine>,
    pub(crate) clock: Arc<ServerClock>,
    inbox_prefix: Arc<str>,
    _inbox: Inbox,
}

impl Context {
    /// Subscribes the inbox and starts the tasks.
    pub(crate) async fn start(
        executor: Arc<dyn Executor>,
        connection: Arc<dyn Connection>,
        config: Config,
        client: Uuid,
        clock: Arc<ServerClock>,
    ) -> Result<Arc<Self>> {
        let inbox_prefix: Arc<str> = inbox_prefix(&config.prefix).into();
        let channel = format!("{inbox_prefix}{client}");
        let notices = connection
            .subscribe(&channel)
            .await
            .map_err(|error| Failure::from(error).when_connecting(&config.prefix))?;
        if config.client_id.is_some() {
            let scripts = Scripts { connection: &*connection, inbox_prefix: &inbox_prefix };
            alone(scripts, &config.prefix, client, &channel).await?;
        }
        let engine = Arc::new(Engine::new(client));
        let inbox = Inbox::start(&executor, engine.clone(), notices);
        let watchdog = Watchdog {
            engine: engine.clone(),
            executor: executor.clone(),
            connection: connection.clone(),
            clock: clock.clone(),
            inbox_prefix: inbox_prefix.clone(),
            retry_timeout: config.retry_timeout,
            command_timeout: config.command_timeout,
            shutdown_timeout: config.shutdown_timeout,
        };
        executor.spawn(Box::pin(watchdog.run()));
        Ok(Arc::new(Self { executor, connection, config, client, engine, clock, inbox_prefix, _inbox: inbox }))
    }

    pub(crate) fn scripts(&self) -> Scripts<'_> {
        Scripts { connection: &*self.connection, inbox_prefix: &self.inbox_prefix }
    }

    pub(crate) fn now(&self) -> Instant {
        self.executor.now()
    }

    /// A reply said what the server's clock shows.
    pub(crate) fn observe(&self, server: ServerMillis) {
        self.clock.observe(self.now(), server);
    }

    /// Until when the server may execute a request sent at `sent`. A later answer would find no caller: the connection waits for
    /// no longer than its command timeout, and the caller for `longest` if that is less.
    pub(crate) fn not_after(&self, sent: Instant, longest: Option<Duration>) -> ServerMillis {
        let wait = self.config.command_timeout;
        self.clock.at(sent, longest.map_or(wait, |longest| longest.min(wait)) + CLOCK_SLACK)
    }

    /// The reply to a release carries the messages for the client that sent it.
    pub(crate) fn deliver(&self, messages: Vec<Message>) {
        let now = self.now();
        messages.into_iter().for_each(|message| self.engine.deliver(message, now));
    }

    /// The reply to a release that was executed, or may have been, was lost with its messages.
    pub(crate) fn reply_lost(&self, keys: &Arc<Keys>) {
        self.engine.reply_lost(keys, self.now());
    }

    /// A series of requests for one operation.
    pub(crate) fn retry(&self, operation: &'static str, name: &str) -> Retry<'_> {
        Retry::new(&*self.executor, &self.engine, self.config.retry_timeout, operation, name)
    }

    pub(crate) fn closed(&self, operation: &'static str, keys: &Keys) -> Error {
        Error::new(ErrorKind::Closed, operation).with_name(&keys.name)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        self.engine.end();
    }
}

/// Checks that no other client has the same id. This client is subscribed already, so of two that connect at the same time at
/// least one sees both.
async fn alone(scripts: Scripts<'_>, prefix: &str, client: Uuid, inbox: &str) -> Result<()> {
    let scratch = Keys::scratch(prefix, Kind::Lock, client);
    match scripts.listeners(scratch.main(), inbox).await {
        Ok(0 | 1) => Ok(()),
        Ok(_) => Err(Error::new(ErrorKind::ClientIdInUse, "connect")),
        Err(failure) => Err(failure.when_connecting(prefix)),
    }
}

#[cfg(test)]
pub(crate) mod tests;
