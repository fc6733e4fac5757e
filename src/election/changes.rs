//! The changes of an election, as they happen.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use futures::stream::{BoxStream, Stream};

use super::state::Leader;
use crate::acquire::ticket_only::TicketWait;
use crate::changes::{Watcher, failed, stream_of};
use crate::error::{Error, Result};
use crate::handle::Primitive;
use crate::protocol::election::change::StoredChange;
use crate::protocol::election::{ElectionSeen, What};
use crate::protocol::kind::Kind;
use crate::protocol::token::Token;
use crate::runtime::Executor;

const GONE: &str = "the server knows nothing of the watcher any more";

/// What has changed in an election.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum ElectionChange {
    /// A term has begun. The first change, and one after [`Missed`](Self::Missed), tells of the present term, with the
    /// value that was published last.
    Elected(Leader),
    /// The leader has published a value.
    Published(Leader),
    /// The term has ended: the leader resigned, or its lease ended.
    Ended {
        /// The fencing token of the term.
        term: Token,
    },
    /// Changes were not seen: more than 64 since the last one, or the server has lost some. The changes that follow
    /// tell of the present term.
    Missed,
}

/// The changes of an election, returned by [`Election::changes`](crate::Election::changes): first the present leader,
/// if there is one, then each change. It is an endless [`Stream`]; use `futures::StreamExt::next` to read it. It keeps
/// the client alive.
///
/// The server sends a message for each change, and is asked for the changes then. A change is reported at most a third
/// of the client's lease later, if the server can be reached, when its message was lost, when more than 1,000 streams
/// wait, or when a term ends because its leader is gone. No change is reported twice.
///
/// # Errors
/// Those of a server that does not answer or refuses. After an error that may [pass](crate::Error::is_retryable), the
/// stream goes on where it was, after a pause of 1 s. It ends after any other error, such as
/// [`Closed`](crate::ErrorKind::Closed), [`InvalidInput`](crate::ErrorKind::InvalidInput), and
/// [`Unsupported`](crate::ErrorKind::Unsupported) over a [`RedLock`](crate::RedLock::election).
///
/// # Cancel safety
/// The future of the next change may be dropped and asked for again. No change is missed. Dropping the stream removes
/// what it left in Redis in the background.
#[must_use = "a stream does nothing unless polled"]
pub struct ElectionChanges(BoxStream<'static, Result<ElectionChange>>);

impl ElectionChanges {
    pub(super) fn of(primitive: &Primitive) -> Self {
        let (known, leads, read) = (None, None, VecDeque::new());
        Self(stream_of(ElectionWatcher { primitive: primitive.clone(), known, leads, read }))
    }

    pub(super) fn failed(error: Error) -> Self {
        Self(failed(error))
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

struct ElectionWatcher {
    primitive: Primitive,
    /// The revision of the last change that was read; 0 if there was none. `None`: nothing was read.
    known: Option<u64>,
    /// The term that was reported last, unless its end was as well.
    leads: Option<Token>,
    /// Read and not yet reported.
    read: VecDeque<ElectionChange>,
}

impl Watcher for ElectionWatcher {
    type Change = ElectionChange;

    fn executor(&self) -> &Arc<dyn Executor> {
        &self.primitive.context().executor
    }

    async fn next(&mut self) -> Result<ElectionChange> {
        const OPERATION: &str = "changes";
        loop {
            if let Some(change) = self.read.pop_front() {
                return Ok(change);
            }
            if let Some(known) = self.known {
                let kind = Kind::Watch { known, leads: self.leads };
                let name = self.primitive.name().unwrap_or_default();
                let watch = Primitive::new(&self.primitive.source, kind, name);
                let (context, keys) = (watch.context(), watch.keys(OPERATION)?);
                let wait = TicketWait { context, operation: OPERATION, keys, timeout: None, gone: GONE };
                wait.observed(|_| Ok(())).await?;
            }
            let known = self.known;
            let seen = self.primitive.ask(OPERATION, |scripts, keys| scripts.look_at_election(keys, known)).await?;
            self.primitive.context().observe(seen.now);
            self.read(seen);
        }
    }
}

impl ElectionWatcher {
    fn read(&mut self, seen: ElectionSeen) {
        let last = seen.changes.last().map(|change| change.revision);
        match self.known {
            // The beginning of a term may be lost in a failover, and its hold not. Its end is in no list then.
            Some(1..) if !seen.missed && last.is_none() => self.end_but(seen.holder.map(|(_, term)| term)),
            Some(_) if !seen.missed && last.is_some() => {
                seen.changes.into_iter().for_each(|change| self.report(change));
                self.known = last;
            }
            before => {
                if before.is_some() && seen.missed {
                    self.read.push_back(ElectionChange::Missed);
                }
                // Without a list, only the hold tells that a term has ended.
                self.begin(seen);
                // Also downwards: the revision before may never come back.
                self.known = Some(last.unwrap_or_default());
            }
        }
    }

    /// Reports the end of the term that was reported last, unless it is the present one.
    fn end_but(&mut self, present: Option<Token>) {
        if let Some(ended) = self.leads.take_if(|leads| Some(*leads) != present) {
            self.read.push_back(ElectionChange::Ended { term: ended });
        }
    }

    /// Reports the present state.
    fn begin(&mut self, ElectionSeen { holder, changes, .. }: ElectionSeen) {
        let term = holder.map(|(_, term)| term);
        self.end_but(term);
        // Only a leader whose hold has not ended is reported.
        if let Some(present) = changes.into_iter().next_back().filter(|change| Some(change.term) == term) {
            self.leads = term;
            self.read.push_back(ElectionChange::Elected(Leader::told_by(present)));
        }
    }

    fn report(&mut self, change: StoredChange) {
        let term = change.term;
        let is_present = self.leads == Some(term);
        match change.what {
            What::Ended if is_present => {
                self.leads = None;
                self.read.push_back(ElectionChange::Ended { term });
            }
            What::Said if is_present => self.read.push_back(ElectionChange::Published(Leader::told_by(change))),
            // The end of a term that was not reported, or the beginning of one that was.
            What::Ended => {}
            What::Led if is_present => {}
            What::Led | What::Said => {
                self.end_but(Some(term));
                self.leads = Some(term);
                self.read.push_back(ElectionChange::Elected(Leader::told_by(change)));
            }
        }
    }
}
