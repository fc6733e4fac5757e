//! A connection that fails on command: what is asked of the server, and what it answers, get lost, late or twisted.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bowline::{
    Call, Client, Config, ConfigBuilder, Connection, ConnectionError, Executor, Notice, RedisConnection, Reply, Script,
};
use event_listener::Event;
use futures::channel::mpsc::{self, UnboundedSender};

use crate::support::env::Env;
use crate::support::request::Request;

mod connection;

pub use connection::Faulty;

/// What happens to one call.
#[derive(Clone, Debug)]
pub enum Fault {
    Pass,
    /// It never reaches the server; the caller is told that the outcome is unknown.
    LoseRequest,
    /// The server executes it; the caller is told that the outcome is unknown.
    LoseReply,
    /// As `LoseReply`, but the caller is told only after [`Faults::release`].
    LoseReplyLater,
    /// The caller is told at once that the outcome is unknown; the server executes it at [`Faults::send_late`].
    Late,
    /// It is not sent, and the caller is told so.
    Unreachable,
    /// The server answers with this error line.
    Refuse(&'static str),
    /// The server answers this.
    Answer(Reply),
    /// Not sent before [`Faults::release`].
    Hang,
    /// Nothing is heard of it for as long as the answer is of use, which has to be said.
    Silent,
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
    late: Vec<Request>,
    messages: Messages,
    held: Vec<Notice>,
    swallowed: u64,
    /// How often hanging calls were released.
    releases: u64,
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
            replies.push(self.inner.run(Call::new(call.script, &call.keys(), &call.args())).await);
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

/// A client on a faulty connection, with the settings of [`Env::client`] and those of `configure`. Calls are counted
/// from here on.
pub async fn faulty_client(env: &Env, configure: impl FnOnce(ConfigBuilder) -> ConfigBuilder) -> (Client, Faults) {
    faulty_client_on(env, env.executor(), configure).await
}

/// The same with an executor of its own. The faults and the connection below them have that of the runtime.
pub async fn faulty_client_on(
    env: &Env,
    executor: Arc<dyn Executor>,
    configure: impl FnOnce(ConfigBuilder) -> ConfigBuilder,
) -> (Client, Faults) {
    let builder = Config::builder().command_timeout(Duration::from_secs(2)).retry_timeout(Duration::from_secs(5));
    let config = configure(builder).build().unwrap();
    let (inject, injected) = mpsc::unbounded();
    // The short deadlines are those of the client. The connection below the faults has more time.
    let below = Config::builder().command_timeout(Duration::from_secs(20)).build().unwrap();
    let inner = Arc::new(env.open(&env.url(), &below).await.unwrap());
    let faults =
        Faults { inner, executor: env.executor(), state: Arc::default(), released: Arc::new(Event::new()), inject };
    let faulty = Faulty { faults: faults.clone(), injected: Mutex::new(Some(injected)) };
    let client = Client::connect(executor, Arc::new(faulty), config).await.unwrap();
    faults.state().calls.clear();
    faults.state().answered.clear();
    (client, faults)
}
