//! What a connection shares with its subscriptions.

use std::collections::HashSet;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ::redis::aio::ConnectionLike;
use ::redis::{Cmd, RedisResult, Value};
use event_listener::Event;
use futures::future::BoxFuture;

use super::gate::Gates;
use crate::config::Config;
use crate::runtime::Executor;
use crate::until::until;

/// A connection of the application, whatever its type.
pub(super) trait Application: Send + Sync {
    fn send<'a>(&self, command: &'a Cmd) -> BoxFuture<'a, RedisResult<Value>>;
}

impl<C: ConnectionLike + Clone + Send + Sync + 'static> Application for C {
    fn send<'a>(&self, command: &'a Cmd) -> BoxFuture<'a, RedisResult<Value>> {
        let mut connection = self.clone();
        Box::pin(async move { connection.req_packed_command(command).await })
    }
}

/// What kind of connection the application has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It reconnects by itself.
    Reconnects,
    /// Once it is lost, it is gone.
    EndsOnce,
    /// It reconnects by itself. Its nodes can turn calls away.
    Cluster,
}

pub(super) struct Shared {
    pub(super) executor: Arc<dyn Executor>,
    pub(super) application: Box<dyn Application>,
    pub(super) kind: Kind,
    pub(super) gates: Gates,
    /// For subscriptions.
    pub(super) clients: Vec<::redis::Client>,
    pub(super) timeout: Duration,
    pub(super) upkeep: Duration,
    /// The scripts that the server has answered, by their SHA1.
    pub(super) loaded: Mutex<HashSet<&'static str>>,
    /// The number of losses that calls have found.
    losses: AtomicU64,
    pub(super) reconnects: AtomicU64,
    closed: AtomicBool,
    changed: Event,
}

impl Shared {
    pub(super) fn new(
        executor: Arc<dyn Executor>,
        application: Box<dyn Application>,
        kind: Kind,
        clients: Vec<::redis::Client>,
        config: &Config,
    ) -> Arc<Self> {
        Arc::new(Self {
            executor,
            application,
            kind,
            gates: if kind == Kind::Cluster { Gates::of_a_cluster() } else { Gates::one() },
            clients,
            timeout: config.command_timeout,
            upkeep: config.upkeep(),
            loaded: Mutex::default(),
            losses: AtomicU64::new(0),
            reconnects: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            changed: Event::new(),
        })
    }

    pub(super) fn losses(&self) -> u64 {
        self.losses.load(Ordering::SeqCst)
    }

    /// A call has found that the connection is lost.
    pub(super) fn lost(&self) {
        self.losses.fetch_add(1, Ordering::SeqCst);
        self.changed.notify(usize::MAX);
    }

    /// Whether the connection is gone for good.
    pub(super) fn is_gone(&self) -> bool {
        self.kind == Kind::EndsOnce && self.losses() > 0
    }

    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.changed.notify(usize::MAX);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    pub(super) async fn until_closed(&self) {
        self.until(Self::is_closed).await;
    }

    /// Resolves when a call has found a loss after `losses` others.
    pub(super) async fn until_lost(&self, losses: u64) {
        self.until(|shared| shared.losses() > losses).await;
    }

    async fn until(&self, holds: impl Fn(&Self) -> bool) {
        until(&self.changed, move || holds(self).then_some(())).await;
    }

    /// Runs `work` for at most `limit`. `None`: the time is over.
    pub(super) async fn within<T>(&self, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
        crate::runtime::timeout(&self.executor, limit, work).await
    }
}
