//! What is dropped half way. A new operation is one entry in [`OPERATIONS`].

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use bowline::{Client, Config, ErrorKind, Executor, Holder, Lock, MultiLock, Result, Whose};
use futures::future::{BoxFuture, join};
use futures::{FutureExt, StreamExt};
use uuid::Uuid;

use super::NAME;
use crate::executor::Process;
use crate::guard::{Guard, What};
use crate::judge::view::permits;
use crate::network::{Link, SimConnection};
use crate::tracking::Tracking;
use crate::world::MS;

/// The client whose operation is dropped.
pub struct Subject {
    pub process: Process,
    pub link: Arc<Link>,
    pub connection: Arc<SimConnection>,
    pub tracking: Arc<Tracking>,
    pub id: Uuid,
    pub lease: Duration,
    pub client: Option<Client>,
    /// What it holds before the operation; left here, it outlives the operation's future.
    pub guard: Option<Arc<Guard>>,
    pub holder: Holder,
}

impl Subject {
    pub fn connect(&self) -> BoxFuture<'static, Result<Client>> {
        let config = Config::builder().lease(self.lease).client_id(self.id).build().unwrap();
        let executor: Arc<dyn Executor> = self.tracking.clone();
        Client::connect(executor, self.connection.clone(), config).boxed()
    }

    pub fn lock(&self) -> Lock {
        self.client.as_ref().unwrap().lock(NAME)
    }
}

/// What the subject has when the operation begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Before {
    Nothing,
    Client,
    Hold,
}

/// Another task of the subject's holder, which acquires the same lock at the same time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Companion {
    First,
    Second,
}

pub struct Operation {
    pub name: &'static str,
    pub before: Before,
    /// The future that is polled and dropped. A guard that comes out of it goes at once.
    pub start: fn(&mut Subject) -> BoxFuture<'static, Result<()>>,
    pub companion: Option<Companion>,
    /// What it holds before, if anything; the others want all of it.
    pub on: What,
    /// How it may end without any fault.
    pub fails: &'static [ErrorKind],
    /// It may take the lock from another client.
    pub robs: bool,
    /// It stores a limit, and that stays.
    pub limits: bool,
    /// A hold that it is about to take over stays until its lease ends.
    pub leaves: bool,
    /// It closes the subject's client.
    pub closes: bool,
    /// Other tasks of the subject's client come to wait in its cohort.
    pub cohort: bool,
}

pub const PLAIN: Operation = Operation {
    name: "",
    before: Before::Client,
    start: |_| pending().boxed(),
    companion: None,
    on: What::Lock,
    fails: &[],
    robs: false,
    limits: false,
    leaves: false,
    closes: false,
    cohort: false,
};

const LOST: &[ErrorKind] = &[ErrorKind::Lost];

