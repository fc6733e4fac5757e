//! The operations of both APIs, prepared while the server is well. What becomes of them when it is not is for tests to
//! see.

#![expect(clippy::async_yields_async, reason = "an operation is prepared first, and begins later")]

use std::time::Duration;

use bowline::{Client, Quota, Result, Whose, blocking};
use futures::FutureExt;
use futures::future::{BoxFuture, join};

/// An operation, which begins when this is polled.
pub type Prepared = BoxFuture<'static, Result<()>>;

/// An operation of a client: its name, whether it has a timeout of its own, and how it is prepared.
pub type Row<C> = (&'static str, bool, fn(C, Option<Duration>) -> BoxFuture<'static, Prepared>);

/// The operations of an API whose client is `C`.
#[derive(Clone, Copy)]
pub struct Operations<C: 'static> {
    /// They need nothing to be prepared.
    pub plain: &'static [Row<C>],
    /// They need a hold.
    pub held: &'static [Row<C>],
    /// Acquisitions that wait behind others. If they begin before the trouble, they are in the queue then.
    pub queued: &'static [Row<C>],
    /// Acquisitions that wait for what the leader of their cohort is answered.
    pub followers: &'static [Row<C>],
}

/// A lease that ends in no test.
pub const LEASE: Duration = Duration::from_secs(60);

/// A quota that no test uses up.
pub const QUOTA: Quota = Quota::per(1000, Duration::from_secs(1));

/// An operation that needs no preparation.
pub fn ready(prepared: Prepared) -> BoxFuture<'static, Prepared> {
    Box::pin(std::future::ready(prepared))
}

/// Keeps what the work waits for.
pub fn behind(held: impl Send + 'static, work: Prepared) -> Prepared {
    async move {
        let outcome = work.await;
        drop(held);
        outcome
    }
    .boxed()
}

/// Ends when both have ended: a failure of one says nothing about the time of the other.
pub fn both([one, other]: [Prepared; 2]) -> Prepared {
    async move {
        let (one, other) = join(one, other).await;
        one.and(other)
    }
    .boxed()
}

/// The outcome of the second one.
fn second([one, other]: [Prepared; 2]) -> Prepared {
    async move { join(one, other).await.1 }.boxed()
}

