//! The network between a process and the server: delays, cuts, lost and late requests, lost messages.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bowline::{Call, ConnectionError, Executor, Notice, Reply};
use event_listener::Event;
use futures::channel::mpsc;
use futures::future::BoxFuture;
use futures::stream::BoxStream;

use crate::census::Counted;
use crate::executor::Machine;
use crate::nodes::Node;
use carrier::Sent;

mod acknowledging;
mod carrier;
mod connection;
mod faults;
mod subscription;

pub use connection::SimConnection;
pub use subscription::Subject;

/// As the adapters do it: every call has a deadline.
pub const COMMAND_TIMEOUT: Duration = Duration::from_secs(3);

/// A connection that is given up stands again after that time, if nothing is in its way.
const MOMENT: Duration = Duration::from_millis(10);

/// The mistake of that name: it is made here too, as the adapters are not in the simulation.
fn one_link_redialled() -> bool {
    #[cfg(feature = "_mutants")]
    return bowline::Switch::is_on(bowline::Mutant::OneLinkRedialled);
    #[cfg(not(feature = "_mutants"))]
    false
}

/// How a call comes to a server.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// Behind an `ASKING`.
    pub asking: bool,
    /// The answer is not awaited: the call is a second copy, or its sender has given up.
    pub late: bool,
}

/// The server's side: executes one call at once, at the server's own time.
pub trait Backend: Send + Sync + 'static {
    /// The server that the address leads to now.
    fn primary(&self) -> Node;

    fn execute(&self, node: Node, process: usize, call: Call<'_>, way: Way) -> Result<Reply, ConnectionError>;

    /// A process makes this call. It may never be sent.
    fn called(&self, call: Call<'_>);

    /// The answer to this call has reached the process.
    fn answered(&self, call: Call<'_>, reply: &Reply);

    /// The messages of a channel, or the changes of a key, from now on.
    fn listen(&self, node: Node, subject: &Subject) -> BoxStream<'static, Notice>;

    /// How long the server stands still from now.
    fn frozen_for(&self) -> Duration;

    /// How often it was restarted. What reached it before is lost with its sockets.
    fn restarts(&self) -> u64;

    /// The number of the last write at that server.
    fn written(&self, node: Node) -> u64;

    /// As `WAIT`: until so many replicas have the write of that number, or that time has come. Says how many have it.
    fn acknowledged(
        &self,
        node: Node,
        number: u64,
        replicas: u32,
        until: Duration,
    ) -> BoxFuture<'_, Result<u32, ConnectionError>>;
}

/// One process's connection to the server.
pub struct Link {
    machine: Arc<Machine>,
    backend: Arc<dyn Backend>,
    executor: Arc<dyn Executor>,
    process: usize,
    shortest: Duration,
    longest: Duration,
    state: Mutex<State>,
    changed: Event,
    _counted: Counted,
}

struct State {
    /// Counts the connections: what belongs to an older one is lost.
    commands: u64,
    messages: u64,
    /// The server that the command connection leads to.
    node: Node,
    /// The command connection of that number has shown that the subscription is on the same server.
    proven: Option<u64>,
    down: bool,
    messages_down: bool,
    /// Swallows everything without a word.
    mute: bool,
    /// Some requests are executed a second time, later, whatever has happened since.
    twice: bool,
    /// The command connection of that number carries requests, and no replies any more.
    silent: Option<u64>,
    /// How much longer than usual messages take.
    lag: Duration,
    /// How much longer than usual everything takes.
    slow: Duration,
    /// When the last disturbance was over, or will be.
    disturbed: Duration,
    closed: bool,
    /// What was sent first arrives first, on one connection.
    last_arrival: Duration,
    last_reply: Duration,
    last_message: Duration,
    /// The last write on the connection that waits for replicas, which belongs to the command connection of that
    /// number.
    acknowledging: (u64, u64),
    /// Calls that wait for replicas, by command connection and number of replicas: how many were sent, and how many of
    /// these are over.
    turns: BTreeMap<(u64, u32), (u64, u64)>,
    /// How many calls were made, are under way, and were under way at most.
    calls: usize,
    under_way: usize,
    most: usize,
    /// Where requests of the connection of that number go.
    pipe: Option<(u64, mpsc::UnboundedSender<Sent>)>,
}

/// What a client reaches the servers by.
pub trait Reach: Send + Sync {
    /// Since when everything gets through both ways; `None` while it does not.
    fn calm_since(&self) -> Option<Duration>;
}

impl Reach for Link {
    fn calm_since(&self) -> Option<Duration> {
        self.calm()
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Link({})", self.process)
    }
}

impl Link {
    pub fn new(
        machine: &Arc<Machine>,
        backend: Arc<dyn Backend>,
        process: usize,
        shortest: Duration,
        longest: Duration,
    ) -> Arc<Self> {
        Arc::new(Self {
            machine: machine.clone(),
            executor: machine.process(process),
            process,
            shortest,
            longest,
            state: Mutex::new(State {
                node: backend.primary(),
                proven: None,
                commands: 0,
                messages: 0,
                down: false,
                messages_down: false,
                mute: false,
                twice: false,
                silent: None,
                lag: Duration::ZERO,
                slow: Duration::ZERO,
                disturbed: Duration::ZERO,
                closed: false,
                last_arrival: Duration::ZERO,
                last_reply: Duration::ZERO,
                last_message: Duration::ZERO,
                acknowledging: (0, 0),
                turns: BTreeMap::new(),
                calls: 0,
                under_way: 0,
                most: 0,
                pipe: None,
            }),
            backend,
            changed: Event::new(),
            _counted: Counted::new("link"),
        })
    }

    fn calm(&self) -> Option<Duration> {
        let primary = self.backend.primary();
        let proven = self.look(|state| state.proven == Some(state.commands) && state.node == primary);
        self.undisturbed().filter(|_| proven)
    }

    /// The same, whatever the subscription is proven to be.
    pub fn undisturbed(&self) -> Option<Duration> {
        let now = self.machine.now();
        self.look(|state| {
            let silent = state.silent == Some(state.commands);
            let broken = state.down || state.messages_down || state.mute || silent || state.closed;
            let up = !broken && state.lag.is_zero() && state.slow.is_zero();
            (up && state.disturbed <= now).then_some(state.disturbed)
        })
    }

    /// A fault begins or ends.
    fn disturb<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let now = self.machine.now();
        self.change(|state| {
            state.disturbed = state.disturbed.max(now);
            change(state)
        })
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.state.lock().unwrap());
        self.changed.notify(usize::MAX);
        result
    }

    /// Changes the state without waking a task.
    fn note<T>(&self, note: impl FnOnce(&mut State) -> T) -> T {
        note(&mut self.state.lock().unwrap())
    }

    /// Counts calls anew.
    pub fn forget_most(&self) {
        self.note(|state| (state.calls, state.most) = (0, state.under_way));
    }

    /// How many calls were made since, and how many of them were under way at a time.
    pub fn calls(&self) -> (usize, usize) {
        self.look(|state| (state.calls, state.most))
    }

    fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.lock().unwrap())
    }

    async fn until(&self, holds: impl Fn(&State) -> bool) {
        loop {
            let changed = self.changed.listen();
            if self.look(&holds) {
                return;
            }
            changed.await;
        }
    }

    pub fn delay(&self) -> Duration {
        let slow = self.look(|state| state.slow);
        self.machine.random(|random| random.between(self.shortest, self.longest)) + slow
    }
}

/// What an embedded server's future says: it executes when it is polled first, and answers when it is polled again.
pub fn at_once<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..2 {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
    panic!("the embedded server has its answer in the second poll");
}
