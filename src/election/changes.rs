//! The changes of an election, as they happen.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

use futures::stream::{self, BoxStream, Stream};

use super::state::Leader;
use crate::error::{ErrorKind, Result};
use crate::handle::Primitive;
use crate::latch::wait::wait;
use crate::protocol::election::change::StoredChange;
use crate::protocol::election::{ElectionSeen, What};
use crate::protocol::kind::Kind;
use crate::protocol::token::Token;

/// What has changed in an election.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum ElectionChange {
    /// A term has begun. The first change that is reported tells of the present term.
    Elected(Leader),
    /// The leader has published a value.
    Published(Leader),
    /// The term has ended: the leader resigned, or its lease ended.
    Ended {
        /// The fencing token of the term.
        term: Token,
    },
    /// Some changes before the next one were not seen: more than 64 since the last one, or the server has lost them.
    Missed,
}

/// The changes of an election, returned by [`Election::changes`](crate::Election::changes): first the present leader,
/// if there is one, then each change. It is an endless [`Stream`]; use `futures::StreamExt::next` to read it.
///
/// The server sends a message for each change, and is asked for the changes then. A change whose message was lost, and
/// a term that ends without a word, are reported at most a third of the client's lease later, if the server can be
/// reached. No change is reported twice.
///
/// After an error, the stream continues where it was. It ends after [`Closed`](ErrorKind::Closed).
///
/// # Cancel safety
/// The future of the next change may be dropped and asked for again. No change is missed. Dropping the stream removes
/// what it left in Redis in the background.
#[must_use = "a stream does nothing unless polled"]
pub struct ElectionChanges(BoxStream<'static, Result<ElectionChange>>);

impl ElectionChanges {
    pub(super) fn of(primitive: &Primitive) -> Self {
        let watcher = Watcher { primitive: primitive.clone(), known: None, leads: None, read: VecDeque::new() };
        Self(Box::pin(stream::unfold(Some(watcher), |watcher| async {
            let mut watcher = watcher?;
            match watcher.next().await {
                Err(error) if error.kind() == ErrorKind::Closed => Some((Err(error), None)),
                next => Some((next, Some(watcher))),
            }
        })))
    }
}

impl Stream for ElectionChanges {
    type Item = Result<ElectionChange>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut TaskContext<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(context)
    }
}

impl fmt::Debug for ElectionChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ElectionChanges").finish_non_exhaustive()
    }
}

struct Watcher {
    primitive: Primitive,
    /// The revision of the last change that was read; 0 if there was none. `None`: nothing was read.
    known: Option<u64>,
    /// The term that was reported last, unless its end was as well.
    leads: Option<Token>,
    /// Read and not yet reported.
    read: VecDeque<ElectionChange>,
}

impl Watcher {
    async fn next(&mut self) -> Result<ElectionChange> {
        const OPERATION: &str = "changes";
        loop {
            if let Some(change) = self.read.pop_front() {
                return Ok(change);
            }
            if let Some(known) = self.known {
                let name = self.primitive.name().unwrap_or_default();
                let watch = Primitive::new(&self.primitive.source, Kind::Watch { known }, name);
                wait(watch.context(), OPERATION, watch.keys(OPERATION)?, None).await?;
            }
            let known = self.known;
            let seen = self.primitive.ask(OPERATION, |scripts, keys| scripts.look_at_election(keys, known)).await?;
            self.primitive.context().observe(seen.lock.now);
            self.read(seen);
        }
    }

    fn read(&mut self, seen: ElectionSeen) {
        let last = seen.changes.last().map(|change| change.revision);
        match self.known {
            // Only a leader whose hold has not ended is reported.
            None => {
                let term = seen.lock.holder.map(|(_, term, _)| term);
                let present = seen.changes.into_iter().filter(|change| Some(change.term) == term);
                present.for_each(|change| self.report(change, true));
            }
            Some(known) => {
                // The first change of all is the beginning of a term.
                let is_next = |first: &StoredChange| !seen.missed || known == 0 && first.what == What::Led;
                if !seen.changes.first().is_none_or(is_next) {
                    self.read.push_back(ElectionChange::Missed);
                }
                seen.changes.into_iter().for_each(|change| self.report(change, false));
            }
        }
        self.known = Some(last.or(self.known).unwrap_or_default());
    }

    fn report(&mut self, change: StoredChange, is_first: bool) {
        let term = change.term;
        match change.what {
            What::Ended if self.leads == Some(term) => {
                self.leads = None;
                self.read.push_back(ElectionChange::Ended { term });
            }
            // The end of a term that was not reported.
            What::Ended => {}
            What::Said if !is_first && self.leads == Some(term) => {
                self.read.push_back(ElectionChange::Published(Leader::told_by(change)));
            }
            What::Led | What::Said => {
                self.leads = Some(term);
                self.read.push_back(ElectionChange::Elected(Leader::told_by(change)));
            }
        }
    }
}
