//! Who gets a name and who loses it, as it happens.
//!
//! Scripts send no message for this. The server itself reports that a key has changed, to those connections that watch
//! it, and the name is looked at then. So nothing is sent for a name that nobody watches.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::{Duration, Instant};

use futures::future::select;
use futures::stream::{BoxStream, Stream};

use super::NameInUse;
use super::look::{HoldState, key_of_holds, look_at};
use crate::changes::{Watcher, failed, stream_of};
use crate::driver::channels::{Heard, Listener};
use crate::error::{Error, ErrorKind, Result};
use crate::handle::Primitive;
use crate::hold::owner::HoldSource;
use crate::inspect::{Access, Labels, clients_of};
use crate::mutant::{self, Mutant};
use crate::protocol::attempt_id::attempt_of;
use crate::protocol::key::Keys;
use crate::protocol::limits::MOST_INSPECTED;
use crate::protocol::names::PrimitiveKind;
use crate::protocol::seen::{Seen, SeenHold};
use crate::protocol::token::Token;
use crate::runtime::Executor;
use crate::tuning::LOOK_AGAIN;

const OPERATION: &str = "changes";

/// The server counts in whole milliseconds, and the key may be there for a moment longer.
const SLACK: Duration = Duration::from_millis(2);

/// What has changed in who holds a name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum HoldChange {
    /// A hold was granted. The first changes of a stream are those who hold already.
    Granted(HoldState),
    /// A hold has ended before its lease: its holder or an operator has released it, or has changed it into another
    /// one; or the server has lost it. A run has ended. The rest of the lease is the one that was seen last.
    Released(HoldState),
    /// A hold has ended, and the lease that was seen last had ended by then: its holder is gone, was too slow to renew
    /// it, or has [kept](crate::LockGuard::keep) it. Also a hold that was renewed and released while nobody polled the
    /// stream, or while the server could not be reached. The rest of the lease is the one that was seen last.
    Lost(HoldState),
}

/// The changes of who holds a name, returned by [`Client::changes`](crate::Client::changes): first those who hold it,
/// then the grants, releases and losses that looks at the name show. It is an endless [`Stream`]; use
/// `futures::StreamExt::next` to read it. It keeps the client alive.
///
/// # Guarantees
/// - A hold that lasts is reported soon, if the stream is polled: the server says when the name has changed, and the
///   name is looked at then, at most once in 10 ms. If that is lost, or the server cannot be asked to say it for now,
///   the hold is reported within a third of the client's [lease](crate::ConfigBuilder::lease), if the name can be read.
/// - Each hold that was granted is released or lost before the next hold that excludes it is reported. Changes are in
///   an order in which they may have happened.
/// - Nothing is sent for a name that nobody watches.
///
/// # Not guaranteed
/// - A hold that has come and gone between two looks is not reported. The tokens of a [`Lock`](crate::Lock) show that
///   there were others, or that a hand-off budget was not used up.
/// - What happens inside of a client is not seen: re-entry, and a hand-over to a task of the same client. A budget of
///   hand-offs that follows another one is a release and a grant, and so are permits of which some were given back.
/// - A release in the last moment of a lease may be reported as a loss, and so may one that was not seen in time.
/// - What the server has lost, as by `FLUSHALL` or a failover that lost the last writes, is reported as released, and
///   may be reported as granted again if it comes back. The holder may still believe that it holds.
///
/// # Costs
/// One connection for each name that a client watches, shared by its streams, and kept for 1 s after the last one. Each
/// change of the name, renewals included, takes one short command of the client and one of each stream, at most 100 a
/// second; a grant takes one more, for the labels.
///
/// # Errors
/// - [`InvalidInput`](ErrorKind::InvalidInput) for an invalid name, and for the name of something that nobody can hold,
///   such as a latch.
/// - [`Unsupported`](ErrorKind::Unsupported) for a `RedLock`, whose holder no single server knows; for a connection of
///   the application (`redis_1` and `bowline-fred`) and for a server that cannot watch keys; and when 1,000 or more
///   hold the name.
/// - [`Denied`](ErrorKind::Denied): the user may not run `CLIENT TRACKING`, or not read the key.
/// - [`WrongType`](ErrorKind::WrongType): another program has written the key.
/// - Those of a server that does not answer or refuses, and [`Closed`](ErrorKind::Closed).
///
/// Those who hold already may be reported before an error about the watch. After an error that may
/// [pass](crate::Error::is_retryable), the stream goes on where it was, after a pause of 1 s. It ends after any other
/// error.
///
/// # Cancel safety
/// The future of the next change may be dropped and asked for again: no change is lost. Nothing is written to Redis.
#[must_use = "a stream does nothing unless polled"]
pub struct HoldChanges(BoxStream<'static, Result<HoldChange>>);

impl HoldChanges {
    pub(crate) fn of(source: &Arc<HoldSource>, name: NameInUse) -> Self {
        match key_of_holds(&source.context, OPERATION, &name) {
            Ok(keys) => Self(stream_of(HoldWatcher::new(source, name, keys))),
            Err(error) => Self(failed(error)),
        }
    }

    /// The changes of the name of a handle.
    pub(crate) fn of_handle(primitive: &Primitive, kind: PrimitiveKind) -> Self {
        match primitive.keys(OPERATION) {
            Ok(keys) => Self::of(&primitive.source, NameInUse::new(kind, &*keys.name)),
            Err(error) => Self(failed(error)),
        }
    }
}

impl Stream for HoldChanges {
    type Item = Result<HoldChange>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut TaskContext<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(context)
    }
}