pub const OPERATIONS: &[Operation] = &[
    Operation { name: "Client::connect", before: Before::Nothing, start: |s| drops(s.connect()), ..PLAIN },
    Operation { name: "lock", start: |s| with(s, |lock, _| drops(async move { lock.lock().await })), ..PLAIN },
    Operation {
        name: "lock, non_fair",
        start: |s| with(s, |lock, _| drops(async move { lock.lock().non_fair().await })),
        ..PLAIN
    },
    Operation {
        name: "lock, non_fair, in a cohort",
        start: |s| with(s, |lock, _| drops(async move { lock.lock().non_fair().await })),
        cohort: true,
        ..PLAIN
    },
    Operation {
        name: "a section, non_fair, in a cohort",
        start: |s| with(s, |lock, _| async move { lock.lock().non_fair().await?.release().await }.boxed()),
        cohort: true,
        ..PLAIN
    },
    Operation {
        name: "lock, retained",
        start: |s| with(s, |lock, _| drops(async move { lock.lock().retained(MS).await })),
        ..PLAIN
    },
    Operation {
        name: "two sections, retained, in a cohort",
        start: |s| {
            with(s, |lock, _| {
                let lock = lock.retained(MS);
                async move {
                    lock.lock().await?.release().await?;
                    lock.lock().await?.release().await
                }
                .boxed()
            })
        },
        cohort: true,
        ..PLAIN
    },
    Operation {
        name: "try_lock, retained",
        start: |s| with(s, |lock, _| async move { lock.try_lock().retained(MS).await.map(drop) }.boxed()),
        ..PLAIN
    },
    Operation {
        name: "once",
        start: |s| {
            let once = s.client.as_ref().unwrap().once(NAME, bowline::MAX_PERIOD);
            async move { once.run(|_| async {}).await.map(drop) }.boxed()
        },
        ..PLAIN
    },
    Operation {
        name: "campaign, publish, resign",
        start: |s| {
            let election = s.client.as_ref().unwrap().election(NAME);
            async move {
                let led = election.campaign().await?;
                led.publish("x").await?;
                led.resign().await
            }
            .boxed()
        },
        fails: LOST,
        ..PLAIN
    },
    Operation {
        name: "lead",
        start: |s| {
            let (election, executor) = (s.client.as_ref().unwrap().election(NAME), s.tracking.clone());
            async move {
                election
                    .lead(|_| {
                        let executor = executor.clone();
                        async move { executor.sleep(2 * MS).await }
                    })
                    .await
            }
            .boxed()
        },
        fails: LOST,
        ..PLAIN
    },
    Operation {
        name: "changes",
        start: |s| {
            let election = s.client.as_ref().unwrap().election(NAME);
            async move {
                let led = election.campaign().await?;
                let mut changes = election.changes();
                changes.next().await.transpose()?;
                led.publish("x").await?;
                changes.next().await.transpose().map(drop)
            }
            .boxed()
        },
        fails: LOST,
        ..PLAIN
    },
    Operation {
        // All that it leaves is a key that ends when its permits are back.
        name: "check, until_ready",
        start: |s| {
            let quota = bowline::Quota::per(2, MS);
            let limiter = s.client.as_ref().unwrap().rate_limiter(NAME, quota);
            async move {
                let _ = limiter.check().await?;
                limiter.until_ready_n(2).await
            }
            .boxed()
        },
        ..PLAIN
    },
    Operation {
        name: "lock, timeout",
        start: |s| with(s, |lock, _| drops(async move { lock.lock().timeout(1000 * MS).await })),
        fails: &[ErrorKind::TimedOut],
        ..PLAIN
    },
    Operation {
        name: "lock, timeout within a round trip",
        start: |s| with(s, |lock, _| drops(async move { lock.lock().timeout(MS).await })),
        fails: &[ErrorKind::TimedOut],
        ..PLAIN
    },
    Operation {
        name: "lock, lease",
        start: |s| with(s, |lock, _| drops(async move { lock.lock().expires_after(500 * MS).await })),
        ..PLAIN
    },
    Operation {
        name: "lock, max_waiters",
        start: |s| with(s, |lock, _| drops(async move { lock.lock().max_waiters(1).await })),
        fails: &[ErrorKind::QueueFull],
        ..PLAIN
    },
    Operation {
        name: "lock, holder, the first of two tasks",
        start: |s| with(s, |lock, holder| drops(async move { lock.lock().holder(&holder).await })),
        companion: Some(Companion::Second),
        ..PLAIN
    },
    Operation {
        name: "lock, holder, the second of two tasks",
        start: |s| with(s, |lock, holder| drops(async move { lock.lock().holder(&holder).await })),
        companion: Some(Companion::First),
        ..PLAIN
    },
    Operation { name: "try_lock", start: |s| with(s, |lock, _| drops(async move { lock.try_lock().await })), ..PLAIN },
    Operation {
        name: "try_lock, holder, lease, timeout",
        start: |s| {
            with(s, |lock, holder| {
                drops(async move { lock.try_lock().holder(&holder).expires_after(500 * MS).timeout(100 * MS).await })
            })
        },
        companion: Some(Companion::Second),
        fails: &[ErrorKind::TimedOut],
        ..PLAIN
    },
    Operation {
        name: "lock, lease, hold_at_most",
        start: |s| with(s, |lock, _| drops(async move { lock.lock().lease(500 * MS).hold_at_most(900 * MS).await })),
        ..PLAIN
    },
    Operation {
        name: "extend",
        before: Before::Hold,
        start: |s| {
            // On another lock, because the lease of the hold that the scene has is renewed, and only a fixed one is
            // extended.
            let other = s.client.as_ref().unwrap().lock("another");
            async move {
                let guard = other.lock().expires_after(500 * MS).await?;
                guard.extend(900 * MS).await?;
                guard.release().await
            }
            .boxed()
        },
        fails: LOST,
        ..PLAIN
    },
    Operation {
        name: "run",
        start: |s| {
            let executor = s.tracking.clone();
            let lock = s.lock();
            lock.lock().run(move |_| async move { executor.sleep(2 * MS).await }).boxed()
        },
        fails: LOST,
        ..PLAIN
    },
    Operation {
        name: "run, non_fair, in a cohort",
        start: |s| {
            let executor = s.tracking.clone();
            s.lock().lock().non_fair().run(move |_| async move { executor.sleep(2 * MS).await }).boxed()
        },
        fails: LOST,
        cohort: true,
        ..PLAIN
    },
    Operation {
        name: "run, holder, whose work acquires again",
        start: |s| {
            let (lock, holder) = (s.lock(), s.holder);
            let inner = lock.clone();
            let work = move |_| async move { inner.lock().holder(&holder).await?.release().await };
            lock.lock().holder(&holder).run(work).map(|ended| ended.and_then(|inner| inner)).boxed()
        },
        companion: Some(Companion::Second),
        fails: LOST,
        ..PLAIN
    },
    Operation {
        name: "run of a try",
        start: |s| {
            let executor = s.tracking.clone();
            drops(s.lock().try_lock().run(move |_| async move { executor.sleep(2 * MS).await }))
        },
        fails: LOST,
        ..PLAIN
    },
    Operation {
        name: "of several",
        start: |s| shared(s, |client| drops(async move { several(&client).acquire().await })),
        fails: LOST,
        ..PLAIN
    },
    Operation {
        name: "of several, timeout",
        start: |s| shared(s, |client| drops(async move { several(&client).acquire().timeout(20 * MS).await })),
        fails: &[ErrorKind::Lost, ErrorKind::TimedOut],
        ..PLAIN
    },
    Operation {
        name: "of several, a section, non_fair, in a cohort",
        start: |s| {
            shared(s, |client| async move { several(&client).acquire().non_fair().await?.release().await }.boxed())
        },
        fails: LOST,
        cohort: true,
        ..PLAIN
    },
    Operation {
        name: "of several, try",
        start: |s| shared(s, |client| drops(async move { several(&client).try_acquire().await })),
        fails: LOST,
        ..PLAIN
    },
    Operation {
        name: "run, of several",
        start: |s| {
            let executor = s.tracking.clone();
            let several = several(s.client.as_ref().unwrap());
            several.acquire().run(move |_| async move { executor.sleep(2 * MS).await }).boxed()
        },
        fails: LOST,
        ..PLAIN
    },
    Operation {
        name: "run, of permits",
        on: What::Permits(2),
        start: |s| {
            let executor = s.tracking.clone();
            let semaphore = s.client.as_ref().unwrap().semaphore(NAME, permits(NAME));
            semaphore.acquire_many(2).run(move |_| async move { executor.sleep(2 * MS).await }).boxed()
        },
        fails: LOST,
        ..PLAIN
    },
    Operation {
        name: "Client::scope",
        start: |s| {
            let client = s.client.clone().unwrap();
            async move { client.scope(|client| section(client.lock(NAME))).await }.boxed()
        },
        closes: true,
        ..PLAIN
    },
    Operation { name: "a section", start: |s| with(s, |lock, _| section(lock).boxed()), ..PLAIN },
    Operation {
        name: "scope, re-entered",
        start: |s| with(s, |lock, holder| async move { holder.scope(nested(lock)).await }.boxed()),
        companion: Some(Companion::Second),
        ..PLAIN
    },
    Operation { name: "inspect", start: |s| with(s, |lock, _| drops(async move { lock.inspect().await })), ..PLAIN },
    Operation {
        name: "names and looks at them",
        start: |s| {
            shared(s, |client| {
                drops(async move {
                    let names = client.names().all().await?;
                    client.look(&names).await.into_iter().collect::<Result<Vec<_>, _>>()
                })
            })
        },
        ..PLAIN
    },
    Operation {
        name: "a search for deadlocks",
        start: |s| shared(s, |client| drops(async move { client.deadlocks().await })),
        ..PLAIN
    },
    Operation {
        name: "ask_to_release",
        before: Before::Hold,
        start: |s| with(s, |lock, _| drops(async move { lock.ask_to_release().await })),
        ..PLAIN
    },
    Operation {
        name: "drop_waiters",
        before: Before::Hold,
        start: |s| with(s, |lock, _| drops(async move { lock.drop_waiters(Whose::Client(Uuid::nil())).await })),
        ..PLAIN
    },
    Operation {
        name: "force_release",
        start: |s| with(s, |lock, _| drops(async move { lock.force_release().await })),
        robs: true,
        ..PLAIN
    },
    Operation {
        name: "force_release of what it holds",
        before: Before::Hold,
        start: |s| with(s, |lock, _| drops(async move { lock.force_release().await })),
        robs: true,
        ..PLAIN
    },
    Operation {
        name: "release",
        before: Before::Hold,
        start: |s| s.guard.take().and_then(Arc::into_inner).unwrap().release().boxed(),
        fails: &[ErrorKind::Lost],
        ..PLAIN
    },
    Operation {
        name: "a guard dropped with its task",
        before: Before::Hold,
        start: |s| {
            let guard = s.guard.take();
            async move {
                pending::<()>().await;
                drop(guard);
                Ok(())
            }
            .boxed()
        },
        ..PLAIN
    },
    Operation {
        name: "protect",
        before: Before::Hold,
        start: |s| {
            let (guard, executor) = (s.guard.clone().unwrap(), s.tracking.clone());
            async move { guard.protect(executor.sleep(4 * MS)).await }.boxed()
        },
        fails: &[ErrorKind::Lost],
        ..PLAIN
    },
    Operation {
        name: "protect, of an acquisition",
        before: Before::Hold,
        start: |s| {
            let (guard, other) = (s.guard.clone().unwrap(), s.client.as_ref().unwrap().lock("another"));
            async move { guard.protect(section(other)).await? }.boxed()
        },
        fails: &[ErrorKind::Lost],
        ..PLAIN
    },
    Operation {
        name: "lost",
        before: Before::Hold,
        start: |s| {
            let guard = s.guard.clone().unwrap();
            drops(async move { Ok(guard.lost().await) })
        },
        ..PLAIN
    },
    Operation {
        name: "read",
        on: What::Read,
        start: |s| shared(s, |client| drops(async move { client.rw_lock(NAME).read().await })),
        ..PLAIN
    },
    Operation {
        name: "write",
        on: What::Write,
        start: |s| shared(s, |client| drops(async move { client.rw_lock(NAME).write().await })),
        ..PLAIN
    },
    Operation {
        name: "write, non_fair, in a cohort",
        on: What::Write,
        start: |s| shared(s, |client| drops(What::Write.acquire_in_cohort(client, NAME))),
        cohort: true,
        ..PLAIN
    },
    Operation {
        name: "two sections of a writer, retained, in a cohort",
        on: What::Write,
        start: |s| {
            shared(s, |client| {
                let lock = client.rw_lock(NAME).retained(MS);
                async move {
                    lock.write().await?.release().await?;
                    lock.write().await?.release().await
                }
                .boxed()
            })
        },
        cohort: true,
        ..PLAIN
    },
    Operation {
        name: "try_write, retained",
        on: What::Write,
        start: |s| shared(s, |client| drops(async move { client.rw_lock(NAME).try_write().retained(MS).await })),
        ..PLAIN
    },
    Operation {
        name: "downgrade, with a cohort",
        before: Before::Hold,
        on: What::Write,
        start: change,
        fails: LOST,
        cohort: true,
        ..PLAIN
    },
    Operation {
        name: "a section of a double barrier of one",
        start: |s| {
            shared(s, |client| drops(async move { client.double_barrier("of one", 1).enter().await?.leave().await }))
        },
        ..PLAIN
    },
    Operation { name: "resume", before: Before::Hold, start: resume, fails: LOST, leaves: true, ..PLAIN },
    Operation {
        name: "inspect of a read-write lock",
        on: What::Write,
        start: |s| shared(s, |client| drops(async move { client.rw_lock(NAME).inspect().await })),
        ..PLAIN
    },
    Operation {
        name: "force_release of a read-write lock",
        on: What::Write,
        start: |s| shared(s, |client| drops(async move { client.rw_lock(NAME).force_release(Whose::Everybody).await })),
        robs: true,
        ..PLAIN
    },
    Operation { name: "downgrade", before: Before::Hold, on: What::Write, start: change, fails: LOST, ..PLAIN },
    Operation { name: "try_upgrade", before: Before::Hold, on: What::Read, start: change, fails: LOST, ..PLAIN },
    Operation {
        name: "upgradable_read",
        on: What::Upgradable,
        start: |s| shared(s, |client| drops(async move { client.rw_lock(NAME).upgradable_read().await })),
        ..PLAIN
    },
    Operation { name: "upgrade", before: Before::Hold, on: What::Upgradable, start: change, fails: LOST, ..PLAIN },
    Operation {
        name: "upgrade beside a reader",
        on: What::Upgradable,
        start: |s| upgrade_beside_a_reader(s.client.clone().unwrap(), s.tracking.clone()).boxed(),
        fails: LOST,
        ..PLAIN
    },
    Operation {
        name: "release of a reader",
        before: Before::Hold,
        on: What::Read,
        start: |s| s.guard.take().and_then(Arc::into_inner).unwrap().release().boxed(),
        ..PLAIN
    },
    Operation {
        name: "acquire_many",
        on: What::Permits(2),
        start: |s| shared(s, |client| drops(What::Permits(2).acquire(client, NAME))),
        ..PLAIN
    },
    Operation {
        name: "try_acquire_all",
        on: What::Permits(2),
        start: |s| {
            shared(s, |client| drops(async move { client.semaphore(NAME, permits(NAME)).try_acquire_all().await }))
        },
        ..PLAIN
    },
    Operation {
        name: "parts, one after the other",
        on: What::Permits(2),
        start: |s| {
            shared(s, |client| {
                async move {
                    let mut permit = client.semaphore(NAME, permits(NAME)).acquire_many(2).await?;
                    let part = permit.split(1);
                    part.expect("one of two").release().await?;
                    permit.release().await
                }
                .boxed()
            })
        },
        fails: LOST,
        ..PLAIN
    },
    Operation {
        name: "parts, one of them dropped, in a cohort",
        on: What::Permits(2),
        start: |s| {
            shared(s, |client| {
                async move {
                    let semaphore = client.semaphore(NAME, permits(NAME));
                    let mut permit = semaphore.acquire_many(2).non_fair().await?;
                    drop(permit.split(1));
                    permit.release().await
                }
                .boxed()
            })
        },
        fails: LOST,
        cohort: true,
        ..PLAIN
    },
    Operation {
        name: "acquire, non_fair, in a cohort",
        on: What::Permits(1),
        start: |s| shared(s, |client| drops(What::Permits(1).acquire_in_cohort(client, NAME))),
        cohort: true,
        ..PLAIN
    },
    Operation {
        name: "close, with a cohort for permits",
        before: Before::Hold,
        on: What::Permits(1),
        start: close,
        cohort: true,
        closes: true,
        ..PLAIN
    },
    Operation {
        name: "set_limit",
        on: What::Permits(2),
        start: |s| shared(s, |client| drops(async move { client.semaphore(NAME, 1).set_limit(permits(NAME)).await })),
        limits: true,
        ..PLAIN
    },
    Operation {
        name: "force_release of permits",
        on: What::Permits(2),
        start: |s| {
            shared(s, |client| {
                drops(async move { client.semaphore(NAME, permits(NAME)).force_release(Whose::Everybody).await })
            })
        },
        robs: true,
        ..PLAIN
    },
    Operation {
        name: "inspect of a semaphore",
        on: What::Permits(2),
        start: |s| shared(s, |client| drops(async move { client.semaphore(NAME, permits(NAME)).inspect().await })),
        ..PLAIN
    },
    Operation { name: "close, holding", before: Before::Hold, start: close, closes: true, ..PLAIN },
    Operation {
        name: "close, with a cohort",
        start: close,
        companion: Some(Companion::First),
        cohort: true,
        closes: true,
        ..PLAIN
    },
    Operation { name: "close, waiting", start: close, companion: Some(Companion::First), closes: true, ..PLAIN },
];

