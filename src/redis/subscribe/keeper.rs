//! The task of a subscription: keeps a socket subscribed, and reports interruptions.
//!
//! | the subscription | its messages | left by |
//! |---|---|---|
//! | has no socket | | a socket that is logged in and subscribed |
//! | has a socket without a proof | are dropped; those of an application's client wait | the proof; a failed proof, which ends the socket |
//! | is proven | are delivered | the end of its socket; the end of the proof |
//!
//! After each new proof, a gap is reported: the receiver then asks for what was missed or dropped before.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::channel::oneshot;

use super::super::dial::progress::DialProgress;
use super::super::failure::Failure;
use super::super::link::attempt;
use super::Notices;
use crate::backoff::Backoff;
use crate::connection::{ConnectionError, Notice};
use crate::runtime::{self, Executor};
use crate::tuning::RECONNECT;

/// How a subscription opens a socket, and how it knows that the socket leads to the right server.
pub(in super::super) trait Source: Send + 'static {
    /// A socket that is subscribed.
    type Socket: Send;

    fn executor(&self) -> &Arc<dyn Executor>;

    /// The shortest and the longest time limit of an attempt at a socket. The longest one is also that of the first
    /// subscription, with all its attempts.
    fn limits(&self) -> [Duration; 2];

    /// The longest time of an attempt at the first socket, if the next attempt leads to another server. By default, one
    /// attempt may use up all the time of the first subscription.
    fn first_limit(&self) -> Option<Duration> {
        None
    }

    /// Connects, subscribes and waits for the confirmation.
    fn open(
        &mut self,
        channel: &str,
        notices: &Notices,
        progress: &Arc<DialProgress>,
    ) -> impl Future<Output = Result<Self::Socket, Failure>> + Send;

    /// Finds out whether the socket leads to the right server.
    fn prove(&mut self, socket: &mut Self::Socket) -> impl Future<Output = Proven> + Send;

    /// Reads until messages can be missed. Returns the socket if only its proof has lapsed.
    fn stand(&self, socket: Self::Socket, notices: &Notices) -> impl Future<Output = Option<Self::Socket>> + Send;

    /// Reads during the pause. Returns the socket if it is still up.
    fn idle(&self, socket: Self::Socket, pause: Duration) -> impl Future<Output = Option<Self::Socket>> + Send;

    /// Waits before the next attempt at a socket.
    fn pause(&self, pause: Duration) -> impl Future<Output = ()> + Send {
        self.executor().sleep(pause)
    }

    /// Counts a socket that was made again.
    fn reconnected(&self);

    /// Resolves when the connection is closed.
    fn closed(&self) -> impl Future<Output = ()> + Send + 'static;
}

/// Whether a socket leads to the right server.
pub(in super::super) enum Proven {
    Yes,
    /// Another socket may lead there.
    No(Failure),
    /// The server refused to answer.
    Refused(ConnectionError),
    /// The server of the commands did not answer. The next one will be asked.
    Unanswered,
    /// The socket has ended.
    Ended,
}

/// The state of the task.
pub(super) struct Keeper<S> {
    source: S,
    channel: String,
    notices: Notices,
    backoff: Backoff,
    /// The time limit for the next attempt at a new socket.
    limit: Duration,
}

/// One interruption, from the loss to the proof.
#[derive(Default)]
struct Interruption {
    /// Whether the socket was lost and the gap was reported.
    gap: bool,
    /// Whether a refusal was reported.
    refused: bool,
}

impl<S: Source> Keeper<S> {
    pub(super) fn new(source: S, channel: String, notices: Notices, seed: u64) -> Self {
        let [limit, _] = source.limits();
        Self { source, channel, notices, backoff: Backoff::new(RECONNECT, seed), limit }
    }

