//! The names that are in use, and deadlocks.

use std::fmt;
use std::future::IntoFuture;
use std::sync::Arc;

use super::thread::block;
use crate::{Deadlock, Deadlocks, Executor, NameInUse, PrimitiveKind, Result};

/// The names that are in use, page by page, for blocking code: see [`bowline::Names`](crate::Names).
#[must_use = "nothing is asked before a page is read"]
pub struct Names {
    inner: crate::Names,
    executor: Arc<dyn Executor>,
}

impl Names {
    pub(super) fn new(inner: crate::Names, executor: Arc<dyn Executor>) -> Self {
        Self { inner, executor }
    }

    /// Lists only names that begin with this text.
    pub fn starting_with(self, begins: &str) -> Self {
        Self { inner: self.inner.starting_with(begins), ..self }
    }

    /// Lists only names of this kind.
    pub fn of_kind(self, kind: PrimitiveKind) -> Self {
        Self { inner: self.inner.of_kind(kind), ..self }
    }

    /// Reads the next page: see [`bowline::Names::next_page`](crate::Names::next_page).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn next_page(&mut self) -> Result<Option<Vec<NameInUse>>> {
        block(&self.executor, "names", Box::pin(self.inner.next_page()))
    }

    /// Reads all pages that are left: see [`bowline::Names::all`](crate::Names::all).
    ///
    /// # Errors
    /// Those of the async method and [those of blocking](crate::blocking).
    pub fn all(self) -> Result<Vec<NameInUse>> {
        block(&self.executor, "names", Box::pin(self.inner.all()))
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl Deadlocks {
    /// Blocks the thread until the search is over.
    ///
    /// # Errors
    /// Those of [`Deadlocks`], and [those of blocking](crate::blocking).
    pub fn block(self) -> Result<Vec<Deadlock>> {
        let executor = self.executor().clone();
        block(&executor, "deadlocks", self.into_future())
    }
}