/// The table. `waits!`, `calls!` and `holds!` are the macros of the API where it stands, and `plain` its client of
/// futures.
macro_rules! table {
    ($client:ty) => {
        pub const OPERATIONS: Operations<$client> = Operations {
            plain: &[
                ("lock", true, |client, timeout| ready(waits!(timeout, client.lock("lock").lock()))),
                ("try_lock", true, |client, timeout| ready(waits!(timeout, client.lock("try_lock").try_lock()))),
                ("non_fair", true, |client, timeout| {
                    ready(both(
                        [client.clone(), client]
                            .map(|client| waits!(timeout, client.lock("non_fair").lock().non_fair())),
                    ))
                }),
                ("fixed", true, |client, timeout| {
                    ready(waits!(timeout, client.lock("fixed").lock().expires_after(LEASE)))
                }),
                ("read", true, |client, timeout| ready(waits!(timeout, client.rw_lock("read").read()))),
                ("upgradable_read", true, |client, timeout| {
                    ready(waits!(timeout, client.rw_lock("upgradable").upgradable_read()))
                }),
                ("write", true, |client, timeout| ready(waits!(timeout, client.rw_lock("write").write()))),
                ("try_read", true, |client, timeout| ready(waits!(timeout, client.rw_lock("try_read").try_read()))),
                ("try_upgradable_read", true, |client, timeout| {
                    ready(waits!(timeout, client.rw_lock("try_upgradable").try_upgradable_read()))
                }),
                ("try_write", true, |client, timeout| ready(waits!(timeout, client.rw_lock("try_write").try_write()))),
                ("acquire", true, |client, timeout| ready(waits!(timeout, client.semaphore("acquire", 2).acquire()))),
                ("acquire_many", true, |client, timeout| {
                    ready(waits!(timeout, client.semaphore("many", 3).acquire_many(2)))
                }),
                ("try_acquire_all", true, |client, timeout| {
                    ready(waits!(timeout, client.semaphore("try_acquire_all", 2).try_acquire_all()))
                }),
                ("try_acquire", true, |client, timeout| {
                    ready(waits!(timeout, client.semaphore("try_acquire", 2).try_acquire()))
                }),
                ("lock_all", true, |client, timeout| {
                    ready(waits!(timeout, client.lock_all(["all 1", "all 2"]).acquire()))
                }),
                ("try_lock_all", true, |client, timeout| {
                    ready(waits!(timeout, client.lock_all(["try 1", "try 2"]).try_acquire()))
                }),
                ("until_ready", true, |client, timeout| {
                    ready(waits!(timeout, client.rate_limiter("until_ready", QUOTA).until_ready()))
                }),
                ("check", false, |client, _| ready(calls!(client.rate_limiter("check", QUOTA).check()))),
                ("wait", true, |client, timeout| ready(waits!(timeout, client.latch("wait").wait()))),
                ("try_set", false, |client, _| ready(calls!(client.latch("try_set").try_set(1, LEASE)))),
                ("count_down", false, |client, _| ready(calls!(client.latch("count_down").count_down()))),
                ("count", false, |client, _| ready(calls!(client.latch("count").count()))),
                ("delete", false, |client, _| ready(calls!(client.latch("delete").delete()))),
                ("barrier", true, |client, timeout| ready(waits!(timeout, client.barrier("barrier", 1).wait()))),
                ("enter", true, |client, timeout| ready(waits!(timeout, client.double_barrier("enter", 1).enter()))),
                ("inspect_double", false, |client, _| ready(calls!(client.double_barrier("seen", 2).inspect()))),
                ("reset", false, |client, _| ready(calls!(client.barrier("reset", 2).reset()))),
                ("inspect_barrier", false, |client, _| ready(calls!(client.barrier("seen", 2).inspect()))),
                ("inspect", false, |client, _| ready(calls!(client.lock("inspect").inspect()))),
                ("inspect_rw", false, |client, _| ready(calls!(client.rw_lock("rw").inspect()))),
                ("available", false, |client, _| ready(calls!(client.semaphore("available", 2).available()))),
                ("set_limit", false, |client, _| ready(calls!(client.semaphore("limit", 2).set_limit(3)))),
                ("try_campaign", false, |client, _| ready(calls!(client.election("try_campaign").try_campaign()))),
                ("leader", false, |client, _| ready(calls!(client.election("leader").leader()))),
                ("java_set", false, |client, _| {
                    ready(calls!(client.redisson().count_down_latch("java:set").try_set_count(1)))
                }),
                ("java_count_down", false, |client, _| {
                    ready(calls!(client.redisson().count_down_latch("java:count_down").count_down()))
                }),
                ("java_count", false, |client, _| {
                    ready(calls!(client.redisson().count_down_latch("java:count").count()))
                }),
                ("java_wait", true, |client, timeout| {
                    ready(waits!(timeout, client.redisson().count_down_latch("java:wait").wait()))
                }),
                ("java_try_acquire", false, |client, _| {
                    ready(calls!(client.redisson().semaphore("java:try_acquire").try_acquire()))
                }),
                ("java_release", false, |client, _| {
                    ready(calls!(client.redisson().semaphore("java:release").release(1)))
                }),
                ("java_try_permit", true, |client, timeout| {
                    ready(waits!(timeout, client.redisson().permit_semaphore("java:try_permit").try_acquire()))
                }),
                ("java_set_permits", false, |client, _| {
                    ready(calls!(client.redisson().permit_semaphore("java:set_permits").set_permits(1)))
                }),
                ("java_inspect_permits", false, |client, _| {
                    ready(calls!(client.redisson().permit_semaphore("java:inspect").inspect()))
                }),
                ("java_release_id", false, |client, _| {
                    const ID: &str = "0123456789abcdef0123456789abcdef";
                    ready(calls!(client.redisson().permit_semaphore("java:release_id").release_id(ID)))
                }),
                ("names", false, |client, _| ready(calls!(client.names().all()))),
                ("ask_to_release", false, |client, _| ready(calls!(client.lock("ask").ask_to_release()))),
                ("drop_waiters", false, |client, _| ready(calls!(client.lock("drop").drop_waiters(Whose::Everybody)))),
                ("drop_waiters_permits", false, |client, _| {
                    ready(calls!(client.semaphore("drop_permits", 2).drop_waiters(Whose::Everybody)))
                }),
                ("force_release", false, |client, _| ready(calls!(client.lock("force").force_release()))),
                ("force_release_rw", false, |client, _| {
                    ready(calls!(client.rw_lock("force_rw").force_release(Whose::Everybody)))
                }),
                ("force_release_permits", false, |client, _| {
                    ready(calls!(client.semaphore("force_permits", 2).force_release(Whose::Everybody)))
                }),
            ],
            held: &[
                ("java_acquire", true, |client, timeout| {
                    Box::pin(async move {
                        let semaphore = plain(&client).redisson().semaphore("java:acquire");
                        semaphore.release(1).await.unwrap();
                        waits!(timeout, client.redisson().semaphore("java:acquire").acquire())
                    })
                }),
                ("java_acquire_permit", true, |client, timeout| {
                    Box::pin(async move {
                        let semaphore = plain(&client).redisson().permit_semaphore("java:permit");
                        semaphore.add_permits(1).await.unwrap();
                        waits!(timeout, client.redisson().permit_semaphore("java:permit").acquire())
                    })
                }),
                ("java_release_permit", false, |client, _| {
                    Box::pin(async move {
                        let semaphore = plain(&client).redisson().permit_semaphore("java:given");
                        semaphore.add_permits(1).await.unwrap();
                        let taken = client.redisson().permit_semaphore("java:given");
                        holds!(taken.acquire(), guard => guard.release()).await
                    })
                }),
        ("release", false, |client, _| holds!(client.lock("release").lock(), guard => guard.release())),
                (
                    "release_read",
                    false,
            |client, _| holds!(client.rw_lock("release_read").read(), guard => guard.release()),
                ),
                (
                    "release_permit",
                    false,
            |client, _| holds!(client.semaphore("release_permit", 2).acquire(), guard => guard.release()),
                ),
                ("release_part", false, |client, _| {
                    holds!(client.semaphore("release_part", 2).acquire_many(2), guard => {
                        let mut guard = guard;
                        let part = guard.split(1);
                        drop(guard.keep());
                        part.expect("it has two").release()
                    })
                }),
                (
                    "release_all",
                    false,
            |client, _| holds!(client.lock_all(["release 1", "release 2"]).acquire(), guard => guard.release()),
                ),
                (
                    "extend",
                    false,
            |client, _| holds!(client.lock("extend").lock().expires_after(LEASE), guard => guard.extend(LEASE)),
                ),
                ("resume", false, |client, _| {
                    let lock = client.lock("resume");
                    holds!(client.lock("resume").lock(), guard => {
                        let handle = guard.into_handle().expect("it is held");
                        resume!(lock, handle)
                    })
                }),
                (
                    "downgrade",
                    false,
            |client, _| holds!(client.rw_lock("downgrade").write(), guard => guard.downgrade()),
                ),
        ("publish", false, |client, _| holds!(client.election("publish").campaign(), led => led.publish("x"))),
        ("resign", false, |client, _| holds!(client.election("resign").campaign(), led => led.resign())),
                (
                    "try_upgrade",
                    false,
            |client, _| holds!(client.rw_lock("try_upgrade").read(), guard => guard.try_upgrade()),
                ),
                (
                    "downgrade_to_upgradable",
                    false,
            |client, _| {
                holds!(client.rw_lock("to_upgradable").write(), guard => guard.downgrade_to_upgradable())
            },
                ),
                (
                    "upgrade",
                    false,
            |client, _| holds!(client.rw_lock("upgrade").upgradable_read(), guard => guard.upgrade()),
                ),
            ],
            queued: &[
                ("queued", true, |client, timeout| {
                    Box::pin(async move {
                        let held = plain(&client).lock("queued").lock().await.unwrap();
                        behind(held, waits!(timeout, client.lock("queued").lock()))
                    })
                }),
                ("queued_non_fair", true, |client, timeout| {
                    Box::pin(async move {
                        let held = plain(&client).lock("queued_non_fair").lock().await.unwrap();
                        let waiters = [client.clone(), client]
                            .map(|client| waits!(timeout, client.lock("queued_non_fair").lock().non_fair()));
                        behind(held, both(waiters))
                    })
                }),
                ("queued_permit", true, |client, timeout| {
                    Box::pin(async move {
                        let held = plain(&client).semaphore("queued_permit", 2).acquire_many(2).await.unwrap();
                        behind(held, waits!(timeout, client.semaphore("queued_permit", 2).acquire()))
                    })
                }),
                ("queued_wait", true, |client, timeout| {
                    Box::pin(async move {
                        assert!(plain(&client).latch("queued_wait").try_set(1, LEASE * 60).await.unwrap());
                        waits!(timeout, client.latch("queued_wait").wait())
                    })
                }),
                ("queued_barrier", true, |client, timeout| {
                    ready(waits!(timeout, client.barrier("queued_barrier", 2).wait()))
                }),
            ],
            followers: &[
                ("follower", true, |client, timeout| {
                    ready(second(
                        [client.clone(), client]
                            .map(|client| waits!(timeout, client.lock("follower").lock().non_fair())),
                    ))
                }),
                ("follower_of_permits", true, |client, timeout| {
                    ready(second(
                        [client.clone(), client]
                            .map(|client| waits!(timeout, client.semaphore("follower", 2).acquire_many(2).non_fair())),
                    ))
                }),
            ],
        };
    };
}

