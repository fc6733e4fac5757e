//! Elections.

use std::future::IntoFuture;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use super::changes::Changes;
use super::guard::Guard;
use super::marker::AnyThread;
use super::thread::block;
use crate::{Campaign, ElectionChanges, Executor, Leader, Result, Term};

/// An election for blocking code. Guarantees are those of [`bowline::Election`](crate::Election).
///
/// It has no `lead`: blocking work cannot be stopped when the leadership is lost. Work should check
/// [`Term::is_valid`] before each step and after each pause.
#[derive(Clone, Debug)]
pub struct Election {
    inner: crate::Election,
    executor: Arc<dyn Executor>,
}

impl Election {
    pub(super) fn new(inner: crate::Election, executor: Arc<dyn Executor>) -> Self {
        Self { inner, executor }
    }

    /// Says who this candidate is: see [`bowline::Election::label`](crate::Election::label).
    pub fn label(self, label: impl Into<Arc<str>>) -> Self {
        Self { inner: self.inner.label(label), ..self }
    }

    /// Waits until this candidate leads: see [`bowline::Election::campaign`](crate::Election::campaign). Call
    /// [`block`](Campaign::block) on the result.
    pub fn campaign(&self) -> Campaign {
        self.inner.campaign()
    }

    /// Leads if nobody leads and nobody campaigns: see
    /// [`bowline::Election::try_campaign`](crate::Election::try_campaign).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn try_campaign(&self) -> Result<Option<Leadership>> {
        let led = block(&self.executor, "try_campaign", Box::pin(self.inner.try_campaign()))?;
        Ok(led.map(|led| Leadership::new(led, &self.executor)))
    }

    /// Reads who leads: see [`bowline::Election::leader`](crate::Election::leader).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn leader(&self) -> Result<Option<Leader>> {
        block(&self.executor, "leader", Box::pin(self.inner.leader()))
    }

    /// Reports who leads, and then every change: see [`bowline::Election::changes`](crate::Election::changes).
    pub fn changes(&self) -> Changes<ElectionChanges> {
        Changes::new(self.inner.changes(), &self.executor)
    }
}

impl Campaign {
    /// Blocks the thread until this candidate leads or the campaign fails.
    ///
    /// # Errors
    /// Those of [`Campaign`], and [those of blocking](crate::blocking).
    pub fn block(self) -> Result<Leadership> {
        let executor = self.executor()?;
        let led = block(&executor, "campaign", self.into_future())?;
        Ok(Leadership::new(led, &executor))
    }
}

/// The leadership of an election, for blocking code. It dereferences to its [`Term`], and may move to any thread.
///
/// The drop releases and waits for the server, for at most 1 s, as that of a [`Guard`] does.
#[derive(Debug)]
#[must_use = "the candidate leads no more when this is dropped"]
pub struct Leadership {
    guard: Guard<crate::LockGuard, AnyThread>,
    term: Term,
    executor: Arc<dyn Executor>,
}

impl Leadership {
    fn new(inner: crate::Leadership, executor: &Arc<dyn Executor>) -> Self {
        let (guard, term) = inner.into_parts();
        Self { guard: Guard::new(guard, executor), term, executor: executor.clone() }
    }

    /// The term, for threads that work in it.
    pub fn term(&self) -> &Term {
        &self.term
    }

    /// The rest of the lease by this client's own count, zero if it is over.
    pub fn remaining(&self) -> Duration {
        self.guard.remaining()
    }

    /// Publishes a value: see [`bowline::Term::publish`](crate::Term::publish).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn publish(&self, value: &str) -> Result<()> {
        block(&self.executor, "publish", Box::pin(self.term.publish(value)))
    }

    /// Ends the term: see [`bowline::Leadership::resign`](crate::Leadership::resign).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn resign(self) -> Result<()> {
        let (guard, executor) = self.guard.into_async();
        block(&executor, "resign", Box::pin(crate::Leadership::of_parts(guard, self.term).resign()))
    }
}

impl Deref for Leadership {
    type Target = Term;

    fn deref(&self) -> &Term {
        &self.term
    }
}
