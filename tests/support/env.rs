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

use std::any::Any;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use bowline::{Client, Config, ConfigBuilder, Connection, Executor, RedisConnection, Reply};
use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::BoxFuture;

pub use super::counted::{Counting, Counts, TestClient};
pub(crate) use super::rows::{on_every_runtime, on_the_embedded_server};
pub use super::run::{Runtime, run, run_embedded};
use super::server::Server;
use super::tracking::Tracking;

/// How long tasks, timers and keys may stay after the test has dropped everything, and the default of
/// [`Env::eventually`].
const DEADLINE: Duration = Duration::from_secs(10);

/// On every runtime, with a real server and with the embedded one; after a `;`, tests that need the real one.
macro_rules! on_every_server {
    ($($test:ident),+ $(,)? $(; $($real:ident),+ $(,)?)?) => {
        $crate::support::env::on_every_runtime! { $($test),+ $(, $($real),+)? }
        $crate::support::env::on_the_embedded_server! { $($test),+ }
    };
}

/// A module of tests on one runtime.
macro_rules! on_runtime {
    ($run:ident, $module:ident, $runtime:ident, $($test:ident),+) => {
        mod $module {
            $(
                #[test]
                fn $test() {
                    $crate::support::env::$run($crate::support::env::Runtime::$runtime, super::$test);
                }
            )+
        }
    };
}

pub(crate) use {on_every_server, on_runtime};

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
    /// In place of a real one.
    embedded: Option<bowline::embedded::Server>,
    leaves_keys: AtomicBool,
    /// Panics of tasks that nobody waited for.
    panics: Mutex<Vec<String>>,
}

impl Inner {
    pub fn new(runtime: Runtime, executor: Arc<dyn Executor>) -> Self {
        Self {
            runtime,
            tracking: Arc::new(Tracking::new(executor.clone())),
            executor,
            server_args: Mutex::default(),
            server: Mutex::default(),
            embedded: None,
            leaves_keys: AtomicBool::new(false),
            panics: Mutex::default(),
        }
    }

    /// Everything on the server, if there is one yet.
    fn all_keys(&self) -> Vec<String> {
        if let Some(embedded) = &self.embedded {
            let dump = embedded.dump();
            assert!(dump.values().all(|entry| entry.expires.is_some()), "a key without a TTL: {dump:?}");
            return dump.into_keys().map(|key| String::from_utf8(key).unwrap()).collect();
        }
        lock(&self.server).as_ref().map_or_else(Vec::new, Server::keys)
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
        let mut guard = lock(&self.inner.server);
        if guard.is_none() {
            let args = lock(&self.inner.server_args).clone();
            *guard = Some(Server::start_with(&args.iter().map(String::as_str).collect::<Vec<_>>()));
        }
        ServerRef(guard)
    }

    pub fn url(&self) -> String {
        self.server().url()
    }

    /// Keys on the server, without the counters of the fencing tokens.
    pub fn keys(&self) -> Vec<String> {
        let mut keys = self.inner.all_keys();
        keys.retain(|key| !key.ends_with(":fence"));
        keys
    }

    /// How many subscriptions a channel has, as a `PUBLISH` counts them.
    pub fn listeners(&self, channel: &str) -> i64 {
        #[cfg(feature = "embedded")]
        if let Some(embedded) = &self.inner.embedded {
            let published = embedded.eval("return redis.call('PUBLISH', ARGV[1], '?')", &[], &[channel.as_bytes()]);
            let Ok(Reply::Integer(listeners)) = published else { panic!("PUBLISH: {published:?}") };
            return listeners;
        }
        self.redis(&["PUBLISH", channel, "?"])
    }