fn with(
    subject: &Subject,
    start: fn(Lock, Holder) -> BoxFuture<'static, Result<()>>,
) -> BoxFuture<'static, Result<()>> {
    start(subject.lock(), subject.holder)
}

pub fn shared(
    subject: &Subject,
    start: fn(Client) -> BoxFuture<'static, Result<()>>,
) -> BoxFuture<'static, Result<()>> {
    start(subject.client.clone().unwrap())
}

/// The client leaves its hold, and takes it over.
fn resume(subject: &mut Subject) -> BoxFuture<'static, Result<()>> {
    let Some(Guard::Lock(guard)) = subject.guard.take().and_then(Arc::into_inner) else {
        unreachable!("it holds a lock")
    };
    let (lock, handle) = (subject.lock(), guard.into_handle());
    drops(async move { lock.resume(&handle?).await })
}

/// Another task of the client reads, and releases while the upgrade waits.
async fn upgrade_beside_a_reader(client: Client, executor: Arc<dyn Executor>) -> Result<()> {
    let lock = client.rw_lock(NAME);
    let (reads, plain) = (lock.upgradable_read().await?, lock.read().await?);
    let releasing = async {
        executor.sleep(20 * MS).await;
        plain.release().await
    };
    let (writes, released) = join(reads.upgrade(), releasing).await;
    released.and(writes.map(drop))
}

