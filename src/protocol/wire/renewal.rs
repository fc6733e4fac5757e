//! Renewals.

use std::sync::atomic::AtomicBool;

use super::{Attempt, Request, Resource, id, sent};
use crate::protocol::resource::RenewArgs;

/// Renews holds, with the resource and the lease of each attempt. `None` if they cannot be renewed in one call.
pub fn renew(holds: &[(&Resource, Attempt)]) -> Option<Request> {
    renewal(holds, &AtomicBool::new(true))
}

/// The same for holds of permits that may be stored in their main key only.
pub fn renew_short(holds: &[(&Resource, Attempt)]) -> Option<Request> {
    renewal(holds, &AtomicBool::new(false))
}

fn renewal(holds: &[(&Resource, Attempt)], in_full: &AtomicBool) -> Option<Request> {
    let (first, _) = holds.first()?;
    let kind = first.keys.kind;
    let script = kind.renewal(in_full);
    let all = script.is_some() && holds.iter().all(|(resource, _)| resource.keys.kind.renewal(in_full) == script);
    let renewals: Vec<_> = holds
        .iter()
        .map(|(Resource { keys, .. }, attempt)| {
            let Attempt { lease, .. } = *attempt;
            RenewArgs { keys, id: id(*attempt), lease, longest: lease, extended: false, in_full }
        })
        .collect();
    let form = kind.form(in_full);
    kind.with(|resource| resource.held().filter(|_| all).map(|held| sent(held.renew(&renewals, form))))
}