/// Those whose calls are futures.
pub mod asynchronous {
    use super::*;

    macro_rules! waits {
        ($timeout:expr, $acquire:expr) => {{
            let acquire = $acquire;
            let acquire = if let Some(timeout) = $timeout { acquire.timeout(timeout) } else { acquire };
            async move { acquire.await.map(drop) }.boxed()
        }};
    }

    macro_rules! calls {
        ($call:expr) => {
            #[allow(dropping_copy_types, reason = "some calls return nothing")]
            async move { $call.await.map(drop) }.boxed()
        };
    }

    macro_rules! holds {
        ($acquire:expr, $guard:ident => $call:expr) => {{
            let acquire = $acquire;
            Box::pin(async move {
                let $guard = acquire.await.unwrap();
                calls!($call)
            })
        }};
    }

    macro_rules! resume {
        ($lock:expr, $handle:expr) => {
            async move { $lock.resume(&$handle).await }
        };
    }

    fn plain(client: &Client) -> &Client {
        client
    }

    table!(Client);
}

/// Those whose calls block a thread: each has one of its own.
pub mod on_threads {
    use std::sync::mpsc;
    use std::thread;

    use futures::channel::oneshot;

    use super::*;

    macro_rules! waits {
        ($timeout:expr, $acquire:expr) => {{
            let timeout: Option<Duration> = $timeout;
            on_a_thread(move || {
                let acquire = $acquire;
                let acquire = if let Some(timeout) = timeout { acquire.timeout(timeout) } else { acquire };
                acquire.block().map(drop)
            })
        }};
    }

