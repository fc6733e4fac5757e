//! A connection that fails on command: what is asked of the server, and what it answers, get lost, late or twisted.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use bowline::{
    Arg, Call, Client, Config, ConfigBuilder, Connection, ConnectionError, Executor, Notice, RedisConnection, Reply,
    Script, Topology, Warning,
};
use event_listener::Event;
use futures::StreamExt;
use futures::channel::mpsc::{self, UnboundedReceiver, UnboundedSender};
use futures::stream::{BoxStream, select};

use crate::support::env::Env;

/// What happens to one call.
#[derive(Clone, Debug)]
pub enum Fault {
    Pass,
    /// It never reaches the server; the caller is told that nobody knows.
    LoseRequest,
    /// The server executes it; the caller is told that nobody knows.
    LoseReply,
    /// As `LoseReply`, but the caller is told only after [`Faults::release`].
    LoseReplyLater,
    /// The caller is told at once that nobody knows; the server executes it at [`Faults::send_late`].
    Late,
    /// The server answers with this error line.
    Refuse(&'static str),
    /// The server answers this.
    Answer(Reply),
    /// Not sent before [`Faults::release`].
    Hang,
    /// Executed at once; the answer does not come before [`Faults::release`].
    HangReply,
    /// Executed at once; the answer takes this long.
    Slow(Duration),
}

/// What happens to messages of the inbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Messages {
    #[default]
    Pass,
    Swallow,
    /// Kept for [`Faults::deliver`].
    Hold,
}

/// The test's end of a [`Faulty`] connection. Without a rule, everything passes.
#[derive(Clone)]
pub struct Faults {
    inner: Arc<RedisConnection>,
    executor: Arc<dyn Executor>,
    state: Arc<Mutex<State>>,
    released: Arc<Event>,
    inject: UnboundedSender<Notice>,
}

#[derive(Default)]
struct State {
    /// For the next calls, in this order.
    next: BTreeMap<&'static str, VecDeque<Fault>>,
    /// For all others.
    always: BTreeMap<&'static str, Fault>,
    calls: BTreeMap<&'static str, u64>,
    answered: BTreeMap<&'static str, u64>,
    late: Vec<OwnedCall>,
    messages: Messages,
    held: Vec<Notice>,
    swallowed: u64,
    /// How often hanging calls were released.
    releases: u64,
}

struct OwnedCall {
    script: &'static Script,
    keys: Vec<String>,
    args: Vec<OwnedArg>,
}

enum OwnedArg {
    Text(String),
    Number(u64),
}

impl Faults {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// What happens to the next calls of `script`, one after the other.
    pub fn next(&self, script: &str, faults: impl IntoIterator<Item = Fault>) {
        self.state().next.entry(known(script)).or_default().extend(faults);
    }

    /// What happens to all calls of `script`, after those of [`next`](Self::next).
    pub fn always(&self, script: &str, fault: Fault) {
        self.state().always.insert(known(script), fault);
    }

    /// Every rule is taken back.
    pub fn heal(&self) {
        let mut state = self.state();
        state.next.clear();
        state.always.clear();
    }

    /// Calls of `script` that were made.
    pub fn calls(&self, script: &str) -> u64 {
        self.state().calls.get(known(script)).copied().unwrap_or(0)
    }

    /// Calls of `script` that have ended, whichever way.
    pub fn answered(&self, script: &str) -> u64 {
        self.state().answered.get(known(script)).copied().unwrap_or(0)
    }

    /// All calls that were made.
    pub fn total(&self) -> u64 {
        self.state().calls.values().sum()
    }

    /// Lets everything go on that hangs.
    pub fn release(&self) {
        self.state().releases += 1;
        self.released.notify(usize::MAX);
    }

    /// The server executes what was late, in its order. Returns its replies.
    pub async fn send_late(&self) -> Vec<Result<Reply, ConnectionError>> {
        let late = std::mem::take(&mut self.state().late);
        let mut replies = Vec::new();
        for call in late {
            let keys: Vec<&str> = call.keys.iter().map(String::as_str).collect();
            let args: Vec<Arg<'_>> = call.args.iter().map(OwnedArg::borrow).collect();
            replies.push(self.inner.run(Call { script: call.script, keys: &keys, args: &args }).await);
        }
        replies
    }

    pub fn messages(&self, messages: Messages) {
        self.state().messages = messages;
    }

    /// Messages that wait for [`deliver`](Self::deliver).
    pub fn held(&self) -> usize {
        self.state().held.len()
    }

    pub fn swallowed(&self) -> u64 {
        self.state().swallowed
    }

    /// Delivers what was held. Returns it, to be delivered again with [`inject`](Self::inject).
    pub fn deliver(&self) -> Vec<Notice> {
        let held = std::mem::take(&mut self.state().held);
        held.iter().for_each(|notice| self.inject(notice.clone()));
        held
    }

    /// Puts a notice of the test's own into the inbox.
    pub fn inject(&self, notice: Notice) {
        self.inject.unbounded_send(notice).unwrap();
    }

    /// Has the client ask about everything that it holds and waits for.
    pub fn gap(&self) {
        self.inject(Notice::Gap);
    }

    /// The rule for this call, counted.
    fn rule(&self, script: &'static str) -> Fault {
        let mut state = self.state();
        *state.calls.entry(script).or_default() += 1;
        let next = state.next.get_mut(script).and_then(VecDeque::pop_front);
        next.or_else(|| state.always.get(script).cloned()).unwrap_or(Fault::Pass)
    }

