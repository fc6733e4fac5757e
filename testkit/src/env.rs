//! One test body on every runtime, each run with a server of its own, and with everything counted that must not stay:
//! tasks, timers, keys.
//!
//! ```ignore
//! async fn a_lock_is_free_again(env: Env) {
//!     let client = env.client().await;
//!     client.lock("a").lock().await.unwrap().release().await.unwrap();
//!     assert_eq!(client.counts.total(), 2);
//! }
//! on_every_runtime! { a_lock_is_free_again }
//! ```

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bowline::{Executor, Reply};

pub use super::counted::{Counting, Counts, TestClient};
use super::deployment::{self, Deployment};
use super::memory::{is_forever, is_memory};
pub use super::run::{Runtime, run, run_embedded};
use super::server::Server;
use super::tracking::Tracking;

mod application;
mod clients;
mod tasks;

/// How long tasks, timers and keys may stay after the test has dropped everything, and the default of
/// [`Env::eventually`].
const DEADLINE: Duration = Duration::from_secs(10);

/// On every runtime, with a real server and with the embedded one; after a `;`, tests that need the real one.
#[macro_export]
macro_rules! on_every_server {
    ($($test:ident),+ $(,)? $(; $($real:ident),+ $(,)?)?) => {
        $crate::env::on_every_runtime! { $($test),+ $(, $($real),+)? }
        $crate::env::on_the_embedded_server! { $($test),+ }
    };
}

/// A module of tests on one runtime.
#[macro_export]
macro_rules! on_runtime {
    ($run:ident, $module:ident, $runtime:ident, $($test:ident),+) => {
        mod $module {
            $(
                #[test]
                fn $test() {
                    $crate::env::$run($crate::env::Runtime::$runtime, super::$test);
                }
            )+
        }
    };
}

pub use crate::{on_every_runtime, on_every_server, on_runtime, on_the_embedded_server};

/// What a test runs in: a runtime, a server, and clients between them. Clones are the same environment.
#[derive(Clone)]
pub struct Env {
    inner: Arc<Inner>,
}

struct Inner {
    runtime: Runtime,
    /// Not counted: for the harness.
    executor: Arc<dyn Executor>,
    tracking: Arc<Tracking>,
    server_args: Mutex<Vec<String>>,
    /// Started when it is first needed.
    server: Mutex<Option<Server>>,
    /// In its place, if one is wanted.
    deployment: Mutex<Option<Deployment>>,
    /// In place of a real one.
    embedded: Option<bowline::embedded::Server>,
    leaves_keys: AtomicBool,
    /// Panics of tasks that were not awaited.
    panics: Mutex<Vec<String>>,
}

impl Inner {
    fn new(runtime: Runtime, executor: Arc<dyn Executor>) -> Self {
        Self {
            runtime,
            tracking: Arc::new(Tracking::new(executor.clone())),
            executor,
            server_args: Mutex::default(),
            server: Mutex::default(),
            deployment: Mutex::default(),
            embedded: None,
            leaves_keys: AtomicBool::new(false),
            panics: Mutex::default(),
        }
    }

    /// Everything on the server, if there is one yet.
    fn all_keys(&self) -> Vec<String> {
        if let Some(embedded) = &self.embedded {
            let dump = embedded.dump();
            let may_stay = |key: &[u8]| std::str::from_utf8(key).is_ok_and(is_forever);
            let ends = dump.iter().all(|(key, entry)| entry.expires.is_some() || may_stay(key));
            assert!(ends, "a key without a TTL: {dump:?}");
            return dump.into_keys().map(|key| String::from_utf8(key).unwrap()).collect();
        }
        let deployment = lock(&self.deployment).as_ref().map(Deployment::keys);
        deployment.or_else(|| lock(&self.server).as_ref().map(Server::keys)).unwrap_or_default()
    }
}

impl Env {
    pub fn new(runtime: Runtime, executor: Arc<dyn Executor>) -> Self {
        Self { inner: Arc::new(Inner::new(runtime, executor)) }
    }

    pub(super) fn new_embedded(runtime: Runtime, executor: Arc<dyn Executor>) -> Self {
        let embedded = Some(bowline::embedded::Server::new());
        Self { inner: Arc::new(Inner { embedded, ..Inner::new(runtime, executor) }) }
    }

    /// The server of a test that runs on the embedded one.
    pub fn embedded(&self) -> &bowline::embedded::Server {
        self.inner.embedded.as_ref().expect("the test runs on the embedded server")
    }

    pub fn is_embedded(&self) -> bool {
        self.inner.embedded.is_some()
    }

    /// Further arguments for the server. To be called before anything needs it.
    pub fn with_server_args(self, args: &[&str]) -> Self {
        assert!(lock(&self.inner.server).is_none(), "the server runs already");
        lock(&self.inner.server_args).extend(args.iter().map(|arg| (*arg).to_owned()));
        self
    }

