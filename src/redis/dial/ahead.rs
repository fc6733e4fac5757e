//! A stream that is dialled before there is a use for it.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use event_listener::Event;

use super::super::url::target::Target;
use super::Stream;
use crate::mutex::lock;
use crate::until::until;

/// A stream on which nothing has been sent yet.
pub(in crate::redis) struct Open {
    pub(in crate::redis) target: Arc<Target>,
    pub(in crate::redis) stream: Stream,
    pub(in crate::redis) since: Instant,
}

/// At most one stream, for the first who takes it.
#[derive(Default)]
pub(in crate::redis) struct Ahead {
    state: Mutex<State>,
    changed: Event,
}

#[derive(Default)]
struct State {
    /// The number of the latest dial. What an earlier dial reports is ignored.
    dial: u64,
    stage: Stage,
}

#[derive(Default)]
enum Stage {
    #[default]
    Nothing,
    Dialling,
    Open(Open),
}

impl Ahead {
    /// A dial begins, in place of the one before. From now on, those who take the stream wait. Returns its number.
    pub(in crate::redis) fn begin(&self) -> u64 {
        let before = {
            let mut state = lock(&self.state);
            let dial = state.dial + 1;
            std::mem::replace(&mut *state, State { dial, stage: Stage::Dialling })
        };
        self.changed.notify(usize::MAX);
        before.dial + 1
    }

    /// Ends the wait for the dial. `None`: the stream could not be opened, or is not wanted any more.
    pub(in crate::redis) fn end(&self, dial: u64, open: Option<Open>) {
        // Dropped after the mutex is unlocked.
        let _before = {
            let mut state = lock(&self.state);
            if state.dial != dial {
                return;
            }
            std::mem::replace(&mut state.stage, open.map_or(Stage::Nothing, Stage::Open))
        };
        self.changed.notify(usize::MAX);
    }

    /// The stream, once it is open. `None`: none is dialled, another one has it, or it could not be opened.
    pub(in crate::redis) async fn take(&self) -> Option<Open> {
        let taken = || {
            let stage = &mut lock(&self.state).stage;
            match std::mem::take(stage) {
                Stage::Nothing => Some(None),
                Stage::Open(open) => Some(Some(open)),
                Stage::Dialling => {
                    *stage = Stage::Dialling;
                    None
                }
            }
        };
        let taken = until(&self.changed, taken).await;
        self.changed.notify(usize::MAX);
        taken
    }

    /// Resolves when the stream of this dial is taken or another dial has begun.
    pub(in crate::redis) async fn gone(&self, dial: u64) {
        let is_gone = || {
            let state = lock(&self.state);
            state.dial != dial || !matches!(state.stage, Stage::Open(_))
        };
        until(&self.changed, || is_gone().then_some(())).await;
    }
}

#[cfg(test)]
mod tests {
    use ::tokio::io::{AsyncReadExt, duplex};
    use futures::FutureExt;

    use super::*;
    use crate::runtime::an_instant;

    /// Another dial begins if the sentinels name another master while the first dial is under way.
    #[test]
    fn only_the_latest_dial_counts() {
        let ahead = Ahead::default();
        let open = |port: u16| {
            let (stream, far) = duplex(1);
            let target = Arc::new(Target::parse(&format!("redis://h:{port}")).unwrap());
            (Open { target, stream: Box::new(stream), since: an_instant() }, far)
        };
        let ((first, mut far_first), (second, mut far_second), (late, mut far_late)) = (open(1), open(2), open(3));
        let is_closed = |far: &mut ::tokio::io::DuplexStream| far.read(&mut [0]).now_or_never().is_some();
        let one = ahead.begin();
        ahead.end(one, Some(first));
        assert!(ahead.gone(one).now_or_never().is_none());
        let two = ahead.begin();
        assert!(ahead.gone(one).now_or_never().is_some() && is_closed(&mut far_first));
        assert!(ahead.take().now_or_never().is_none(), "it waits for the second");
        ahead.end(one, Some(late));
        assert!(ahead.take().now_or_never().is_none() && is_closed(&mut far_late));
        ahead.end(two, Some(second));
        ahead.end(one, None);
        assert!(ahead.gone(one).now_or_never().is_some());
        assert!(ahead.gone(two).now_or_never().is_none() && !is_closed(&mut far_second));
        let taken = ahead.take().now_or_never().expect("it is open").expect("it is there");
        assert!(taken.target.to_string().starts_with("h:2"), "{}", taken.target);
        assert!(
            ahead.gone(two).now_or_never().is_some() && ahead.take().now_or_never().is_some_and(|open| open.is_none())
        );
    }
}
