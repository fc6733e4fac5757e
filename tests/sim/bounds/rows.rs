//! Members of one cohort, and what operations are made of.

#![expect(clippy::async_yields_async, reason = "an operation is prepared first, and begins later")]

use std::time::Duration;

use bowline::{Acquire, Client, Held, TryAcquire};
use bowline_testkit::operations::{Prepared, Row, behind, ready};
use futures::FutureExt;
use futures::future::BoxFuture;

pub(super) fn waits<G: Held + 'static>(acquire: Acquire<G>, timeout: Option<Duration>) -> Prepared {
    let acquire = match timeout {
        Some(timeout) => acquire.timeout(timeout),
        None => acquire,
    };
    async move { acquire.await.map(drop) }.boxed()
}

pub(super) fn tries<G: Held + 'static>(tries: TryAcquire<G>, timeout: Option<Duration>) -> Prepared {
    let tries = match timeout {
        Some(timeout) => tries.timeout(timeout),
        None => tries,
    };
    async move { tries.await.map(drop) }.boxed()
}

fn member(client: Client, timeout: Option<Duration>) -> BoxFuture<'static, Prepared> {
    ready(waits(client.lock("cohort").lock().non_fair(), timeout))
}

/// Members of one cohort. Those with a timeout of their own leave their requests to the next one.
pub(super) const COHORT: &[Row<Client>] = &[
    ("member 1", true, member),
    ("member 2", false, member),
    ("member 3", true, member),
    ("member 4", true, member),
    ("member 5", false, member),
    ("member 6", false, member),
];

/// Members of one cohort that wait for its ticket.
pub(super) const COHORT_QUEUED: &[Row<Client>] = &[
    ("queued member 1", true, |client, timeout| {
        Box::pin(async move {
            let lock = client.lock("cohort");
            behind(lock.lock().await.unwrap(), waits(lock.lock().non_fair(), timeout))
        })
    }),
    ("queued member 2", false, member),
    ("queued member 3", true, member),
    ("queued member 4", false, member),
    ("queued member 5", false, member),
];
