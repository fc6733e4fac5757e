//! The local line: non-fair acquisitions of one client for one name, behind one ticket or hold.
//!
//! Whoever is first leads: it acquires from Redis for itself. When it is done, the next one gets what it had, without
//! a command, for a bounded time and number; then the lock goes back to Redis, and the next one queues up there.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::acquire::Request;
use crate::context::Context;
use crate::error::{Error, ErrorKind, Result};
use crate::key::Keys;
use crate::lease::Hold;
use crate::ledger::{Begun, Closed, NoPlace, Span, Turn};

/// A place in a line, for as long as its owner waits, leads or holds. Dropped, the next one's turn comes.
#[derive(Debug)]
pub(crate) struct Place {
    context: Arc<Context>,
    keys: Arc<Keys>,
    number: u64,
    since: Instant,
    /// Of the hold, once there is one.
    span: Option<Span>,
}

/// What a place has come to when its turn comes.
pub(crate) enum First {
    Holds(Arc<Hold>),
    /// It acquires, or goes on with what has been begun.
    Leads(Option<Begun>),
}

impl Place {
    pub(crate) fn join(context: &Arc<Context>, request: &Request) -> Result<Self> {
        let joined = context.ledger.join(&request.keys, request.max_waiters);
        let number = joined.map_err(|no| match no {
            NoPlace::Closed => request.error(ErrorKind::Closed),
            NoPlace::Full => request.error(ErrorKind::QueueFull),
        })?;
        Ok(Self { context: context.clone(), keys: request.keys.clone(), number, since: context.now(), span: None })
    }

    /// Waits for its turn.
    pub(crate) async fn first(&mut self, request: &Request) -> Result<First> {
        let Self { context, keys, number, .. } = &*self;
        let turn = poll_fn(|task| context.ledger.poll_turn(keys, *number, context.now(), task)).await;
        Ok(match turn.map_err(|Closed| request.error(ErrorKind::Closed))? {
            Turn::Failed(error) if context.now() >= self.since + context.config.patience => {
                self.fail(&error);
                return Err(error);
            }
            Turn::Lead | Turn::Failed(_) => First::Leads(None),
            Turn::Attempt(begun) => First::Leads(Some(begun)),
            Turn::Held { hold, span } => {
                self.span = Some(span);
                First::Holds(hold)
            }
        })
    }

    /// A wire id for what its owner asks of Redis. Dropped undecided, the next in the line goes on with it.
    pub(crate) fn open(&self, lease: Duration) -> Result<Begun, Closed> {
        self.context.ledger.open_in_line(&self.keys, self.number, lease, self.context.now())
    }

    /// The server gave no usable answer for as long as the client's patience. Those behind who have waited for as long
    /// fail too, instead of one after the other.
    pub(crate) fn fail(&self, error: &Error) {
        if error.kind().is_retryable() {
            self.context.ledger.fail(&self.keys, self.number, error, self.context.now());
        }
    }

    /// Its owner has been granted the hold.
    pub(crate) fn holds(&mut self, hold: &Hold) {
        self.span = Some(Span::of(hold, self.context.now() + self.context.config.line_time));
    }

    /// Its owner is done with the hold. `true`: the next one has it. `false`: it is to be released.
    pub(crate) fn pass(self, hold: &Arc<Hold>) -> bool {
        self.span.is_some_and(|span| self.context.ledger.pass(self.number, hold, span, self.context.now()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.context.ledger.leave(&self.keys, self.number, self.context.now());
    }
}
