//! The runtime ends before the client does: what is left is released without it.
#![cfg(all(feature = "tokio", feature = "embedded"))]

use std::fmt;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use async_trait::async_trait;
use bowline::embedded::{EmbeddedConnection, Server};
use bowline::tokio::Tokio;
use bowline::{
    Call, Client, Config, ConfigBuilder, Connection, ConnectionError, ErrorKind, Executor, LockGuard, Loss, Notice,
    Reply, Topology,
};
use futures::FutureExt;
use futures::stream::BoxStream;
use tokio::runtime::{Builder, Runtime};

use crate::scene::ms;
use crate::support::adapters::bounded;

/// What the connection without a runtime does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parting {
    Works,
    /// Nothing is ever heard of a call, and the poll does not block.
    Hangs,
    Unreachable,
    /// There is none.
    Missing,
}

#[derive(Debug, Default)]
struct Seen {
    /// For how long a connection without a runtime was asked for.
    dialled: Vec<Duration>,
    /// What was called on one.
    calls: Vec<&'static str>,
    /// On the ordinary connection.
    cancels_hang: bool,
    /// Whether the ordinary connection is closed.
    closed: bool,
}

/// A connection to the embedded server on which cancels may hang, and which works without a runtime.
struct Departing {
    inner: EmbeddedConnection,
    server: Server,
    executor: Arc<dyn Executor>,
    parting: Parting,
    /// It is the one without a runtime.
    parted: bool,
    seen: Arc<Mutex<Seen>>,
}

impl fmt::Debug for Departing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Departing")
    }
}

#[async_trait]
impl Connection for Departing {
    fn inner(&self) -> Option<&dyn Connection> {
        Some(&self.inner)
    }

    async fn run(&self, call: Call<'_>) -> Result<Reply, ConnectionError> {
        if self.parted {
            self.seen.lock().unwrap().calls.push(call.script.name());
            match self.parting {
                Parting::Hangs => std::future::pending().await,
                Parting::Unreachable => return Err(ConnectionError::Unreachable("by the test".to_owned())),
                Parting::Works | Parting::Missing => {}
            }
        } else if call.script.name() == "lock_cancel" && self.seen.lock().unwrap().cancels_hang {
            std::future::pending::<()>().await;
        }
        self.inner.run(call).await
    }

    async fn run_batch(&self, calls: &[Call<'_>]) -> Vec<Result<Reply, ConnectionError>> {
        self.inner.run_batch(calls).await
    }

    async fn subscribe(&self, channel: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        self.inner.subscribe(channel).await
    }

    fn topology(&self) -> Topology {
        self.inner.topology()
    }

    fn without_runtime(&self, within: Duration) -> Option<Box<dyn Connection>> {
        let mut seen = self.seen.lock().unwrap();
        // Else a request that comes after the good-bye would be executed.
        assert!(seen.closed, "the good-bye begins while requests may still be sent");
        seen.dialled.push(within);
        drop(seen);
        let inner = self.server.connect(self.executor.clone());
        let (server, executor, seen) = (self.server.clone(), self.executor.clone(), self.seen.clone());
        let parted = Self { inner, server, executor, parting: self.parting, parted: true, seen };
        (self.parting != Parting::Missing).then(|| Box::new(parted) as _)
    }

    fn close(&self) {
        self.inner.close();
        self.seen.lock().unwrap().closed |= !self.parted;
    }
}

struct Scene {
    runtime: Option<Runtime>,
    server: Server,
    client: Client,
    seen: Arc<Mutex<Seen>>,
}

fn scene(parting: Parting, configure: impl FnOnce(ConfigBuilder) -> ConfigBuilder) -> Scene {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (server, seen) = (Server::new(), Arc::<Mutex<Seen>>::default());
    let executor = Arc::new(Tokio::new(runtime.handle().clone()));
    let inner = server.connect(executor.clone());
    let connection = Departing {
        inner,
        server: server.clone(),
        executor: executor.clone(),
        parting,
        parted: false,
        seen: seen.clone(),
    };
    let config = configure(Config::builder()).build().unwrap();
    let client = runtime.block_on(Client::connect(executor, Arc::new(connection), config)).unwrap();
    Scene { runtime: Some(runtime), server, client, seen }
}

impl Scene {
    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.as_ref().unwrap().block_on(future)
    }

    fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        drop(self.runtime.as_ref().unwrap().spawn(future));
    }

    fn acquire_many(&self, n: u32) -> Vec<LockGuard> {
        self.block_on(async {
            let mut guards = Vec::new();
            for n in 0..n {
                guards.push(self.client.lock(&n.to_string()).lock().await.unwrap());
            }
            guards
        })
    }

    /// Ends the runtime, as the end of `main` does.
    fn end(&mut self) {
        drop(self.runtime.take());
    }

    fn keys(&self) -> Vec<String> {
        let keys = self.server.dump().into_keys().map(|key| String::from_utf8(key).unwrap());
        keys.filter(|key| !key.ends_with(":fence")).collect()
    }

    fn until(&self, what: &str, condition: impl Fn() -> bool) {
        for _ in 0..5_000 {
            if condition() {
                return;
            }
            thread::sleep(ms(2));
        }
        panic!("not within 10 s: {what}");
    }

    /// The runtime has ended, and nothing is left.
    fn next_run_acquires_at_once(&self) {
        assert_eq!(self.keys(), [] as [&str; 0]);
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let executor = Arc::new(Tokio::current().unwrap());
            let connection = self.server.connect(executor.clone());
            let next = Client::connect(executor, Arc::new(connection), Config::default()).await.unwrap();
            let guard = next.lock("a").try_lock().await.unwrap().expect("it is free");
            guard.release().await.unwrap();
            next.close().await;
        });
    }
}

#[test]
fn a_guard_that_is_alive_at_the_end_is_released() {
    bounded(|| {
        let mut scene = scene(Parting::Works, |config| config);
        let guard = scene.block_on(scene.client.lock("a").lock().into_future()).unwrap();
        let permit = scene.block_on(scene.client.semaphore("b", 3).acquire_many(2).into_future()).unwrap();
        scene.end();
        assert_eq!(futures::executor::block_on(guard.lost()), Loss::Closed);
        assert!(!permit.is_valid());
        assert_eq!(scene.seen.lock().unwrap().dialled, [ms(1000)]);
        assert_eq!(scene.seen.lock().unwrap().calls, ["lock_cancel", "permit_cancel"]);
        scene.next_run_acquires_at_once();
        assert_eq!(futures::executor::block_on(guard.release()).unwrap_err().kind(), ErrorKind::Lost);
    });
}

#[test]
fn those_who_wait_and_what_is_being_cleaned_up_go_too() {
    bounded(|| {
        let mut scene = scene(Parting::Works, |config| config);
        let guard = scene.block_on(scene.client.lock("a").lock().into_future()).unwrap();
        for _ in 0..3 {
            let lock = scene.client.lock("a");
            scene.spawn(async move { drop(lock.lock().await) });
        }
        let lock = scene.client.lock("a");
        scene.until("all wait", || scene.block_on(lock.inspect()).unwrap().waiters == 3);
        // The call is under way and not answered.
        scene.seen.lock().unwrap().cancels_hang = true;
        drop(scene.block_on(scene.client.lock("b").lock().into_future()).unwrap());
        assert!(scene.keys().contains(&"bowline:lock:{b}".to_owned()));
        scene.end();
        assert_eq!(scene.seen.lock().unwrap().calls.len(), 5);
        scene.next_run_acquires_at_once();
        drop(guard);
    });
}

/// Sent or not, it is finished.
#[test]
fn a_release_that_is_cut_off_is_finished() {
    bounded(|| {
        let mut scene = scene(Parting::Works, |config| config);
        let guard = scene.block_on(scene.client.lock("a").lock().into_future()).unwrap();
        let mut release = Box::pin(guard.release());
        assert!(release.poll_unpin(&mut Context::from_waker(Waker::noop())).is_pending());
        scene.end();
        assert_eq!(scene.seen.lock().unwrap().calls, ["lock_cancel"]);
        scene.next_run_acquires_at_once();
        drop(release);
    });
}