    async fn until_released(&self, seen: u64) {
        loop {
            let listener = self.released.listen();
            if self.state().releases > seen {
                return;
            }
            listener.await;
        }
    }
}

/// Panics on a name that no script has: a rule for it would never apply.
fn known(script: &str) -> &'static str {
    Script::all().map(Script::name).find(|known| *known == script).unwrap_or_else(|| panic!("no script {script}"))
}

fn lost() -> ConnectionError {
    ConnectionError::Unknown("lost by the test".to_owned())
}

impl OwnedCall {
    fn of(call: &Call<'_>) -> Self {
        let args = call.args.iter().map(|arg| match arg {
            Arg::Text(text) => OwnedArg::Text((*text).to_owned()),
            Arg::Number(number) => OwnedArg::Number(*number),
        });
        Self {
            script: call.script,
            keys: call.keys.iter().map(|key| (*key).to_owned()).collect(),
            args: args.collect(),
        }
    }
}

impl OwnedArg {
    fn borrow(&self) -> Arg<'_> {
        match self {
            Self::Text(text) => Arg::Text(text),
            Self::Number(number) => Arg::Number(*number),
        }
    }
}

/// Counts a call as ended, also when its future is dropped.
struct Ended<'a>(&'a Faults, &'static str);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        *self.0.state().answered.entry(self.1).or_default() += 1;
    }
}

pub struct Faulty {
    faults: Faults,
    /// For the one subscription that a client makes.
    injected: Mutex<Option<UnboundedReceiver<Notice>>>,
}

impl fmt::Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Faulty")
    }
}

#[async_trait]
impl Connection for Faulty {
    async fn run(&self, call: Call<'_>) -> Result<Reply, ConnectionError> {
        let Faults { inner, executor, .. } = &self.faults;
        let releases = self.faults.state().releases;
        let name = call.script.name();
        let rule = self.faults.rule(name);
        let _ended = Ended(&self.faults, name);
        match rule {
            Fault::Pass => inner.run(call).await,
            Fault::LoseRequest => Err(lost()),
            Fault::LoseReply => inner.run(call).await.and(Err(lost())),
            Fault::LoseReplyLater => {
                inner.run(call).await?;
                self.faults.until_released(releases).await;
                Err(lost())
            }
            Fault::Late => {
                self.faults.state().late.push(OwnedCall::of(&call));
                Err(lost())
            }
            Fault::Refuse(line) => Err(ConnectionError::refused(line)),
            Fault::Answer(reply) => Ok(reply),
            Fault::Hang => {
                self.faults.until_released(releases).await;
                inner.run(call).await
            }
            Fault::HangReply => {
                let reply = inner.run(call).await;
                self.faults.until_released(releases).await;
                reply
            }
            Fault::Slow(time) => {
                let reply = inner.run(call).await;
                executor.sleep(time).await;
                reply
            }
        }
    }

    async fn run_batch(&self, calls: &[Call<'_>]) -> Vec<Result<Reply, ConnectionError>> {
        let mut replies = Vec::new();
        for call in calls {
            replies.push(self.run(*call).await);
        }
        replies
    }

    async fn subscribe(&self, channel: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        let notices = self.faults.inner.subscribe(channel).await?;
        let injected = self.injected.lock().unwrap().take().expect("one subscription");
        let state = Arc::clone(&self.faults.state);
        let passed = notices.filter_map(move |notice| {
            let mut state = state.lock().unwrap();
            let passes = match (&notice, state.messages) {
                (Notice::Gap, _) | (_, Messages::Pass) => Some(notice),
                (_, Messages::Swallow) => {
                    state.swallowed += 1;
                    None
                }
                (_, Messages::Hold) => {
                    state.held.push(notice);
                    None
                }
            };
            futures::future::ready(passes)
        });
        Ok(select(passed, injected).boxed())
    }

    fn topology(&self) -> Topology {
        self.faults.inner.topology()
    }

    fn warnings(&self) -> Vec<Warning> {
        self.faults.inner.warnings()
    }

    fn close(&self) {
        self.faults.inner.close();
    }
}

/// A client on a faulty connection, with the settings of [`Env::client`] and those of `configure`. Calls are counted
/// from here on.
pub async fn faulty_client(env: &Env, configure: impl FnOnce(ConfigBuilder) -> ConfigBuilder) -> (Client, Faults) {
    let builder = Config::builder().command_timeout(Duration::from_secs(2)).patience(Duration::from_secs(5));
    let config = configure(builder).build().unwrap();
    let (inject, injected) = mpsc::unbounded();
    // Short deadlines are the client's: what goes on below the faults may take its time.
    let below = Config::builder().command_timeout(Duration::from_secs(20)).build().unwrap();
    let inner = Arc::new(env.open(&env.url(), &below).await.unwrap());
    let faults =
        Faults { inner, executor: env.executor(), state: Arc::default(), released: Arc::new(Event::new()), inject };
    let faulty = Faulty { faults: faults.clone(), injected: Mutex::new(Some(injected)) };
    let client = Client::new(env.executor(), Arc::new(faulty), config).await.unwrap();
    faults.state().calls.clear();
    faults.state().answered.clear();
    (client, faults)
}
