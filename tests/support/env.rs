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
use std::collections::BTreeMap;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bowline::{
    Call, Client, Config, ConfigBuilder, Connection, ConnectionError, Executor, Notice, RedisConnection, Reply,
    Topology, Warning,
};
use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::BoxFuture;
use futures::stream::BoxStream;

pub(crate) use super::rows::{on_every_runtime, on_the_embedded_server};
use super::server::Server;
use super::tracking::Tracking;

/// No test may take longer.
const TEST_DEADLINE: Duration = Duration::from_secs(60);

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    #[cfg(feature = "tokio")]
    TokioMulti,
    #[cfg(feature = "tokio")]
    TokioCurrent,
    #[cfg(feature = "smol")]
    Smol,
    #[cfg(feature = "async-std")]
    AsyncStd,
}

/// Runs `test` on a thread of its own, and fails if it does not end, or leaves something behind.
pub fn run<F, Fut>(runtime: Runtime, test: F)
where
    F: FnOnce(Env) -> Fut + Send + 'static,
    Fut: Future<Output = ()>,
{
    run_in(runtime, Env::new, test);
}

/// As [`run`], on the embedded server.
pub fn run_embedded<F, Fut>(runtime: Runtime, test: F)
where
    F: FnOnce(Env) -> Fut + Send + 'static,
    Fut: Future<Output = ()>,
{
    run_in(runtime, Env::new_embedded, test);
}

fn run_in<F, Fut>(runtime: Runtime, make: fn(Runtime, Arc<dyn Executor>) -> Env, test: F)
where
    F: FnOnce(Env) -> Fut + Send + 'static,
    Fut: Future<Output = ()>,
{
    let (started, env) = mpsc::channel();
    let (done, ended) = mpsc::channel();
    let thread = thread::spawn(move || {
        let ended = catch_unwind(AssertUnwindSafe(|| {
            runtime.drive(|executor| async move {
                let env = make(runtime, executor);
                let _ = started.send(env.clone());
                test(env.clone()).await;
                env.nothing_is_left().await;
            });
        }));
        let _ = done.send(());
        ended
    });
    let outcome = ended.recv_timeout(TEST_DEADLINE);
    // Taken out here, whoever still holds the environment: a global executor's tasks are never dropped.
    let server = env.try_recv().ok().and_then(|env: Env| env.take_server());
    match outcome {
        Err(RecvTimeoutError::Timeout) => {
            drop(catch_unwind(AssertUnwindSafe(|| drop(server))));
            panic!("the test did not end within {TEST_DEADLINE:?}");
        }
        Ok(()) | Err(RecvTimeoutError::Disconnected) => match thread.join().and_then(|ended| ended) {
            Ok(()) => server.into_iter().for_each(Server::finish),
            Err(panic) => {
                drop(catch_unwind(AssertUnwindSafe(|| drop(server))));
                resume_unwind(panic);
            }
        },
    }
}

impl Runtime {
    /// Runs `body` to its end on a new runtime (smol and async-std have one for the whole process).
    fn drive<F, Fut>(self, body: F)
    where
        F: FnOnce(Arc<dyn Executor>) -> Fut,
        Fut: Future<Output = ()>,
    {
        match self {
            #[cfg(feature = "tokio")]
            Self::TokioMulti | Self::TokioCurrent => {
                let mut builder = if self == Self::TokioMulti {
                    tokio::runtime::Builder::new_multi_thread()
                } else {
                    tokio::runtime::Builder::new_current_thread()
                };
                let runtime = builder.worker_threads(2).enable_all().build().unwrap();
                let executor = Arc::new(bowline::tokio::Tokio::new(runtime.handle().clone()));
                runtime.block_on(body(executor));
            }
            #[cfg(feature = "smol")]
            Self::Smol => smol::block_on(body(Arc::new(bowline::smol::Smol))),
            #[cfg(feature = "async-std")]
            Self::AsyncStd => async_std::task::block_on(body(Arc::new(bowline::async_std::AsyncStd))),
        }
    }
}

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
    fn new(runtime: Runtime, executor: Arc<dyn Executor>) -> Self {
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
    fn new(runtime: Runtime, executor: Arc<dyn Executor>) -> Self {
        Self { inner: Arc::new(Inner::new(runtime, executor)) }
    }

    fn new_embedded(runtime: Runtime, executor: Arc<dyn Executor>) -> Self {
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
    async fn nothing_is_left(&self) {
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

    fn take_server(&self) -> Option<Server> {
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

/// A client whose commands are counted, from after its creation on.
#[derive(Clone, Debug)]
pub struct TestClient {
    pub client: Client,
    pub counts: Arc<Counts>,
}

impl Deref for TestClient {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

/// Everything that a client had its connection do.
#[derive(Debug, Default)]
pub struct Counts {
    runs: Mutex<BTreeMap<&'static str, u64>>,
    batches: AtomicU64,
    subscribes: AtomicU64,
}

impl Counts {
    /// Scripts sent, those in batches too.
    pub fn total(&self) -> u64 {
        lock(&self.runs).values().sum()
    }

    /// How often this script was sent.
    pub fn of(&self, script: &str) -> u64 {
        assert!(bowline::Script::all().any(|known| known.name() == script), "no script is called {script}");
        lock(&self.runs).get(script).copied().unwrap_or(0)
    }

    /// By script.
    pub fn all(&self) -> BTreeMap<&'static str, u64> {
        lock(&self.runs).clone()
    }

    pub fn batches(&self) -> u64 {
        self.batches.load(Ordering::SeqCst)
    }

    /// Since the connection was made; never reset.
    pub fn subscribes(&self) -> u64 {
        self.subscribes.load(Ordering::SeqCst)
    }

    pub fn reset(&self) {
        lock(&self.runs).clear();
        self.batches.store(0, Ordering::SeqCst);
    }

    fn count(&self, call: &Call<'_>) {
        *lock(&self.runs).entry(call.script.name()).or_default() += 1;
    }
}

/// Counts what it forwards.
#[derive(Debug)]
pub struct Counting<C = RedisConnection> {
    pub inner: C,
    pub counts: Arc<Counts>,
}

#[async_trait]
impl<C: Connection> Connection for Counting<C> {
    async fn run(&self, call: Call<'_>) -> Result<Reply, ConnectionError> {
        self.counts.count(&call);
        self.inner.run(call).await
    }

    async fn run_batch(&self, calls: &[Call<'_>]) -> Vec<Result<Reply, ConnectionError>> {
        self.counts.batches.fetch_add(1, Ordering::SeqCst);
        calls.iter().for_each(|call| self.counts.count(call));
        self.inner.run_batch(calls).await
    }

    async fn subscribe(&self, channel: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        self.counts.subscribes.fetch_add(1, Ordering::SeqCst);
        self.inner.subscribe(channel).await
    }

    fn topology(&self) -> Topology {
        self.inner.topology()
    }

    fn warnings(&self) -> Vec<Warning> {
        self.inner.warnings()
    }

    fn close(&self) {
        self.inner.close();
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a message".to_owned())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