impl fmt::Debug for HoldChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HoldChanges").finish_non_exhaustive()
    }
}

struct HoldWatcher {
    source: Arc<HoldSource>,
    name: NameInUse,
    keys: Keys,
    listener: Option<Listener>,
    /// What was seen last.
    last: Option<Look>,
    /// Those who held the name then, by their attempts.
    holds: BTreeMap<String, Held>,
    /// Found out and not yet reported.
    read: VecDeque<HoldChange>,
}

/// A look at the name.
struct Look {
    /// What the listener had heard before.
    heard: Heard,
    at: Instant,
}

struct Held {
    state: HoldState,
    /// The lease does not end earlier. `None`: it has no end.
    ends: Option<Instant>,
    /// Work that has ended, and keeps its period from others for a while.
    is_over: bool,
}

impl Held {
    /// Whether the hold of this attempt is the one that was seen before.
    fn is(&self, hold: &SeenHold) -> bool {
        let HoldState { token, access, .. } = self.state;
        token.unwrap_or(Token::NONE) == hold.token && access == Access::of(hold.claim)
    }
}

impl Watcher for HoldWatcher {
    type Change = HoldChange;

    fn executor(&self) -> &Arc<dyn Executor> {
        &self.source.context.executor
    }

    async fn next(&mut self) -> Result<HoldChange> {
        loop {
            if let Some(change) = self.read.pop_front() {
                return Ok(change);
            }
            self.changed().await;
            self.look().await?;
        }
    }
}

impl HoldWatcher {
    fn new(source: &Arc<HoldSource>, name: NameInUse, keys: Keys) -> Self {
        let (listener, last, holds, read) = (None, None, BTreeMap::new(), VecDeque::new());
        Self { source: source.clone(), name, keys, listener, last, holds, read }
    }

    /// Waits until something may have changed since the last look.
    async fn changed(&self) {
        let (Some(listener), Some(Look { heard, at })) = (&self.listener, &self.last) else { return };
        let (executor, config) = (&self.source.context.executor, &self.source.context.config);
        let ends = self.holds.values().filter_map(|held| held.ends).map(|ends| ends + SLACK);
        let ends = ends.filter(|_| !mutant::on(Mutant::LeaseEndNotLookedAt));
        let due = ends.fold(*at + config.lease / 3, Instant::min);
        let left = |due: Instant| due.saturating_duration_since(executor.now());
        select(pin!(listener.news_after(heard)), executor.sleep(left(due))).await;
        executor.sleep(left(*at + LOOK_AGAIN)).await;
    }

    async fn look(&mut self) -> Result<()> {
        let context = &self.source.context;
        let listener = self.listener.get_or_insert_with(|| context.watches.listen(self.keys.main()));
        let heard = listener.look();
        if context.engine.is_closed() {
            return Err(context.closed(OPERATION, &self.keys));
        }
        heard.check(OPERATION, &self.keys.name).map_err(|error| match heard.lacks_a_right() {
            true => error.with_reason("changes need +client|tracking and the key; docs/acl.md lists all rights"),
            false => error,
        })?;
        let began = context.executor.now();
        let mut looks = look_at(context, OPERATION, std::slice::from_ref(&self.name), 0).await;
        let Seen { holds, .. } = looks.pop().unwrap_or_else(|| Ok(Seen::default()))?;
        if holds.len() >= MOST_INSPECTED {
            let reason = format!("{MOST_INSPECTED} or more hold the name");
            return Err(Error::because(ErrorKind::Unsupported, OPERATION, reason).with_name(&self.keys.name));
        }
        let answered = context.executor.now();
        let heard = if mutant::on(Mutant::ReportDuringLookIgnored) { listener.look() } else { heard };
        let is_new = |hold: &&SeenHold| self.holds.get(attempt_of(&hold.id)).is_none_or(|held| !held.is(hold));
        let new = holds.iter().filter(is_new);
        let labels = Labels::read(context, clients_of(new.map(|hold| &*hold.id), &[])).await;
        self.compare(holds, &labels, (began, answered));
        self.last = Some(Look { heard, at: began });
        Ok(())
    }

    /// Reports what differs from the last look.
    fn compare(&mut self, holds: Vec<SeenHold>, labels: &Labels, (began, answered): (Instant, Instant)) {
        let mut before = std::mem::take(&mut self.holds);
        let (mut ended, mut granted) = (Vec::new(), Vec::new());
        for hold in holds {
            let (attempt, ends) = (attempt_of(&hold.id).to_owned(), hold.left.map(|left| began + left));
            let is_over = attempt != hold.id;
            let held = before.remove(&attempt);
            let (same, other) = match held {
                Some(held) if held.is(&hold) => (Some(held), None),
                other => (None, other),
            };
            ended.extend(other);
            let mut state = HoldState::of(hold, labels);
            match same {
                Some(held) => state.label = held.state.label,
                None => granted.push(HoldChange::Granted(state.clone())),
            }
            self.holds.insert(attempt, Held { state, ends, is_over });
        }
        ended.extend(before.into_values());
        let told = |Held { state, ends, is_over }| match is_over || ends.is_none_or(|ends| answered < ends) {
            true => HoldChange::Released(state),
            false => HoldChange::Lost(state),
        };
        self.read.extend(ended.into_iter().map(told).chain(granted));
    }
}
