//! The operations of the public API, each prepared while the server is well, for tests of what becomes of it later. Both
//! APIs have the same ones.

use std::time::Duration;

use bowline::{Client, Holder, Result, blocking};
use futures::FutureExt;
use futures::future::{BoxFuture, join, try_join};

/// An operation that was prepared. It begins when it is polled.
pub type Prepared = BoxFuture<'static, Result<()>>;

/// An operation of a client of either API.
pub struct Row<C> {
    pub name: &'static str,
    /// Whether the caller can limit it, by a `timeout` of its own.
    pub has_timeout: bool,
    /// With the timeout, if it has one.
    pub prepare: fn(C, Option<Duration>) -> BoxFuture<'static, Prepared>,
}

pub struct Operations<C: 'static> {
    /// They need nothing that is prepared.
    pub plain: &'static [Row<C>],
    /// They need a hold.
    pub held: &'static [Row<C>],
    /// They wait behind a hold when the trouble begins.
    pub queued: &'static [Row<C>],
    /// They wait for what the leader of their cohort is answered.
    pub followers: &'static [Row<C>],
}

/// A lease for which no test waits.
pub const LEASE: Duration = Duration::from_secs(60);

/// The table, in one of the APIs: `waits`, `tries`, `holds` and `call` say how this one acquires and calls.
macro_rules! operations {
    ($waits:ident, $tries:ident, $latch:ident, $call:ident, $on:ident, $behind:ident) => {
        Operations {
            plain: &[
                $waits!("lock", client => client.lock("lock").lock()),
                $tries!("try_lock", client => client.lock("try_lock").try_lock()),
                row("non_fair", true, |client, timeout| {
                    let [one, other] = [(); 2].map(|()| $waits!(timeout, client, client.lock("non_fair").lock().non_fair()));
                    ready(async move { try_join(one, other).await.map(drop) }.boxed())
                }),
                $waits!("fixed", client => client.lock("fixed").lock().expires_after(LEASE)),
            ],
            held: &[],
            queued: &[],
            followers: &[],
        }
    };
}
