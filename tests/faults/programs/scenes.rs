//! What a program holds, waits for and cleans up when it ends.

use std::any::Any;
use std::task::{Context, Waker};
use std::time::Duration;

use bowline::{Client, RedLock};
use futures::FutureExt;
use futures::future::BoxFuture;

/// Dropped last first, as local variables are.
#[derive(Default)]
pub(crate) struct Things(Vec<Box<dyn Any + Send>>);

impl Things {
    fn add(&mut self, thing: impl Any + Send) {
        self.0.push(Box::new(thing));
    }
}

impl Drop for Things {
    fn drop(&mut self) {
        while let Some(thing) = self.0.pop() {
            drop(thing);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scene {
    Lock,
    Writer,
    Reader,
    Permits,
    /// Several names at once.
    All,
    RedLock,
    /// Tasks of two clients wait behind a hold.
    Waiters,
    /// Tasks that are not fair wait behind a hold that is handed off.
    Cohort,
    /// Tasks wait for a latch.
    Latch,
    /// Guards have just been dropped, and waits given up.
    CleanUp,
    /// Tasks acquire and release all the time.
    Acquiring,
    /// Releases are under way.
    Releasing,
    /// A downgrade and an upgrade are under way.
    Changing,
}

impl Scene {
    const ALL: [Self; 13] = [
        Self::Lock,
        Self::Writer,
        Self::Reader,
        Self::Permits,
        Self::All,
        Self::RedLock,
        Self::Waiters,
        Self::Cohort,
        Self::Latch,
        Self::CleanUp,
        Self::Acquiring,
        Self::Releasing,
        Self::Changing,
    ];

    pub(crate) fn name(self) -> String {
        format!("{self:?}")
    }

    pub(crate) fn named(name: &str) -> Self {
        Self::ALL.into_iter().find(|scene| scene.name() == name).unwrap()
    }

    pub(crate) fn servers(self) -> usize {
        match self {
            Self::RedLock => 3,
            _ => 1,
        }
    }

    /// Acquires what the program has when it ends. A name that an earlier run has left behind fails it.
    pub(crate) async fn set_up(self, clients: Vec<Client>, name: &str) -> Things {
        let mut things = Things::default();
        let client = &clients[0];
        match self {
            Self::Lock => things.add(client.lock(name).try_lock().await.unwrap().expect("it is free")),
            Self::Writer => things.add(client.rw_lock(name).try_write().await.unwrap().expect("it is free")),
            Self::Reader => {
                things.add(client.rw_lock(name).try_read().await.unwrap().expect("it is free"));
                things.add(client.rw_lock(name).try_read().await.unwrap().expect("it is free"));
            }
            Self::Permits => {
                things.add(client.semaphore(name, 3).try_acquire_many(2).await.unwrap().expect("it is free"));
            }
            Self::All => {
                let names = ["a", "b", "c"].map(|more| format!("{name}}}{more}"));
                things.add(client.lock_all(names.each_ref().map(String::as_str)).acquire().await.unwrap());
            }
            Self::RedLock => {
                let locks = RedLock::builder(clients.clone()).durable(true).build().unwrap();
                things.add(locks.lock(name).await.unwrap());
                let waiting = locks.lock(name);
                spawn(client, async move { drop(waiting.await) });
                things.add(locks);
            }
            Self::Waiters => {
                things.add(client.lock(name).try_lock().await.unwrap().expect("it is free"));
                things.add(client.semaphore(name, 1).try_acquire().await.unwrap().expect("it is free"));
                for n in 0..6 {
                    let (lock, permits) = (client.lock(name), client.semaphore(name, 1));
                    match n % 3 {
                        0 => spawn(client, async move { drop(lock.lock().await) }),
                        1 => spawn(client, async move { drop(lock.lock().non_fair().await) }),
                        _ => spawn(client, async move { drop(permits.acquire().await) }),
                    }
                }
                while client.lock(name).inspect().await.unwrap().waiters < 3 {
                    client.executor().sleep(Duration::from_millis(1)).await;
                }
            }
            Self::Cohort => {
                things.add(client.lock(name).lock().non_fair().await.unwrap());
                for _ in 0..8 {
                    let lock = client.lock(name);
                    spawn(client, async move {
                        while let Ok(guard) = lock.lock().non_fair().await {
                            drop(guard);
                        }
                    });
                }
            }
            Self::Latch => {
                let latch = client.latch(name);
                latch.try_set(1, Duration::from_secs(600)).await.unwrap();
                for _ in 0..3 {
                    let latch = client.latch(name);
                    spawn(client, async move { drop(latch.wait().await) });
                }
                while latch.inspect().await.unwrap().waiters < 3 {
                    client.executor().sleep(Duration::from_millis(1)).await;
                }
            }
            Self::CleanUp => {
                let guard = client.lock(name).try_lock().await.unwrap().expect("it is free");
                let permit = client.semaphore(name, 1).try_acquire().await.unwrap().expect("it is free");
                let mut waits: Vec<BoxFuture<'static, ()>> = Vec::new();
                for n in 0..6 {
                    let (lock, permits) = (client.lock(name), client.semaphore(name, 1));
                    let mut wait = match n % 3 {
                        0 => async move { drop(lock.lock().await) }.boxed(),
                        1 => async move { drop(lock.lock().non_fair().await) }.boxed(),
                        _ => async move { drop(permits.acquire().await) }.boxed(),
                    };
                    poll_once(&mut wait);
                    waits.push(wait);
                }
                drop((guard, permit));
                things.add(waits);
            }
            Self::Acquiring => {
                for n in 0..6 {
                    let (lock, permits) = (client.lock(name), client.semaphore(name, 2));
                    spawn(client, async move {
                        loop {
                            let ended = match n % 3 {
                                0 => lock.lock().await.map(drop).is_err(),
                                1 => lock.lock().non_fair().await.map(drop).is_err(),
                                _ => permits.acquire().await.map(drop).is_err(),
                            };
                            if ended {
                                return;
                            }
                        }
                    });
                }
                // At any point of it.
                let turns = name.parse::<u32>().unwrap() % 7;
                for _ in 0..turns {
                    drop(client.lock(name).lock().await.unwrap());
                }
            }
            Self::Releasing => {
                let guard = client.lock(name).try_lock().await.unwrap().expect("it is free");
                let permit = client.semaphore(name, 1).try_acquire().await.unwrap().expect("it is free");
                let mut releases = [guard.release().map(drop).boxed(), permit.release().map(drop).boxed()];
                releases.iter_mut().for_each(poll_once);
                things.add(releases);
            }
            Self::Changing => {
                let (down, up) = (client.rw_lock(&format!("{name}}}a")), client.rw_lock(&format!("{name}}}b")));
                let writer = down.try_write().await.unwrap().expect("it is free");
                let reader = up.try_read().await.unwrap().expect("it is free");
                let mut changes = [writer.downgrade().map(|_| ()).boxed(), reader.try_upgrade().map(|_| ()).boxed()];
                changes.iter_mut().for_each(poll_once);
                things.add(changes);
            }
        }
        // Behind everything else, so that it is dropped first: a client that outlives its guards must not be needed.
        things.0.insert(0, Box::new(clients));
        things
    }
}

impl Scene {
    /// The same for blocking code. The guards are locals of `main` in it, and none can be sent to another thread.
    #[cfg(feature = "blocking")]
    pub(crate) fn set_up_blocking(self, client: &bowline::blocking::Client, name: &str) -> Box<dyn Any> {
        match self {
            Self::Lock => Box::new(client.lock(name).try_lock().block().unwrap().expect("it is free")),
            Self::Writer => Box::new(client.rw_lock(name).try_write().block().unwrap().expect("it is free")),
            Self::Reader => Box::new([(); 2].map(|()| client.rw_lock(name).try_read().block().unwrap().expect("free"))),
            Self::Permits => {
                Box::new(client.semaphore(name, 3).try_acquire_many(2).block().unwrap().expect("it is free"))
            }
            Self::All => Box::new(client.lock_all([&format!("{name}}}a"), name]).acquire().block().unwrap()),
            other => panic!("{other:?} needs tasks"),
        }
    }
}

fn spawn(client: &Client, task: impl Future<Output = ()> + Send + 'static) {
    client.executor().spawn(Box::pin(task));
}

/// The request is on its way then.
fn poll_once(future: &mut BoxFuture<'static, ()>) {
    let _ = future.poll_unpin(&mut Context::from_waker(Waker::noop()));
}
