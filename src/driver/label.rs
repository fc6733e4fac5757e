//! The label of a client on its server.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use futures::lock::Mutex;
use uuid::Uuid;

use crate::config::Config;
use crate::connection::first_connect::FirstConnect;
use crate::driver::server_clock::ServerClock;
use crate::jitter::Jitter;
use crate::observe;
use crate::protocol::dispatch::{Failure, Scripts};
use crate::protocol::key::Named;
use crate::protocol::limits::LABEL_TTL;
use crate::runtime::Executor;
use crate::tuning::REQUEST;

/// A client with a label.
#[derive(Debug)]
pub(crate) struct Labelled {
    client: Uuid,
    label: Arc<str>,
    keys: Named,
    clock: Arc<ServerClock>,
    /// The first connect, if it is made in the background.
    first: Option<Arc<FirstConnect>>,
    /// Locked while a request is under way, so that none is sent after the one that removes the label.
    stored: Mutex<Stored>,
}

#[derive(Debug, PartialEq, Eq)]
enum Stored {
    /// Nothing was sent.
    Nothing,
    /// The label may be stored.
    Label,
    /// The label was removed for good.
    Removed,
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
            stored: Mutex::new(Stored::Nothing),
        };
        (!label.is_empty()).then(|| Arc::new(labelled))
    }

    /// Stores the label again and again, until it is removed.
    pub(crate) async fn keep(&self, executor: &dyn Executor, scripts: Scripts<'_>, seed: u64) {
        if let Some(first) = self.first.as_ref().filter(|first| first.is_missing()) {
            first.clone().ended().await;
            if first.is_missing() {
                return;
            }
        }
        let (mut jitter, mut failures) = (Jitter::new(seed), 0);
        loop {
            let stored = {
                let mut stored = self.stored.lock().await;
                if *stored == Stored::Removed {
                    return;
                }
                *stored = Stored::Label;
                self.store(executor, scripts, LABEL_TTL).await
            };
            let mut pause = LABEL_TTL / 3;
            match stored {
                Ok(()) => failures = 0,
                Err(failure) => {
                    if failures == 0 {
                        observe::label_not_stored(&failure);
                    }
                    if failure.kind().is_retryable() {
                        pause = REQUEST.after(failures, &mut jitter);
                    }
                    failures = failures.saturating_add(1);
                }
            }
            executor.sleep(pause).await;
        }
    }

    /// Removes the label. If that fails, it ends with its life.
    pub(crate) async fn remove(&self, executor: &dyn Executor, scripts: Scripts<'_>) {
        let mut stored = self.stored.lock().await;
        let before = mem::replace(&mut *stored, Stored::Removed);
        if before == Stored::Label
            && let Err(failure) = self.store(executor, scripts, Duration::ZERO).await
        {
            observe::label_not_stored(&failure);
        }
    }

    async fn store(&self, executor: &dyn Executor, scripts: Scripts<'_>, ttl: Duration) -> Result<(), Failure> {
        let now = scripts.store_label(&self.keys, self.client, ttl, &self.label).await?;
        self.clock.observe(executor.now(), now);
        Ok(())
    }
}
