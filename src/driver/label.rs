//! The label of a client on its server.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use futures::future::select;
use futures::lock::Mutex;
use uuid::Uuid;

use crate::config::Config;
use crate::connection::first_connect::FirstConnect;
use crate::driver::server_clock::ServerClock;
use crate::engine::Engine;
use crate::error::ErrorKind;
use crate::jitter::Jitter;
use crate::observe;
use crate::protocol::dispatch::{Failure, Scripts};
use crate::protocol::key::Named;
use crate::protocol::limits::LABEL_TTL;
use crate::protocol::reply::ServerMillis;
use crate::runtime::Executor;
use crate::tuning::{LABEL, LABEL_LATE};

/// A client with a label.
#[derive(Debug)]
pub(crate) struct Labelled {
    client: Uuid,
    label: Arc<str>,
    keys: Named,
    clock: Arc<ServerClock>,
    /// The first connect, if it is made in the background.
    first: Option<Arc<FirstConnect>>,
    /// Whether the label may be stored. Locked while a request is under way, so that none is sent after the one that
    /// removes the label.
    is_stored: Mutex<bool>,
    /// How many acquisitions ask now who is in their way.
    pub(crate) looks: AtomicU32,
}

impl Labelled {
    /// `None`: the label is empty.
    pub(crate) fn new(
        config: &Config,
        client: Uuid,
        clock: &Arc<ServerClock>,
        first: Option<&Arc<FirstConnect>>,
    ) -> Option<Arc<Self>> {
        let Config { prefix, label, .. } = config;
        let labelled = Self {
            client,
            label: label.clone(),
            keys: Named::labels(prefix),
            clock: clock.clone(),
            first: first.cloned(),
            is_stored: Mutex::new(false),
            looks: AtomicU32::new(0),
        };
        (!label.is_empty()).then(|| Arc::new(labelled))
    }

    /// Stores the label again and again, until the client is closed. Removes it then, unless that was done.
    pub(crate) async fn keep(&self, engine: &Engine, executor: &Arc<dyn Executor>, scripts: Scripts<'_>) {
        if let Some(first) = self.first.as_ref().filter(|first| first.is_missing()) {
            select(pin!(engine.closed()), pin!(first.clone().ended())).await;
            if first.is_missing() {
                return;
            }
        }
        let (mut jitter, mut failures) = (Jitter::new(engine.jitter_seed()), 0);
        while !engine.is_closed() {
            // Not dropped when the client is closed: a connection may send a request whose caller is gone, and do that
            // after the one that removes the label.
            let stored = {
                let mut is_stored = self.is_stored.lock().await;
                // Closed while this waited: the label may have been removed.
                if engine.is_closed() {
                    break;
                }
                *is_stored = true;
                self.store(executor, scripts, LABEL_TTL).await
            };
            let mut pause = LABEL_TTL / 3 - jitter.up_to(LABEL_TTL / 30);
            match stored {
                Ok(()) => failures = 0,
                Err(failure) => {
                    if failures == 0 {
                        not_stored(&failure);
                    }
                    if failure.kind().is_retryable() {
                        pause = LABEL.after(failures, &mut jitter);
                    }
                    failures = failures.saturating_add(1);
                }
            }
            select(pin!(engine.closed()), executor.sleep(pause)).await;
        }
        engine.cleaned().await;
        self.remove(executor, scripts).await;
    }

    /// Removes the label of a closed client. If the call fails, or is dropped, a later one removes the label. Without
    /// one, the label ends with its life.
    pub(crate) async fn remove(&self, executor: &Arc<dyn Executor>, scripts: Scripts<'_>) {
        let mut is_stored = self.is_stored.lock().await;
        if !*is_stored {
            return;
        }
        match self.store(executor, scripts, Duration::ZERO).await {
            Ok(()) => *is_stored = false,
            Err(failure) => not_stored(&failure),
        }
    }

    /// Whether the label may be stored. Also `true` if a call was under way when the runtime ended.
    pub(crate) fn may_be_stored(&self) -> bool {
        self.is_stored.try_lock().is_none_or(|is_stored| *is_stored)
    }

    /// The call that removes the label, for a runtime that has ended.
    pub(crate) async fn last_call(&self, scripts: Scripts<'_>) -> Result<ServerMillis, Failure> {
        scripts.store_label(&self.keys, self.client, (Duration::ZERO, 0), &self.label).await
    }

    async fn store(&self, executor: &Arc<dyn Executor>, scripts: Scripts<'_>, ttl: Duration) -> Result<(), Failure> {
        // A late copy must not bring a label back that was removed.
        let not_after = self.clock.not_after(executor.now(), LABEL_LATE);
        let now = scripts.store_label(&self.keys, self.client, (ttl, not_after), &self.label).await?;
        self.clock.observe(executor.now(), now);
        Ok(())
    }
}

fn not_stored(failure: &Failure) {
    if failure.kind() != ErrorKind::Closed {
        observe::label_not_stored(failure);
    }
}