    macro_rules! calls {
        ($call:expr) => {
            on_a_thread(move || $call.map(drop))
        };
    }

    macro_rules! holds {
        ($acquire:expr, $guard:ident => $call:expr) => {
            in_two_steps(move || $acquire.block().unwrap(), move |$guard| $call.map(drop))
        };
    }

    macro_rules! resume {
        ($lock:expr, $handle:expr) => {
            $lock.resume(&$handle)
        };
    }

    /// Makes a blocking call on a thread of its own, once this is polled. Joining the thread would block the runtime
    /// that the call waits for.
    pub fn on_a_thread(call: impl FnOnce() -> Result<()> + Send + 'static) -> Prepared {
        async move {
            let (done, outcome) = oneshot::channel();
            thread::spawn(move || done.send(call()));
            outcome.await.expect("the thread panicked")
        }
        .boxed()
    }

    /// Both steps are made by the same thread, to which the guard belongs.
    fn in_two_steps<G>(
        acquire: impl FnOnce() -> G + Send + 'static,
        call: impl FnOnce(G) -> Result<()> + Send + 'static,
    ) -> BoxFuture<'static, Prepared> {
        async move {
            let ((prepared, is_prepared), (done, outcome)) = (oneshot::channel(), oneshot::channel());
            let (begin, begins) = mpsc::channel();
            thread::spawn(move || {
                let guard = acquire();
                let _ = prepared.send(());
                if begins.recv().is_ok() {
                    let _ = done.send(call(guard));
                }
            });
            is_prepared.await.expect("the thread panicked");
            async move {
                begin.send(()).expect("the thread waits");
                outcome.await.expect("the thread panicked")
            }
            .boxed()
        }
        .boxed()
    }

    fn plain(client: &blocking::Client) -> &Client {
        client.as_async()
    }

    table!(blocking::Client);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_has_a_name_of_its_own() {
        let Operations { plain, held, queued, followers } = asynchronous::OPERATIONS;
        let mut names: Vec<_> = [plain, held, queued, followers].concat().iter().map(|row| row.0).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