    /// The test leaves keys behind on purpose, such as those of a server that is dead at the end.
    pub fn leaves_keys(&self) {
        self.inner.leaves_keys.store(true, Ordering::SeqCst);
    }

    pub fn runtime(&self) -> Runtime {
        self.inner.runtime
    }

    /// The server of this test. Not to be held across an await.
    pub fn server(&self) -> impl DerefMut<Target = Server> + '_ {
        assert!(!deployment::is_wanted(), "the test needs a server of its own");
        let mut guard = lock(&self.inner.server);
        if guard.is_none() {
            let args = lock(&self.inner.server_args).clone();
            *guard = Some(Server::start_with(&args.iter().map(String::as_str).collect::<Vec<_>>()));
        }
        Ref(guard)
    }

    /// The deployment of this test. Not to be held across an await.
    pub(super) fn deployment(&self) -> impl DerefMut<Target = Deployment> + '_ {
        let mut guard = lock(&self.inner.deployment);
        guard.get_or_insert_with(Deployment::take);
        Ref(guard)
    }

    pub fn url(&self) -> String {
        if deployment::is_wanted() { self.deployment().url() } else { self.server().url() }
    }

    /// Exempts a key that the test creates without a TTL on purpose. To be called before it is created.
    pub fn allow_forever(&self, key: &str) {
        if deployment::is_wanted() { self.deployment().allow_forever(key) } else { self.server().allow_forever(key) }
    }

    /// `PTTL`: -1 has no TTL, -2 does not exist.
    pub fn ttl_ms(&self, key: &str) -> i64 {
        if deployment::is_wanted() { self.deployment().ttl_ms(key) } else { self.server().ttl_ms(key) }
    }

    /// Keys on the server, without those that [remember](super::memory::is_memory) the past.
    pub fn keys(&self) -> Vec<String> {
        let mut keys = self.inner.all_keys();
        keys.retain(|key| !is_memory(key));
        keys
    }

    /// How many subscriptions a channel has: on one server as a `PUBLISH` counts them, otherwise those at all servers.
    pub fn listeners(&self, channel: &str) -> i64 {
        if let Some(embedded) = &self.inner.embedded {
            let published = embedded.eval("return redis.call('PUBLISH', ARGV[1], '?')", &[], &[channel.as_bytes()]);
            let Ok(Reply::Integer(listeners)) = published else { panic!("PUBLISH: {published:?}") };
            return listeners;
        }
        if deployment::is_wanted() {
            return self.deployment().listeners(channel);
        }
        self.redis(&["PUBLISH", channel, "?"])
    }

    /// Runs one command on the server, past everything that is tested.
    pub fn redis<T: redis::FromRedisValue>(&self, command: &[&str]) -> T {
        if deployment::is_wanted() {
            return self.deployment().run(command);
        }
        let mut client = self.server().client();
        redis::cmd(command[0]).arg(&command[1..]).query(&mut client).unwrap()
    }

    /// Counts what is alive of all that was spawned and slept on it.
    pub fn executor(&self) -> Arc<dyn Executor> {
        self.inner.tracking.clone()
    }

    pub fn now(&self) -> Instant {
        self.inner.executor.now()
    }

    /// Tasks and timers that are alive.
    pub fn live(&self) -> (usize, usize) {
        self.inner.tracking.live()
    }

    /// Timers set so far.
    pub fn timers_set(&self) -> usize {
        self.inner.tracking.timers_set()
    }

    /// Waits for the tasks and timers; then the keys must be gone, too, because nothing is left to remove them.
    pub(super) async fn nothing_is_left(&self) {
        let start = self.now();
        loop {
            let (tasks, sleeps) = self.live();
            if (tasks, sleeps) == (0, 0) {
                break;
            }
            assert!(self.now() - start < DEADLINE, "left after {DEADLINE:?}: {tasks} tasks, {sleeps} timers");
            self.inner.executor.sleep(Duration::from_millis(2)).await;
        }
        let panics = std::mem::take(&mut *lock(&self.inner.panics));
        assert!(panics.is_empty(), "tasks panicked: {panics:?}");
        if !self.inner.leaves_keys.load(Ordering::SeqCst) {
            let keys = self.keys();
            assert!(keys.is_empty(), "left on the server: {keys:?}");
        }
    }

    pub(super) fn take_server(&self) -> Option<Server> {
        lock(&self.inner.server).take()
    }

    pub(super) fn take_deployment(&self) -> Option<Deployment> {
        lock(&self.inner.deployment).take()
    }
}

struct Ref<'a, T>(MutexGuard<'a, Option<T>>);

impl<T> Deref for Ref<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().unwrap()
    }
}

impl<T> DerefMut for Ref<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().unwrap()
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
