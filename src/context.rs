//! What all primitives of one client share.

use std::sync::Arc;
use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::backoff::Backoff;
use crate::config::Config;
use crate::connection::Connection;
use crate::driver::inbox::Inbox;
use crate::driver::server_clock::ServerClock;
use crate::driver::watchdog::{PAUSES, Watchdog};
use crate::engine::lease::{Hold, Term, deadline};
use crate::engine::{Closed, Engine};
use crate::error::{Error, ErrorKind, Result};
use crate::mutant::{self, Mutant};
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::dispatch::{Failure, Scripts};
use crate::protocol::key::{Keys, inbox_prefix};
use crate::protocol::kind::Kind;
use crate::protocol::message::Message;
use crate::protocol::reply::ServerMillis;
use crate::protocol::token::Token;
use crate::runtime::Executor;

/// How much later than the client gives up a request may still be executed: the client's idea of the server's clock
/// lags by a network delay.
const CLOCK_SLACK: Duration = Duration::from_millis(100);

/// Kept alive by clients, primitives and guards; when the last of them goes, the tasks end.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) executor: Arc<dyn Executor>,
    pub(crate) connection: Arc<dyn Connection>,
    pub(crate) config: Config,
    /// Who this client is in Redis.
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

    /// Every reply says what the server's clock shows.
    pub(crate) fn observe(&self, server: ServerMillis) {
        self.clock.observe(self.now(), server);
    }

    /// Until when the server may execute a request sent at `sent`: nobody will be there for a later answer. `longest` if
    /// somebody waits for less than the connection does.
    pub(crate) fn not_after(&self, sent: Instant, longest: Option<Duration>) -> ServerMillis {
        let wait = self.config.command_timeout;
        self.clock.at(sent, longest.map_or(wait, |longest| longest.min(wait)) + CLOCK_SLACK)
    }

    /// A release tells its own client in its reply.
    pub(crate) fn deliver(&self, told: Vec<Message>) {
        let now = self.now();
        told.into_iter().for_each(|message| self.engine.deliver(message, now));
    }

    /// A release that was, or may have been, executed may have had messages to this client in its reply.
    pub(crate) fn unheard(&self, keys: &Arc<Keys>) {
        self.engine.unheard(keys, self.now());
    }

    /// A series of tries of one operation.
    pub(crate) fn retry(&self, operation: &'static str, name: &str) -> Retry<'_> {
        Retry {
            context: self,
            operation,
            backoff: None,
            name: name.into(),
            give_up: self.now() + self.config.retry_timeout,
        }
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

/// Whether this client is the only one of its id. It listens already: of two that connect at once, at least one sees both.
async fn alone(scripts: Scripts<'_>, prefix: &str, client: Uuid, inbox: &str) -> Result<()> {
    let scratch = Keys::scratch(prefix, Kind::Lock, client);
    match scripts.listeners(scratch.main(), inbox).await {
        Ok(0 | 1) => Ok(()),
        Ok(_) => Err(Error::new(ErrorKind::ClientIdInUse, "connect")),
        Err(failure) => Err(failure.when_connecting(prefix)),
    }
}

/// A attempt id from before its first request until it is decided. Dropped undecided, it is the next one's in its cohort, or
/// abandoned: what it has in Redis is cleaned up in the background.
#[derive(Debug)]
pub(crate) struct PendingAttempt<'a> {
    context: &'a Context,
    pub(crate) id: AttemptId,
    /// Nobody else is to go on with it.
    pub(crate) alone: bool,
    decided: bool,
}

impl<'a> PendingAttempt<'a> {
    pub(crate) fn open(context: &'a Context, keys: &Arc<Keys>, amount: u32, lease: Duration) -> Result<Self, Closed> {
        let id = context.engine.open(keys, amount, lease, context.now())?;
        Ok(Self::resume(context, id))
    }

    /// Goes on with what the engine has opened.
    pub(crate) fn resume(context: &'a Context, id: AttemptId) -> Self {
        Self { context, id, alone: false, decided: false }
    }

    /// It is a hold of `amount` from now on, granted by a request sent at `sent`. `None` if it was revoked or the client closed
    /// meanwhile; an error if nothing is left of the lease.
    pub(crate) fn hold(
        mut self,
        amount: u32,
        token: Token,
        term: Term,
        lease: Duration,
        sent: Instant,
    ) -> Result<Option<Arc<Hold>>, Late> {
        let (now, until) = (self.context.now(), deadline(sent, lease));
        if until <= now && !mutant::on(Mutant::LateGrantKept) {
            self.abandon();
            return Err(Late);
        }
        self.decided = true;
        Ok(self.context.engine.hold(self.id, amount, token, term, until, now))
    }

    /// Its cohort has it now.
    pub(crate) fn leave(mut self) {
        self.decided = true;
    }

    /// The server said that nothing of it is left.
    pub(crate) fn forget(mut self) {
        self.decided = true;
        self.context.engine.forget(self.id);
    }

    /// Another attempt id is to be tried: what this one has in Redis is cleaned up.
    pub(crate) fn abandon(mut self) {
        self.decided = true;
        self.context.engine.abandon(self.id, self.context.now());
    }
}

impl Drop for PendingAttempt<'_> {
    fn drop(&mut self) {
        if !self.decided && self.alone {
            self.context.engine.abandon(self.id, self.context.now());
        } else if !self.decided {
            self.context.engine.drop_pending(self.id, self.context.now());
        }
    }
}

/// When the grant was known, nothing was left of its lease.
#[derive(Debug)]
pub(crate) struct Late;

/// Decides after each failure whether to try again.
#[derive(Debug)]
pub(crate) struct Retry<'a> {
    context: &'a Context,
    operation: &'static str,
    name: Box<str>,
    /// From the first failure on.
    backoff: Option<Backoff>,
    give_up: Instant,
}

impl Retry<'_> {
    /// Begins a new series: what went before was answered.
    pub(crate) fn start(&mut self) {
        self.backoff = None;
        self.give_up = self.context.now() + self.context.config.retry_timeout;
    }

    /// Waits before the next try, or fails: at once if trying again is of no use, else when the client's retry timeout,
    /// counted from the first try, is over.
    pub(crate) async fn again_after(&mut self, failure: Failure) -> Result<()> {
        let left = self.give_up.saturating_duration_since(self.context.now());
        if left.is_zero() || !failure.kind().is_retryable() {
            return Err(self.error(failure));
        }
        let backoff = || Backoff::new(PAUSES, self.context.engine.jitter_seed());
        let wait: Duration = self.backoff.get_or_insert_with(backoff).pause().min(left);
        self.context.executor.sleep(wait).await;
        Ok(())
    }

    pub(crate) fn error(&self, failure: Failure) -> Error {
        failure.into_error(self.operation).with_name(&self.name)
    }
}
