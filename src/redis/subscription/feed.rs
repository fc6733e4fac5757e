//! The task of a subscription, which keeps it up and reports its interruptions.

use std::sync::Arc;
use std::time::Duration;

use futures::channel::mpsc::UnboundedSender;
use futures::channel::oneshot;

use super::super::failure::Failure;
use super::super::link::{RECONNECT, Shared};
use super::super::proof::Proof;
use super::Told;
use super::socket::{End, Socket};
use crate::backoff::Backoff;
use crate::connection::{ConnectionError, Notice};

/// The state of the task.
pub(super) struct Feed {
    shared: Arc<Shared>,
    channel: String,
    notices: UnboundedSender<Told>,
    backoff: Backoff,
    /// The time limit for the next attempt at a new socket.
    limit: Duration,
    /// How many proofs in a row said "elsewhere".
    refuted: u64,
}

/// A subscription that was proven by the connection of this generation.
struct Standing {
    socket: Socket,
    generation: u64,
}

/// One interruption, from the loss to the proof.
#[derive(Default)]
struct Interruption {
    /// Whether the socket was lost and the gap was reported.
    gap: bool,
    /// Whether a refusal was reported.
    refused: bool,
}

impl Feed {
    pub(super) fn new(shared: Arc<Shared>, channel: String, notices: UnboundedSender<Told>, number: u64) -> Self {
        let backoff = Backoff::new(RECONNECT, shared.seed.wrapping_add(number));
        let limit = shared.upkeep;
        Self { shared, channel, notices, backoff, limit, refuted: 0 }
    }

    pub(super) async fn run(&mut self, confirm: oneshot::Sender<Result<(), Failure>>) {
        let shared = Arc::clone(&self.shared);
        let mut last = Failure::Io(format!("no answer within {:?}", shared.timeout));
        let mut standing = match shared.within(shared.timeout, self.first(&mut last)).await {
            Some(Ok(standing)) => standing,
            Some(Err(refusal)) => {
                let _ = confirm.send(Err(refusal));
                return;
            }
            None => {
                let _ = confirm.send(Err(last));
                return;
            }
        };
        if confirm.send(Ok(())).is_err() {
            return;
        }
        loop {
            let since = shared.executor.now();
            let end = standing.socket.stand(&shared, standing.generation).await;
            self.backoff.lasted(shared.executor.now().saturating_duration_since(since));
            standing = self.restore((end == End::Commands).then_some(standing.socket)).await;
            // Not sent when the confirmation arrives, because the connection may end at the same moment, and every gap at
            // the end of an interruption needs one at its beginning. Messages that arrive before this notice were not
            // missed.
            self.notify(Notice::Gap);
        }
    }

    /// Tries again while it is polled. `last` keeps the last failure.
    async fn first(&mut self, last: &mut Failure) -> Result<Standing, Failure> {
        loop {
            match Socket::open(&self.shared, &self.channel, &self.notices, &Arc::default()).await {
                Ok(mut socket) => match socket.prove(&self.shared).await {
                    Some(Proof::Here(generation)) => {
                        self.refuted = 0;
                        return Ok(Standing { socket, generation });
                    }
                    Some(Proof::Refused(refusal)) => return Err(Failure::Refused(refusal)),
                    Some(Proof::Elsewhere(generation)) => *last = self.refute(generation),
                    Some(Proof::Unanswered) | None => *last = Failure::Io("the connection was lost".to_owned()),
                },
                Err(failure @ Failure::Io(_)) => *last = failure,
                Err(failure) => return Err(failure),
            }
            self.shared.pause(self.backoff.pause()).await;
        }
    }

    /// Tries until the subscription is up again, with the `kept` socket if that is still usable.
    async fn restore(&mut self, mut kept: Option<Socket>) -> Standing {
        let shared = Arc::clone(&self.shared);
        let mut interruption = Interruption::default();
        loop {
            let mut socket = match kept.take() {
                Some(socket) => socket,
                None => self.dial(&mut interruption).await,
            };
            match socket.prove(&shared).await {
                Some(Proof::Here(generation)) => {
                    self.refuted = 0;
                    if interruption.gap {
                        shared.reconnected("messages");
                    }
                    return Standing { socket, generation };
                }
                Some(Proof::Elsewhere(generation)) => drop(self.refute(generation)),
                Some(Proof::Refused(refusal)) => {
                    self.refused(&mut interruption, refusal);
                    kept = socket.pause(&shared, self.backoff.pause()).await.then_some(socket);
                }
                Some(Proof::Unanswered) => kept = Some(socket),
                None => {}
            }
        }
    }

    /// Makes a new socket, however long it takes.
    async fn dial(&mut self, interruption: &mut Interruption) -> Socket {
        if !std::mem::replace(&mut interruption.gap, true) {
            self.notify(Notice::Gap);
        }
        loop {
            self.shared.pause(self.backoff.pause()).await;
            let (mut limit, progress) = (self.limit, Arc::default());
            let opened = Socket::open(&self.shared, &self.channel, &self.notices, &progress);
            let opened = self.shared.attempt(&mut limit, &progress, opened).await;
            self.limit = limit;
            match opened {
                Ok(socket) => return socket,
                Err(Failure::Io(_)) => {}
                Err(failure) => self.refused(interruption, failure.into()),
            }
        }
    }

    /// The failure if the server of the connection for commands does not have the subscription.
    fn refute(&mut self, generation: u64) -> Failure {
        let failure = Failure::Io("the subscription is on another server than the commands".to_owned());
        self.refuted += 1;
        if self.refuted.is_multiple_of(2) {
            self.shared.suspect(generation, failure.clone());
        }
        failure
    }

    /// Reports a refusal once per interruption. Further refusals are no news.
    fn refused(&self, interruption: &mut Interruption, refusal: ConnectionError) {
        if !std::mem::replace(&mut interruption.refused, true) {
            self.notify(Notice::Refused(refusal));
        }
    }

    fn notify(&self, notice: Notice) {
        // An error means that the receiver is gone, and the task is about to end.
        let _ = self.notices.unbounded_send(Told { notice, proven: None });
    }
}
