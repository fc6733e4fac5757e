//! The stream of a subscription.
//!
//! | the subscription | its messages | left by |
//! |---|---|---|
//! | has no socket | | a socket that is subscribed |
//! | has a socket without a proof | are dropped | the proof; a failed proof, which ends the socket |
//! | is proven | are delivered | the end of its socket; a reconnect of the application's client |
//!
//! After each new proof, a gap is reported: the receiver then asks for what was missed or dropped before. No task runs:
//! the stream works while it is polled.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline::{BoxStream, ConnectionError, Notice};
use futures::{StreamExt, stream};

use crate::shared::Shared;
use crate::socket::{Event, Proven, Socket};

const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Returns when the server has confirmed the subscription.
pub(crate) async fn subscribe(
    shared: &Arc<Shared>,
    channel: &str,
) -> Result<BoxStream<'static, Notice>, ConnectionError> {
    let mut last = ConnectionError::Unreachable(format!("no answer within {:?}", shared.timeout));
    let first = shared.within(shared.timeout, first(shared, channel, &mut last));
    let first = shared.unless_closed(first).await.ok_or(ConnectionError::Closed)?;
    let state = State::Proven(first.unwrap_or(Err(last))?, shared.executor.now());
    let (shared, channel) = (Arc::clone(shared), channel.to_owned());
    let kept = Kept { shared, channel, state, pauses: Pauses::default(), is_told: false, is_refused: false };
    let notices = stream::unfold(kept, |mut kept| async move {
        let shared = Arc::clone(&kept.shared);
        let notice = shared.unless_closed(kept.next()).await?;
        Some((notice, kept))
    });
    Ok(notices.boxed())
}

/// Tries until a socket is proven or the server refuses. `last` keeps the last failure.
async fn first(shared: &Shared, channel: &str, last: &mut ConnectionError) -> Result<Socket, ConnectionError> {
    let mut pauses = Pauses::default();
    loop {
        match Socket::open(shared, channel).await {
            Ok(mut socket) => match socket.prove(shared).await {
                Proven::Yes => return Ok(socket),
                Proven::Refused(refusal) => return Err(refusal),
                Proven::No => *last = ConnectionError::Unreachable("it is on another server than the calls".to_owned()),
                Proven::Unanswered => {}
            },
            Err(refusal @ ConnectionError::Refused { .. }) => return Err(refusal),
            Err(failure) => *last = failure,
        }
        shared.executor.sleep(pauses.pause()).await;
    }
}

/// The pauses before attempts. They grow until a proof has lasted: a server that ends each subscription right after its
/// proof would get a hundred logins a second otherwise.
struct Pauses(Duration);

impl Default for Pauses {
    fn default() -> Self {
        Self(FIRST_PAUSE)
    }
}

impl Pauses {
    fn pause(&mut self) -> Duration {
        let longer = (self.0 * 2).min(LONGEST_PAUSE);
        std::mem::replace(&mut self.0, longer)
    }

    /// A socket was proven for this time.
    fn lasted(&mut self, time: Duration) {
        if time >= LONGEST_PAUSE {
            *self = Self::default();
        }
    }
}

struct Kept {
    shared: Arc<Shared>,
    channel: String,
    state: State,
    pauses: Pauses,
    /// Whether the gap at the beginning of this interruption was reported.
    is_told: bool,
    /// Whether a refusal was reported in this interruption. Further ones are no news.
    is_refused: bool,
}

enum State {
    Lost,
    Unproven(Socket),
    /// Since this time.
    Proven(Socket, Instant),
}

impl Kept {
    async fn next(&mut self) -> Notice {
        loop {
            let notice = match std::mem::replace(&mut self.state, State::Lost) {
                State::Proven(socket, since) => self.stand(socket, since).await,
                State::Unproven(socket) => self.prove(socket).await,
                State::Lost => self.open().await,
            };
            if let Some(notice) = notice {
                return notice;
            }
        }
    }

    async fn stand(&mut self, mut socket: Socket, since: Instant) -> Option<Notice> {
        let event = socket.event(&self.shared, &self.channel).await;
        if let Event::Lapsed | Event::Ended = event {
            self.pauses.lasted(self.shared.executor.now().saturating_duration_since(since));
        }
        let (state, notice) = match event {
            Event::Message(payload) => (State::Proven(socket, since), Some(Notice::Message(payload))),
            Event::Missed => (State::Proven(socket, since), Some(Notice::Gap)),
            Event::Lapsed => (State::Unproven(socket), None),
            Event::Ended => (State::Lost, self.interrupted()),
        };
        self.state = state;
        notice
    }

    async fn prove(&mut self, mut socket: Socket) -> Option<Notice> {
        match socket.prove(&self.shared).await {
            Proven::Yes => {
                self.shared.reconnected();
                (self.is_told, self.is_refused) = (false, false);
                self.state = State::Proven(socket, self.shared.executor.now());
                Some(Notice::Gap)
            }
            Proven::No => self.interrupted(),
            _ if socket.has_ended() => self.interrupted(),
            Proven::Refused(refusal) => {
                self.state = State::Unproven(socket);
                self.refused(refusal).await
            }
            Proven::Unanswered => {
                self.state = State::Unproven(socket);
                self.wait().await;
                None
            }
        }
    }

    async fn open(&mut self) -> Option<Notice> {
        self.wait().await;
        let limit = self.shared.timeout;
        match self.shared.within(limit, Socket::open(&self.shared, &self.channel)).await {
            Some(Ok(socket)) => {
                self.state = State::Unproven(socket);
                None
            }
            Some(Err(refusal @ ConnectionError::Refused { .. })) => self.refused(refusal).await,
            Some(Err(_)) | None => None,
        }
    }

    /// The gap at the beginning of an interruption.
    fn interrupted(&mut self) -> Option<Notice> {
        (!std::mem::replace(&mut self.is_told, true)).then_some(Notice::Gap)
    }

    async fn refused(&mut self, refusal: ConnectionError) -> Option<Notice> {
        if !std::mem::replace(&mut self.is_refused, true) {
            return Some(Notice::Refused(refusal));
        }
        self.wait().await;
        None
    }

    async fn wait(&mut self) {
        let pause = self.pauses.pause();
        self.shared.executor.sleep(pause).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pauses_grow_until_a_proof_has_lasted() {
        let mut pauses = Pauses::default();
        let mut after = |time| {
            pauses.lasted(time);
            pauses.pause()
        };
        let grown: Vec<Duration> = (0..9).map(|_| after(LONGEST_PAUSE - FIRST_PAUSE)).collect();
        assert_eq!((grown[0], grown[1], grown[8]), (FIRST_PAUSE, FIRST_PAUSE * 2, LONGEST_PAUSE), "{grown:?}");
        assert_eq!(after(LONGEST_PAUSE), FIRST_PAUSE);
        assert_eq!(after(Duration::ZERO), FIRST_PAUSE * 2);
    }
}