#[test]
fn a_thousand_guards_are_released() {
    bounded(|| {
        let mut scene = scene(Parting::Works, |config| config.shutdown_timeout(ms(10_000)));
        let guards = scene.acquire_many(1000);
        scene.end();
        assert_eq!(scene.seen.lock().unwrap().calls.len(), 1000);
        assert_eq!(scene.keys(), [] as [&str; 0]);
        drop(guards);
    });
}

#[test]
fn nothing_is_dialled_when_there_is_nothing_to_say() {
    bounded(|| {
        let mut idle = scene(Parting::Works, |config| config);
        let guard = idle.block_on(idle.client.lock("a").lock().into_future()).unwrap();
        idle.block_on(guard.release()).unwrap();
        idle.end();
        let mut closed = scene(Parting::Works, |config| config);
        let guard = closed.block_on(closed.client.lock("a").lock().into_future()).unwrap();
        closed.block_on(closed.client.close());
        closed.end();
        let mut off = scene(Parting::Works, |config| config.shutdown_timeout(Duration::ZERO));
        let kept = off.block_on(off.client.lock("a").lock().into_future()).unwrap();
        off.end();
        for scene in [&idle, &closed, &off] {
            assert_eq!(scene.seen.lock().unwrap().dialled, [] as [Duration; 0]);
        }
        assert_eq!(off.keys(), ["bowline:lock:{a}"], "it ends with its lease");
        assert!(!kept.is_valid());
        drop((guard, kept));
    });
}

/// The loss is told, and the runtime ends, whatever becomes of the good-bye.
#[test]
fn a_good_bye_that_fails_ends_too() {
    bounded(|| {
        for (parting, calls) in [(Parting::Hangs, 256), (Parting::Unreachable, 256), (Parting::Missing, 0)] {
            let mut scene = scene(parting, |config| config.shutdown_timeout(ms(100)));
            let guards = scene.acquire_many(300);
            scene.end();
            assert!(guards.iter().all(|guard| !guard.is_valid()));
            assert_eq!(scene.seen.lock().unwrap().calls.len(), calls, "{parting:?}");
            assert_eq!(scene.keys().len(), 300);
        }
    });
}

/// As a program that returns from `main` with its guards alive, on a real server.
#[test]
fn the_next_run_of_a_program_finds_everything_free() {
    let multi = || Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let current = || Builder::new_current_thread().enable_all().build().unwrap();
    let runtimes: [fn() -> Runtime; 2] = [multi, current];
    bounded(move || {
        let server = crate::support::server::Server::start();
        for runtime in runtimes {
            // The second run starts from the state that the first one has left.
            for _ in 0..2 {
                let runtime = runtime();
                let config = Config::builder().shutdown_timeout(ms(5000)).build().unwrap();
                let guards = runtime.block_on(async {
                    let client = bowline::tokio::connect_with(&server.url(), config).await.unwrap();
                    let lock = client.lock("a").try_lock().await.unwrap().expect("it is free");
                    let writing = client.rw_lock("a").try_write().await.unwrap().expect("it is free");
                    let permit = client.semaphore("a", 2).try_acquire_many(2).await.unwrap().expect("all are there");
                    for n in 0..6 {
                        let lock = client.lock("a");
                        let waits = async move {
                            drop(if n % 2 == 0 { lock.lock().await } else { lock.lock().non_fair().await })
                        };
                        drop(tokio::spawn(waits));
                    }
                    while client.lock("a").inspect().await.unwrap().waiters < 4 {
                        tokio::time::sleep(ms(2)).await;
                    }
                    (client, lock, writing, permit)
                });
                drop(runtime);
                let keys: Vec<_> = server.keys().into_iter().filter(|key| !key.ends_with(":fence")).collect();
                assert_eq!(keys, [] as [&str; 0]);
                drop(guards);
            }
        }
    });
}
