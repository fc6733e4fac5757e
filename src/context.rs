//! What all handles and guards of one client share.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::ready;
use uuid::Uuid;

use crate::config::Config;
use crate::connection::first_connect::FirstConnect;
use crate::connection::{Connection, ConnectionError, Warning};
use crate::driver::channels::Channels;
use crate::driver::inbox::{Inbox, Reader};
use crate::driver::label::Labelled;
use crate::driver::retry::{Asker, Retry, patience};
use crate::driver::server_clock::ServerClock;
use crate::driver::watchdog::Watchdog;
use crate::engine::Engine;
use crate::error::{Error, ErrorKind, Result};
use crate::observe::Observed;
use crate::opening::{Notices, Opening};
use crate::protocol::dispatch::Scripts;
use crate::protocol::key::{Keys, Named, inbox};
use crate::protocol::message::Message;
use crate::protocol::reply::ServerMillis;
use crate::runtime::Executor;

/// Clients, handles and guards keep it alive. When the last of them is dropped, the tasks end.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) executor: Arc<dyn Executor>,
    pub(crate) connection: Arc<dyn Connection>,
    /// The first connect, if it is made in the background.
    first: Option<Arc<FirstConnect>>,
    pub(crate) config: Config,
    /// The identity of this client in Redis.
    pub(crate) client: Uuid,
    pub(crate) engine: Arc<Engine>,
    pub(crate) clock: Arc<ServerClock>,
    pub(crate) label: Option<Arc<Labelled>>,
    /// Those on which others say that a lock is free.
    pub(crate) channels: Channels,
    /// Keys that are watched.
    pub(crate) watches: Channels,
    inbox_prefix: Arc<str>,
    _inbox: Inbox,
}

impl Context {
    /// Subscribes the inbox while the server is `checked`, and starts the tasks.
    pub(crate) async fn start(opening: Opening, checked: impl Future<Output = Result<()>>) -> Result<Arc<Self>> {
        let notices = opening.open_while(checked).await?;
        Ok(Self::opened(opening, notices))
    }

    /// Starts the tasks.
    pub(crate) fn opened(opening: Opening, notices: Notices) -> Arc<Self> {
        let engine = Arc::new(Engine::new(opening.client, opening.connection.topology().sharded_messages));
        Self::start_tasks(opening, None, engine, ready(Some(notices)))
    }

    /// Starts the tasks, one of which connects.
    pub(crate) fn start_in_background(opening: Opening) -> Arc<Self> {
        let engine = Arc::new(Engine::new(opening.client, false));
        let first = Arc::new(FirstConnect::new(String::new(), opening.executor.clone()));
        let notices = opening.clone().in_background(first.clone(), engine.clone());
        Self::start_tasks(opening, Some(first), engine, notices)
    }

    fn start_tasks(
        opening: Opening,
        first: Option<Arc<FirstConnect>>,
        engine: Arc<Engine>,
        notices: impl Future<Output = Option<Notices>> + Send + 'static,
    ) -> Arc<Self> {
        let Opening { executor, connection, config, client, clock, inbox_prefix } = opening;
        let reader = Reader { executor: executor.clone(), connection: connection.clone(), engine: engine.clone() };
        let all = inbox_prefix.clone();
        let reading = Inbox::start(reader, notices, move |slot| inbox(&all, Some(slot), client));
        let label = Labelled::new(&config, client, &clock, first.as_ref());
        let watchdog = Watchdog {
            engine: engine.clone(),
            executor: executor.clone(),
            connection: connection.clone(),
            clock: clock.clone(),
            inbox_prefix: inbox_prefix.clone(),
            label: label.clone(),
            retry_timeout: config.retry_timeout,
            command_timeout: config.command_timeout,
            shutdown_timeout: config.shutdown_timeout,
        };
        executor.spawn(Box::pin(watchdog.run()));
        let [channels, watches] = [None, Some(inbox(&inbox_prefix, None, client))]
            .map(|inbox| Channels::new(&executor, &connection, &engine, inbox));
        Arc::new(Self {
            executor,
            connection,
            first,
            config,
            client,
            engine,
            clock,
            label,
            channels,
            watches,
            inbox_prefix,
            _inbox: reading,
        })
    }

