//! The connection on which grants and renewals wait for replicas.
//!
//! `WAIT` holds up every command behind it, so it has a connection of its own, made when it is first needed. It follows
//! the connection for commands: when that one is made anew, its server may be another one, and this one is made anew too.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::calls;
use super::failure::Failure;
use super::link::Shared;
use super::supervisor;
use crate::connection::{Acknowledged, Call, ConnectionError};

pub(super) struct Acknowledging {
    shared: Arc<Shared>,
    /// The generation of the command connection that this one follows.
    follows: AtomicU64,
}

impl Acknowledging {
    /// Starts to connect to the server of the command connection.
    pub(super) fn start(commands: &Shared) -> Self {
        let shared = Arc::new(commands.sibling());
        shared.executor.spawn(Box::pin(supervisor::supervise_sibling(Arc::clone(&shared))));
        let follows = AtomicU64::new(commands.current.load(Ordering::SeqCst));
        Self { shared, follows }
    }

    /// Runs the calls, and waits for `replicas` replicas within `within`.
    pub(super) async fn run(
        &self,
        commands: &Shared,
        calls: &[Call<'_>],
        replicas: u32,
        within: Duration,
    ) -> Vec<Result<Acknowledged, ConnectionError>> {
        self.follow(commands);
        if commands.is_closed() {
            // It was closed while this was made.
            self.close();
        }
        calls::run_acknowledged(&self.shared, calls, replicas, within).await
    }

    fn follow(&self, commands: &Shared) {
        let now = commands.current.load(Ordering::SeqCst);
        if self.follows.swap(now, Ordering::SeqCst) != now {
            let own = self.shared.current.load(Ordering::SeqCst);
            self.shared.suspect(own, Failure::Io("the connection for commands was made anew".to_owned()));
        }
    }

    pub(super) fn close(&self) {
        self.shared.close();
    }
}