    /// Runs one command on the server, past everything that is tested.
    pub fn redis<T: redis::FromRedisValue>(&self, command: &[&str]) -> T {
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

    pub async fn sleep(&self, duration: Duration) {
        self.inner.tracking.sleep(duration).await;
    }

    /// Lets other tasks run.
    pub async fn yield_now(&self) {
        let mut yielded = false;
        std::future::poll_fn(|context| {
            if yielded {
                return Poll::Ready(());
            }
            yielded = true;
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    /// Runs `future` as a task of its own. A panic in it is raised where its result is awaited, or else at the end.
    pub fn spawn<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> BoxFuture<'static, T> {
        let (done, output) = oneshot::channel();
        let inner = self.inner.clone();
        self.inner.tracking.spawn(Box::pin(async move {
            let ended = AssertUnwindSafe(future).catch_unwind().await;
            if let Err(Err(panic)) = done.send(ended) {
                lock(&inner.panics).push(message(&*panic));
            }
        }));
        Box::pin(async move {
            match output.await {
                Ok(Ok(output)) => output,
                Ok(Err(panic)) => resume_unwind(panic),
                Err(oneshot::Canceled) => panic!("the task was dropped by its executor"),
            }
        })
    }

    /// Waits until `condition` holds, asking again and again: for what has no event, such as the state of the server.
    pub async fn eventually(&self, what: &str, condition: impl AsyncFnMut() -> bool) {
        self.eventually_within(DEADLINE, what, condition).await;
    }

    /// As [`eventually`](Self::eventually), with another deadline.
    pub async fn eventually_within(&self, deadline: Duration, what: &str, mut condition: impl AsyncFnMut() -> bool) {
        let start = self.now();
        let mut pause = Duration::from_millis(1);
        while !condition().await {
            assert!(self.now() - start < deadline, "not within {deadline:?}: {what}");
            self.inner.executor.sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }

    /// `future`, or a panic when it takes longer than any deadline of a test should.
    pub async fn soon<F: IntoFuture>(&self, what: &str, future: F) -> F::Output {
        let future = std::pin::pin!(future.into_future());
        match futures::future::select(future, self.inner.executor.sleep(DEADLINE)).await {
            futures::future::Either::Left((output, _)) => output,
            futures::future::Either::Right(_) => panic!("not within {DEADLINE:?}: {what}"),
        }
    }

    /// A client with a command timeout of 2 s and a patience of 5 s, whose user has no more rights than docs/acl.md names.
    pub async fn client(&self) -> TestClient {
        self.client_with(|config| config).await
    }

    pub async fn client_with(&self, configure: impl FnOnce(ConfigBuilder) -> ConfigBuilder) -> TestClient {
        self.client_of(Server::user_url, configure).await
    }

    /// A client whose user may do everything.
    pub async fn client_with_all_rights(&self, configure: impl FnOnce(ConfigBuilder) -> ConfigBuilder) -> TestClient {
        self.client_of(Server::url, configure).await
    }

    async fn client_of(
        &self,
        url: impl FnOnce(&Server) -> String,
        configure: impl FnOnce(ConfigBuilder) -> ConfigBuilder,
    ) -> TestClient {
        if let Some(embedded) = &self.inner.embedded {
            let config = configure(test_config()).build().unwrap();
            return self.client_over(embedded.connect(self.executor()), config).await.unwrap();
        }
        let url = url(&self.server());
        self.client_at(&url, configure).await.unwrap()
    }

    /// A client of another address, such as a proxy's.
    pub async fn client_at(
        &self,
        url: &str,
        configure: impl FnOnce(ConfigBuilder) -> ConfigBuilder,
    ) -> bowline::Result<TestClient> {
        let config = configure(test_config()).build()?;
        self.client_over(self.open(url, &config).await?, config).await
    }

    /// A connection that is not counted, to whichever server this is.
    pub async fn connection(&self, config: &Config) -> Arc<dyn Connection> {
        #[cfg(feature = "embedded")]
        if let Some(embedded) = &self.inner.embedded {
            return Arc::new(embedded.connect(self.executor()));
        }
        let url = self.url();
        Arc::new(self.open(&url, config).await.unwrap())
    }

    async fn client_over(&self, inner: impl Connection, config: Config) -> bowline::Result<TestClient> {
        let counts = Arc::new(Counts::default());
        let connection = Counting { inner, counts: counts.clone() };
        let client = Client::new(self.executor(), Arc::new(connection), config).await?;
        counts.reset();
        Ok(TestClient { client, counts })
    }

    /// A bare connection, on the sockets of the runtime.
    pub async fn open(&self, url: &str, config: &Config) -> bowline::Result<RedisConnection> {
        match self.inner.runtime {
            #[cfg(feature = "tokio")]
            Runtime::TokioMulti | Runtime::TokioCurrent => bowline::tokio::open(self.executor(), url, config).await,
            #[cfg(feature = "smol")]
            Runtime::Smol => bowline::smol::open(self.executor(), url, config).await,
            #[cfg(feature = "async-std")]
            Runtime::AsyncStd => bowline::async_std::open(self.executor(), url, config).await,
        }
    }

    /// Tasks and timers that are alive.
    pub fn live(&self) -> (usize, usize) {
        self.inner.tracking.live()
    }

    /// Waits for the tasks and timers; then the keys must be gone too, for nobody is left to remove them.
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
}

fn test_config() -> ConfigBuilder {
    Config::builder().command_timeout(Duration::from_secs(2)).patience(Duration::from_secs(5))
}

struct ServerRef<'a>(MutexGuard<'a, Option<Server>>);

impl Deref for ServerRef<'_> {
    type Target = Server;

    fn deref(&self) -> &Server {
        self.0.as_ref().unwrap()
    }
}

impl DerefMut for ServerRef<'_> {
    fn deref_mut(&mut self) -> &mut Server {
        self.0.as_mut().unwrap()
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a message".to_owned())
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
