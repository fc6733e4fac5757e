//! Holds that end together.

use std::iter;
use std::ops::Deref;
use std::sync::Arc;

use crate::error::Result;
use crate::hold::guard::{Share, release_all};
use crate::hold::owner::HoldOwner;

/// Holds in the order of their acquisition. They end in the reverse order, so that a waiter that needs them all finds
/// the later ones free when it gets the first.
#[derive(Debug, Default)]
pub(super) struct Holds(Vec<Share>);

impl Holds {
    pub(super) fn push(&mut self, owned: Arc<HoldOwner>) {
        self.0.push(Share::new(owned));
    }

    /// See [`Share::beside`].
    pub(super) fn beside(&self) -> Self {
        Self(self.0.iter().map(Share::beside).collect())
    }

    /// Leaves all of them in Redis. None, if that is impossible for one of them by now.
    pub(super) fn keep(mut self) -> Result<()> {
        self.0.iter().try_for_each(|owned| owned.can_be_kept())?;
        std::mem::take(&mut self.0).into_iter().map(Share::keep).fold(Ok(()), Result::and)
    }

    /// See [`release_all`].
    pub(super) async fn release(mut self) -> Result<()> {
        release_all(iter::from_fn(|| self.0.pop())).await
    }
}

impl Deref for Holds {
    type Target = [Share];

    fn deref(&self) -> &[Share] {
        &self.0
    }
}

impl Drop for Holds {
    fn drop(&mut self) {
        while self.0.pop().is_some() {}
    }
}
