//! What a hold knows of its grant, besides the lease.

use super::Hold;

impl Hold {
    /// Sets how many replicas must acknowledge the grant and each renewal before they count.
    pub(crate) fn acknowledged_by(self, replicas: u32) -> Self {
        Self { replicas, ..self }
    }

    /// Sets whether the request was sent more than once.
    pub(crate) fn sent_again(self, resent: bool) -> Self {
        Self { resent, ..self }
    }
}
