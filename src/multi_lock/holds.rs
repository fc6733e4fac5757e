//! Holds that end together.

use std::iter;
use std::ops::Deref;
use std::sync::Arc;

use futures::future::join_all;

use crate::error::Result;
use crate::hold::guard::{Share, release};
use crate::hold::owner::HoldOwner;
use crate::hold::run::covered;

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
        std::mem::take(&mut self.0).into_iter().map(|share| share.into_owned().keep()).fold(Ok(()), Result::and)
    }

    /// Releases all of them at the same time and waits for the answers. An error that says that a hold did not last
    /// until its release is returned before any other.
    pub(super) async fn release(mut self) -> Result<()> {
        let released = join_all(iter::from_fn(|| self.0.pop()).map(|share| release(share.into_owned()))).await;
        let errors = released.into_iter().filter_map(Result::err);
        errors.min_by_key(|error| covered(Err(error.clone())).is_ok()).map_or(Ok(()), Err)
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