    pub(super) async fn run(&mut self, confirm: oneshot::Sender<Result<(), Failure>>) {
        let (executor, [_, timeout]) = (Arc::clone(self.source.executor()), self.source.limits());
        let mut last = Failure::Io(format!("no answer within {timeout:?}"));
        let first = runtime::timeout(&executor, timeout, self.first(&mut last)).await;
        let mut socket = match first.unwrap_or(Err(last)) {
            Ok(socket) => socket,
            Err(failure) => {
                let _ = confirm.send(Err(failure));
                return;
            }
        };
        if confirm.send(Ok(())).is_err() {
            return;
        }
        loop {
            let since = executor.now();
            let kept = self.source.stand(socket, &self.notices).await;
            self.backoff.lasted(executor.now().saturating_duration_since(since));
            socket = self.restore(kept).await;
            // The gap is sent here and not when the confirmation arrives, because the proof may lapse at the same
            // moment, and every gap at the end of an interruption needs one at its beginning. Messages that arrive
            // before this notice were not missed.
            self.notices.send(Notice::Gap);
        }
    }

    /// Tries until a socket is proven or the server refuses. `last` keeps the last failure.
    async fn first(&mut self, last: &mut Failure) -> Result<S::Socket, Failure> {
        let (executor, limit) = (Arc::clone(self.source.executor()), self.source.first_limit());
        loop {
            let progress = Arc::default();
            let opened = self.source.open(&self.channel, &self.notices, &progress);
            let opened = match limit {
                Some(limit) => {
                    runtime::timeout(&executor, limit, opened).await.unwrap_or_else(|| Err(progress.late(limit)))
                }
                None => opened.await,
            };
            match opened {
                Ok(mut socket) => match self.source.prove(&mut socket).await {
                    Proven::Yes => return Ok(socket),
                    Proven::Refused(refusal) => return Err(Failure::Refused(refusal)),
                    Proven::No(failure) => *last = failure,
                    Proven::Unanswered | Proven::Ended => *last = Failure::Io("the connection was lost".to_owned()),
                },
                Err(failure @ (Failure::Io(_) | Failure::Left)) => *last = failure,
                Err(failure) => return Err(failure),
            }
            self.source.pause(last.pause(&mut self.backoff)).await;
        }
    }

    /// Tries until the subscription is up again, with the `kept` socket if that is still usable.
    async fn restore(&mut self, mut kept: Option<S::Socket>) -> S::Socket {
        let mut interruption = Interruption::default();
        loop {
            let mut socket = match kept.take() {
                Some(socket) => socket,
                None => self.dial(&mut interruption).await,
            };
            match self.source.prove(&mut socket).await {
                Proven::Yes => {
                    if interruption.gap {
                        self.source.reconnected();
                    }
                    return socket;
                }
                Proven::Refused(refusal) => {
                    self.refused(&mut interruption, refusal);
                    kept = self.source.idle(socket, self.backoff.pause()).await;
                }
                Proven::Unanswered => kept = Some(socket),
                Proven::No(_) | Proven::Ended => {}
            }
        }
    }

    /// Tries until there is a new socket.
    async fn dial(&mut self, interruption: &mut Interruption) -> S::Socket {
        if !std::mem::replace(&mut interruption.gap, true) {
            self.notices.send(Notice::Gap);
        }
        let mut pause = self.backoff.pause();
        loop {
            self.source.pause(pause).await;
            let (executor, limits) = (Arc::clone(self.source.executor()), self.source.limits());
            let progress = Arc::default();
            let opened = self.source.open(&self.channel, &self.notices, &progress);
            match attempt(&executor, limits, &mut self.limit, &progress, opened).await {
                Ok(socket) => return socket,
                Err(failure) => {
                    pause = failure.pause(&mut self.backoff);
                    if !matches!(failure, Failure::Io(_) | Failure::Left) {
                        self.refused(interruption, failure.into());
                    }
                }
            }
        }
    }

    /// Reports a refusal once per interruption. Further refusals are no news.
    fn refused(&self, interruption: &mut Interruption, refusal: ConnectionError) {
        if !std::mem::replace(&mut interruption.refused, true) {
            self.notices.send(Notice::Refused(refusal));
        }
    }
}
