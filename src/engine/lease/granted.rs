//! What a hold knows of its grant, besides the lease.

use std::sync::atomic::Ordering;

use super::Hold;

impl Hold {
    /// Sets how many replicas must acknowledge the grant and each renewal before they count.
    pub(crate) fn acknowledged_by(self, replicas: u32) -> Self {
        Self { replicas, ..self }
    }

    /// Records that the server stores the hold in full. It is not asked for in the main key first.
    pub(crate) fn set_in_full(&self) {
        self.in_full.store(true, Ordering::Relaxed);
    }

    /// Sets whether the request was sent more than once.
    pub(crate) fn sent_again(self, resent: bool) -> Self {
        Self { resent, ..self }
    }
}
