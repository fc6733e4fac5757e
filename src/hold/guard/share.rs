//! The share that one guard has in a hold.

use std::ops::Deref;
use std::sync::Arc;

use crate::hold::owner::HoldOwner;

/// What a guard has of a hold. The last share ends the hold.
#[derive(Debug)]
pub(crate) struct Share {
    owned: Arc<HoldOwner>,
    /// Counts as one guard of the hold while it lives. `None`: no guard of the caller's, or the only one there can be.
    #[expect(dead_code, reason = "its life is what counts")]
    counted: Option<Arc<()>>,
}

impl Share {
    pub(crate) fn new(owned: Arc<HoldOwner>) -> Self {
        let counted = owned.guards.clone();
        Self { owned, counted }
    }

    /// Another share of the same hold, which does not count as a guard: the library keeps it beside the caller's.
    pub(crate) fn beside(&self) -> Self {
        Self { owned: self.owned.clone(), counted: None }
    }

    pub(crate) fn into_owned(self) -> Arc<HoldOwner> {
        self.owned
    }
}

impl Deref for Share {
    type Target = Arc<HoldOwner>;

    fn deref(&self) -> &Arc<HoldOwner> {
        &self.owned
    }
}
