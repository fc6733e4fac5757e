//! Renewals of several holds at once.

use super::{Attempt, Request, Resource, id, sent};
use crate::protocol::key::Keys;
use crate::protocol::resource::RenewArgs;

/// Renews holds, with the resource and the lease of each attempt. `None` if they cannot be renewed in one call.
pub fn renew(holds: &[(&Resource, Attempt)]) -> Option<Request> {
    let (first, _) = holds.first()?;
    let renewal = first.keys.kind.renewal();
    let all = renewal.is_some() && holds.iter().all(|(resource, _)| resource.keys.kind.renewal() == renewal);
    let holds: Vec<_> = holds.iter().map(|(resource, attempt)| renewal_of(&resource.keys, *attempt)).collect();
    first.keys.kind.with(|resource| resource.held().filter(|_| all).map(|held| sent(held.renew(&holds))))
}

pub(super) fn renewal_of(keys: &Keys, attempt: Attempt) -> RenewArgs<'_> {
    RenewArgs { keys, id: id(attempt), lease: attempt.lease, longest: attempt.lease }
}