    /// Why there has been no connection yet. `None`: there has.
    pub(crate) fn not_connected(&self) -> Option<ConnectionError> {
        self.first.as_ref()?.missing()
    }

    /// Resolves when the client has connected, or will not. `None`: it has. Keeps no client alive.
    pub(crate) fn connecting(&self) -> Option<impl Future<Output = ()> + Send + 'static> {
        let first = self.first.clone()?;
        first.is_missing().then(|| first.ended())
    }

    /// Why calls with this key cannot be sent now. `None`: they can, or it is not known why not.
    pub(crate) fn why_down(&self, key: &str) -> Option<ConnectionError> {
        match &self.first {
            Some(first) if first.is_missing() => first.why_down(&*self.connection, key),
            _ => self.connection.why_down(key),
        }
    }

    /// The problems of the server's setup. The connection may know them before the client has connected.
    pub(crate) fn warnings(&self) -> Vec<Warning> {
        if self.not_connected().is_some() { Vec::new() } else { self.connection.warnings() }
    }

    /// Closes the connection, or ends the attempts to connect.
    pub(crate) fn disconnect(&self) {
        self.connection.close();
        if let Some(first) = &self.first {
            first.close();
        }
    }

    pub(crate) fn scripts(&self) -> Scripts<'_> {
        Scripts { connection: &*self.connection, inbox_prefix: &self.inbox_prefix }
    }

    pub(crate) fn now(&self) -> Instant {
        self.executor.now()
    }

    pub(crate) fn observed<'a>(&'a self, operation: &'static str, named: &'a Named) -> Observed<'a> {
        Observed { executor: &self.executor, operation, named, names_in_metrics: self.config.names_in_metrics }
    }

    /// A reply said what the server's clock shows. 0 comes from a script that did not read the clock.
    pub(crate) fn observe(&self, server: ServerMillis) {
        if server != 0 {
            self.clock.observe(self.now(), server);
        }
    }

    /// The latest time at which the server may execute a request sent at `sent`. After that, the answer would find no
    /// caller, because the connection waits for its command timeout at most, and the caller for `longest` at most.
    pub(crate) fn not_after(&self, sent: Instant, longest: Option<Duration>) -> ServerMillis {
        let wait = self.config.command_timeout;
        self.clock.not_after(sent, longest.map_or(wait, |longest| longest.min(wait)))
    }

    /// Delivers the messages for this client that came with a reply, or that the reply stands for.
    pub(crate) fn deliver(&self, messages: impl IntoIterator<Item = Message>) {
        let now = self.now();
        messages.into_iter().for_each(|message| self.engine.deliver(message, now));
    }

    /// A script has to be called again to finish. The watchdog does so.
    pub(crate) fn promote_later(&self, keys: &Arc<Keys>) {
        self.engine.promote_later(keys, self.now(), self.config.lease);
    }

    /// Called when the reply to a release was lost, and with it the messages that it carried.
    pub(crate) fn reply_lost(&self, keys: &Arc<Keys>) {
        self.engine.reply_lost(keys, self.now());
    }

    /// For how long an operation goes on while it gets no usable answer.
    pub(crate) fn patience(&self) -> Duration {
        patience(self.config.retry_timeout, self.config.command_timeout)
    }

    /// Starts a series of requests for one operation.
    pub(crate) fn retry<'a>(&'a self, operation: &'static str, named: &'a Named) -> Retry<'a> {
        self.retry_from(operation, named, self.now())
    }

    /// As [`retry`](Self::retry), for an operation that began then.
    pub(crate) fn retry_from<'a>(&'a self, operation: &'static str, named: &'a Named, began: Instant) -> Retry<'a> {
        let Self { executor, connection, first, engine, config, .. } = self;
        let (connection, first) = (&**connection, first.as_deref());
        let Config { retry_timeout, command_timeout, .. } = *config;
        let asker = Asker { executor, connection, first, engine, retry_timeout, command_timeout };
        Retry::new(asker, operation, named, began)
    }

    pub(crate) fn closed(&self, operation: &'static str, named: &Named) -> Error {
        Error::new(ErrorKind::Closed, operation).with_name(&named.name)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if self.not_connected().is_some() {
            // Without a connection, nothing is left on the server.
            self.engine.end_now(self.now());
        } else {
            self.engine.end(self.now());
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
