//! What a client does before its first call: it checks the server, and subscribes its inbox.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::{BoxFuture, try_join};
use futures::stream::BoxStream;
use uuid::Uuid;

use crate::backoff::Backoff;
use crate::config::Config;
use crate::connection::first_connect::FirstConnect;
use crate::connection::{Connection, ConnectionError, Notice};
use crate::driver::server_clock::ServerClock;
use crate::engine::Engine;
use crate::error::{Error, ErrorKind, Result};
use crate::observe;
use crate::preflight;
use crate::protocol::dispatch::{Failure, Scripts};
use crate::protocol::key::{Keys, inbox, inbox_prefix};
use crate::protocol::kind::Kind;
use crate::runtime::{Executor, yield_once};
use crate::tuning::REQUEST;

pub(crate) type Notices = BoxStream<'static, Notice>;

/// A client to be, and what it is made of.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    pub(crate) executor: Arc<dyn Executor>,
    pub(crate) connection: Arc<dyn Connection>,
    pub(crate) config: Config,
    /// The identity of the client in Redis.
    pub(crate) client: Uuid,
    pub(crate) clock: Arc<ServerClock>,
    pub(crate) inbox_prefix: Arc<str>,
}

impl Opening {
    pub(crate) fn new(executor: Arc<dyn Executor>, connection: Arc<dyn Connection>, config: Config) -> Self {
        let client = config.client_id.unwrap_or_else(draw);
        let inbox_prefix = inbox_prefix(&config.prefix).into();
        Self { executor, connection, config, client, clock: Arc::default(), inbox_prefix }
    }

    /// Tries the scripts, and reads the server's clock.
    pub(crate) fn check(&self) -> BoxFuture<'_, Result<()>> {
        let Self { executor, connection, config, client, clock, .. } = self;
        // Boxed because the future is large, and every calling future would contain it.
        Box::pin(preflight::check(&**executor, &**connection, config, *client, clock))
    }

    /// Subscribes the inbox.
    async fn subscribe(&self) -> Result<Notices> {
        let channel = inbox(&self.inbox_prefix, None, self.client);
        self.connection.subscribe(&channel).await.map_err(|error| self.failed(error.into()))
    }

    /// Checks that no other client has the same id, if it was not drawn. This client is subscribed already, so of two
    /// that connect at the same time at least one sees both.
    async fn check_alone(&self) -> Result<()> {
        if self.config.client_id.is_none() {
            return Ok(());
        }
        let channel = inbox(&self.inbox_prefix, None, self.client);
        let scripts = Scripts { connection: &*self.connection, inbox_prefix: &self.inbox_prefix };
        let scratch = Keys::scratch(&self.config.prefix, Kind::Lock, self.client);
        match scripts.listeners(scratch.main(), &channel).await {
            Ok(0 | 1) => Ok(()),
            Ok(_) => Err(Error::new(ErrorKind::ClientIdInUse, "connect")),
            Err(failure) => Err(self.failed(failure)),
        }
    }

    /// Does all of it, again and again until it succeeds. `None`: `first` was closed, or the connection was.
    pub(crate) fn in_background(
        self,
        first: Arc<FirstConnect>,
        engine: Arc<Engine>,
    ) -> impl Future<Output = Option<Notices>> {
        let (connection, backoff) = (Arc::clone(&self.connection), Backoff::new(REQUEST, engine.jitter_seed()));
        let told = Arc::clone(&first);
        let attempt = move || {
            let (opening, engine, first) = (self.clone(), Arc::clone(&engine), Arc::clone(&told));
            async move { opening.attempt(&engine, &first).await }.boxed()
        };
        let made = first.make(backoff, attempt, |notices| notices);
        async move {
            let notices = made.await;
            if notices.is_none() {
                connection.close();
            }
            notices
        }
    }

    async fn attempt(self, engine: &Engine, first: &FirstConnect) -> Result<Notices> {
        let notices = match self.open().await {
            Ok(notices) => notices,
            Err(error) => {
                let why = ConnectionError::until_connected(&error);
                if first.missing().is_some_and(|last| last != why) {
                    observe::not_connected(&why);
                }
                return Err(error);
            }
        };
        if self.connection.topology().sharded_messages {
            engine.set_sharded();
        }
        observe::connected();
        self.warn();
        Ok(notices)
    }

    /// Subscribes and checks at the same time. A connection that is being made refuses the check, but not before it is
    /// there: then the check is tried again.
    async fn open(&self) -> Result<Notices> {
        let checked = async {
            match self.check().await {
                Err(error) if error.kind() == ErrorKind::Unavailable => behind(self.check()).await,
                checked => checked,
            }
        };
        self.open_while(checked).await
    }

    /// Subscribes the inbox while the server is `checked`.
    pub(crate) async fn open_while(&self, checked: impl Future<Output = Result<()>>) -> Result<Notices> {
        let (notices, ()) = try_join(self.subscribe(), behind(checked)).await?;
        self.check_alone().await?;
        Ok(notices)
    }

    /// Logs what was found.
    pub(crate) fn warn(&self) {
        self.connection.warnings().iter().for_each(|warning| observe::warning(warning));
    }

    fn failed(&self, failure: Failure) -> Error {
        failure.when_connecting(&self.config.prefix)
    }
}

/// Checks when the subscription has left, if that is possible now. A server that is busy with the check would hear the
/// question for the proof of a subscription before the subscription, and a second question takes a round trip.
async fn behind(checked: impl Future<Output = Result<()>>) -> Result<()> {
    yield_once().await;
    checked.await
}

#[expect(clippy::disallowed_methods, reason = "the only place where identities are drawn")]
fn draw() -> Uuid {
    Uuid::new_v4()
}
