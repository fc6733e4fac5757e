//! Attempts at a connection: where they go, how long they may take, and the pauses between them.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{Either, ready, select};

use super::super::dial::handshake::{self, Checked, Fresh};
use super::super::dial::one_sided::FirstLogin;
use super::super::dial::progress::{DialProgress, Stage};
use super::super::dial::wishes::{Beside, Wishes};
use super::super::failure::Failure;
use super::super::url::target::Target;
use super::Link;
use crate::runtime::{self, Executor};

impl Link {
    /// For a link whose first calls may be sent behind the login, before its answer is known. Their answers count only
    /// if [`confirm`](Self::confirm) keeps the connection.
    pub(in super::super) fn taking_calls_early(self) -> Self {
        Self { is_early: true, ..self }
    }

    /// Makes this the connection that calls are handed to. Returns its generation. `at_once`: its first login was
    /// accepted.
    pub(super) fn confirm(&self, fresh: &Fresh, at_once: bool) -> u64 {
        // A second login uses another connection than the one that was taken up early.
        if self.is_early && at_once && self.is_current(1) {
            return 1;
        }
        let generation = 1 + u64::from(self.is_early);
        self.take_up(Arc::clone(&fresh.target), fresh.connection.clone(), generation);
        generation
    }

    /// Finds the server, connects, logs in and checks it.
    pub(in super::super) async fn dial(
        &self,
        wishes: Wishes<'_>,
        progress: &Arc<DialProgress>,
    ) -> Result<Checked, Failure> {
        progress.enter(Stage::Locate);
        let target = self.locate.locate().await?;
        let made = handshake::connect(target.clone(), &*self.dialer, &self.executor, progress, (false, wishes));
        self.unless_left(&target, made).await
    }

    /// Waits for an attempt at the server, unless another one is named meanwhile: the socket of a server that stands
    /// still would stay silent until the time limit.
    pub(super) async fn unless_left<T>(
        &self,
        target: &Target,
        attempt: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        match select(pin!(attempt), self.locate.left(target)).await {
            Either::Left((made, _)) => made.map_err(|failure| self.locate.explain(target, failure)),
            Either::Right(_) => Err(Failure::Left),
        }
    }

    /// As [`dial`](Self::dial), for the first time and within the limit. Also finds out whether only one side uses TLS,
    /// and how the server is set up.
    pub(super) async fn dial_first(
        self: &Arc<Self>,
        limit: Duration,
        progress: &Arc<DialProgress>,
    ) -> Result<Checked, Failure> {
        progress.enter(Stage::Locate);
        let target = self.locate.locate().await?;
        let (dialer, executor) = (&*self.dialer, &self.executor);
        let ahead = || self.dial_ahead(&target);
        let early: Beside<'_> = Box::new(|connection| {
            self.take_up(target.clone(), connection, 1);
            ready(()).boxed()
        });
        let beside = self.is_early.then_some(early);
        let wishes = Wishes { on_dialled: Some(&ahead), beside, ..Wishes::default() };
        let made = async {
            let made = handshake::connect(target.clone(), dialer, executor, progress, (true, wishes)).await;
            match made {
                // A server with too many clients says so and hangs up. If early calls are written after that, the
                // socket discards what was not read. The second attempt sends none, so it reads the reason.
                Err(Failure::Io(_)) if self.is_early && progress.is_unanswered() => {
                    let wishes = Wishes::default();
                    let made = handshake::connect(target.clone(), dialer, executor, progress, (true, wishes)).await?;
                    Ok(Checked { at_once: false, ..made })
                }
                made => made,
            }
        };
        let login = FirstLogin { target: &target, dialer, executor, limit };
        self.unless_left(&target, login.watch(progress, made)).await
    }

    /// Waits before the next dial. Returns early if another server is to be dialled.
    pub(in super::super) async fn pause(&self, pause: Duration) {
        select(self.executor.sleep(pause), self.locate.moved()).await;
    }

    /// See [`attempt`].
    pub(in super::super) async fn attempt<T>(
        &self,
        limit: &mut Duration,
        progress: &DialProgress,
        attempt: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        self::attempt(&self.executor, [self.upkeep, self.timeout], limit, progress, attempt).await
    }
}

/// Makes one attempt at a connection, which takes at most `limit`. A longer one fails as [`late`](DialProgress::late).
/// If the limit was too short, the next one is longer, between `shortest` and `longest`. Otherwise no attempt would
/// succeed on a slow network, or while the server has to answer thousands of clients.
pub(in super::super) async fn attempt<T>(
    executor: &Arc<dyn Executor>,
    [shortest, longest]: [Duration; 2],
    limit: &mut Duration,
    progress: &DialProgress,
    attempt: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let (started, allowed) = (executor.now(), *limit);
    let made = runtime::timeout(executor, allowed, attempt).await;
    let least = match &made {
        Some(Ok(_)) => executor.now().saturating_duration_since(started) * 2,
        Some(Err(_)) => allowed,
        None => allowed * 2,
    };
    *limit = least.max(shortest).min(longest);
    made.unwrap_or_else(|| Err(progress.late(allowed)))
}