/// A writer goes on as a reader, a reader as a writer.
fn change(subject: &mut Subject) -> BoxFuture<'static, Result<()>> {
    match subject.guard.take().and_then(Arc::into_inner) {
        Some(Guard::Write(guard)) => drops(guard.downgrade()),
        Some(Guard::Read(guard)) => drops(guard.try_upgrade()),
        Some(Guard::Upgradable(guard)) => drops(guard.upgrade()),
        _ => unreachable!("it holds a read-write lock"),
    }
}

pub fn drops<T: 'static>(future: impl Future<Output = Result<T>> + Send + 'static) -> BoxFuture<'static, Result<()>> {
    future.map(|ended| ended.map(drop)).boxed()
}

/// The contended one is in the middle: one is held while it is waited for, and two come after it.
fn several(client: &Client) -> MultiLock {
    let semaphore = client.semaphore(NAME, permits(NAME));
    client.lock_all(["zulu", NAME, "another"]).permits(&semaphore, 1)
}

fn close(subject: &mut Subject) -> BoxFuture<'static, Result<()>> {
    let client = subject.client.clone().unwrap();
    async move {
        client.close().await;
        Ok(())
    }
    .boxed()
}

async fn section(lock: Lock) -> Result<()> {
    lock.lock().await?.release().await
}

/// Acquires twice for the holder of the scope.
async fn nested(lock: Lock) -> Result<()> {
    let outer = lock.lock().await?;
    let inner = lock.lock().await?;
    assert_eq!(outer.token(), inner.token());
    inner.release().await?;
    outer.release().await
}
