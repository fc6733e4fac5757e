//! A cluster as its clients see it: the library's own router, over sockets that lead to simulated nodes.
//!
//! | file | contents |
//! |---|---|
//! | `socket` | one socket: bytes under way, and what can happen to them |
//! | `session` | a node's end of a socket: commands, subscriptions |
//! | `resp`, `answers` | how a node speaks, and what it says of the cluster |
//! | `connection` | the router, watched by the judge |
//! | `faults` | what is done to the sockets of a process |
//! | `run`, `storm` | a run over a cluster, and what happens to its nodes |

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::Call;
use bowline::dialled::{Stream as AnyStream, Streams};
use futures::future::BoxFuture;

use crate::census::Counted;
use crate::executor::{Machine, Process, WORLD};
use crate::network::Reach;
use crate::nodes::Node;
use crate::request::Request;
use crate::server::SimServer;
use crate::world::MS;
use session::Session;
use socket::{Socket, Stream};

mod answers;
mod connection;
mod faults;
pub mod resp;
mod run;
mod session;
mod socket;
mod storm;

pub use answers::address;
pub use connection::connect;
pub use run::run_on;

/// Calls that were told to wait while something changed have gone on by then.
const SETTLED: Duration = Duration::from_millis(60);

/// The longest pause before a connection that was lost, or could not be made, is dialled again.
const REDIAL: Duration = Duration::from_millis(1000);

/// The sockets of a process.
pub struct Cluster {
    machine: Arc<Machine>,
    server: Arc<SimServer>,
    process: Process,
    delays: (Duration, Duration),
    seed: u64,
    state: Mutex<State>,
    _counted: Counted,
}

#[derive(Default)]
struct State {
    sockets: BTreeMap<u64, Arc<Socket>>,
    last: u64,
    /// How many dials are under way.
    dials: usize,
    /// The ways to nodes on which nothing gets through, and until when.
    blocked: BTreeMap<Node, Blocked>,
    /// How much longer than usual everything takes.
    slow: Duration,
    /// The calls that are under way, by what they ask.
    awaited: BTreeMap<String, usize>,
    /// Something was done to the sockets.
    troubled: bool,
    /// When the last disturbance was over, or will be.
    disturbed: Duration,
    /// When the router last dialled, hung up, was sent elsewhere or told to wait, or will have got over it.
    churned: Duration,
    closed: bool,
}

struct Blocked {
    until: Duration,
    /// Dials are refused at once.
    refuses: bool,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cluster({})", self.process)
    }
}

impl Cluster {
    pub fn new(
        machine: &Arc<Machine>,
        server: &Arc<SimServer>,
        process: Process,
        delays: (Duration, Duration),
        seed: u64,
    ) -> Arc<Self> {
        let (machine, server, state) = (machine.clone(), server.clone(), Mutex::default());
        Arc::new(Self { machine, server, process, delays, seed, state, _counted: Counted::new("cluster") })
    }

    fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.lock().unwrap())
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap())
    }

    fn delay(&self) -> Duration {
        let slow = self.look(|state| state.slow);
        self.machine.random(|random| random.between(self.delays.0, self.delays.1)) + slow
    }

    /// The router does something that takes it a while, and so long from now.
    fn churned(&self, lasts: Duration) {
        let until = self.machine.now() + lasts;
        self.change(|state| state.churned = state.churned.max(until));
    }

    /// A fault begins or ends.
    fn disturbed(&self) {
        let now = self.machine.now();
        self.change(|state| {
            state.troubled = true;
            state.disturbed = state.disturbed.max(now);
        });
    }

    /// The node's end of this socket is closed.
    fn closed(&self, number: u64) {
        let socket = self.change(|state| state.sockets.remove(&number));
        drop(socket);
        self.churned(REDIAL);
    }

    async fn dial(self: &Arc<Self>, node: Node) -> io::Result<Box<dyn AnyStream>> {
        let _dialling = Dialling::new(self);
        let world = self.machine.process(WORLD);
        world.sleep(self.delay()).await;
        while let Some((wait, refuses)) = self.blocked(node) {
            if refuses || node >= self.server.nodes.count() {
                world.sleep(self.delay()).await;
                self.churned(REDIAL);
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            world.sleep(wait).await;
        }
        world.sleep(self.delay()).await;
        let socket = self.change(|state| {
            state.last += 1;
            let socket = Socket::new(self, state.last, node);
            state.sockets.insert(state.last, socket.clone());
            socket
        });
        world.spawn(Box::pin(Session::new(self, &socket).serve()));
        Ok(Box::new(Stream(socket)))
    }

    /// For how long nothing gets through to the node, and whether dials are refused.
    fn blocked(&self, node: Node) -> Option<(Duration, bool)> {
        let now = self.machine.now();
        self.look(|state| {
            let blocked = state.blocked.get(&node).filter(|blocked| blocked.until > now)?;
            Some((blocked.until - now, blocked.refuses))
        })
    }

    /// Whether the process waits for the answer to such a call.
    fn awaits(&self, call: &Call<'_>) -> bool {
        let asked = asked(call);
        self.look(|state| state.awaited.contains_key(&asked))
    }

    /// The node at which the process hears messages of all names.
    pub fn socket(&self) -> Option<Node> {
        self.sockets(Socket::is_subscribed).first().map(|socket| socket.node)
    }

    fn sockets(&self, which: impl Fn(&Socket) -> bool) -> Vec<Arc<Socket>> {
        self.look(|state| state.sockets.values().filter(|socket| which(socket)).cloned().collect())
    }
}

/// What a call asks.
fn asked(call: &Call<'_>) -> String {
    let request = Request::new(call);
    let words: Vec<String> = request.words();
    [call.script.sha1(), &call.keys.join("\n"), &words.join("\n")].join("\n")
}

/// Counts a dial that is under way.
struct Dialling(Arc<Cluster>);

impl Dialling {
    fn new(cluster: &Arc<Cluster>) -> Self {
        cluster.change(|state| state.dials += 1);
        Self(cluster.clone())
    }
}

impl Drop for Dialling {
    fn drop(&mut self) {
        self.0.change(|state| state.dials -= 1);
        self.0.churned(MS);
    }
}

/// How the router of a process reaches the nodes.
#[derive(Debug)]
struct Network(Arc<Cluster>);

impl Streams for Network {
    fn open<'a>(&'a self, _: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn AnyStream>>> {
        Box::pin(self.0.dial(answers::at(port)))
    }

    fn seed(&self) -> u64 {
        self.0.seed
    }
}

impl Reach for Cluster {
    /// What the router knows cannot be seen from outside. It counts as disturbed while it dials, hangs up, is sent
    /// elsewhere or told to wait, and for as long as it may pause after that; but not if nothing was ever done to it.
    fn calm_since(&self) -> Option<Duration> {
        let (settled, now) = (self.server.nodes.settled()?, self.machine.now());
        let state = self.state.lock().unwrap();
        if state.closed {
            return None;
        }
        if !state.troubled && settled.is_zero() {
            return Some(Duration::ZERO);
        }
        let is_sound = |socket: &Arc<Socket>| socket.is_ready() && socket.is_sound();
        let is_blocked = state.blocked.values().any(|blocked| blocked.until > now);
        if state.dials > 0 || is_blocked || !state.slow.is_zero() || !state.sockets.values().all(is_sound) {
            return None;
        }
        let calm = (settled + SETTLED).max(state.disturbed).max(state.churned);
        (calm <= now).then_some(calm)
    }
}
