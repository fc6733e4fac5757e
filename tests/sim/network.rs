//! The network between a process and the server: delays, cuts, lost and late requests, lost messages.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use bowline::{Arg, Call, Connection, ConnectionError, Executor, Notice, Reply, Script, Topology};
use event_listener::Event;
use futures::StreamExt;
use futures::channel::{mpsc, oneshot};
use futures::future::{Either, select};
use futures::stream::BoxStream;

use crate::executor::{Machine, WORLD};

/// As the adapters do it: every call has a deadline.
pub const COMMAND_TIMEOUT: Duration = Duration::from_secs(3);

/// The server's side: executes one call at once, at the server's own time.
pub trait Backend: Send + Sync + 'static {
    /// `late` if nobody waits for the answer: the call is a second copy, or its sender has given up.
    fn execute(&self, process: usize, call: Call<'_>, late: bool) -> Result<Reply, ConnectionError>;

    /// A process makes this call. It may never be sent.
    fn called(&self, call: Call<'_>);

    /// The answer to this call has reached the process.
    fn answered(&self, call: Call<'_>, reply: &Reply);

    /// The messages of a channel, from now on.
    fn listen(&self, channel: &str) -> BoxStream<'static, Notice>;

    /// How long the server stands still from now.
    fn frozen_for(&self) -> Duration;
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
}

struct State {
    /// Counts the connections: what belongs to an older one is lost.
    commands: u64,
    messages: u64,
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
    /// When the last disturbance was over, or will be.
    disturbed: Duration,
    closed: bool,
    /// What was sent first arrives first, on one connection.
    last_arrival: Duration,
    last_reply: Duration,
    last_message: Duration,
    /// Where requests of the connection of that number go.
    pipe: Option<(u64, mpsc::UnboundedSender<Sent>)>,
}

/// When it reaches the server, what it asks, and who waits for the answer.
type Sent = (Duration, Request, oneshot::Sender<Result<Reply, ConnectionError>>);

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Link({})", self.process)
    }
}

/// What a call asks for, independent of whoever waits for the answer.
struct Request {
    script: &'static Script,
    keys: Vec<String>,
    args: Vec<OwnedArg>,
}

enum OwnedArg {
    Text(String),
    Number(u64),
}

impl Request {
    fn new(call: Call<'_>) -> Self {
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

    fn with_call<T>(&self, using: impl FnOnce(Call<'_>) -> T) -> T {
        let keys: Vec<&str> = self.keys.iter().map(String::as_str).collect();
        let args: Vec<Arg<'_>> = self
            .args
            .iter()
            .map(|arg| match arg {
                OwnedArg::Text(text) => Arg::Text(text),
                OwnedArg::Number(number) => Arg::Number(*number),
            })
            .collect();
        using(Call { script: self.script, keys: &keys, args: &args })
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
            backend,
            executor: machine.process(process),
            process,
            shortest,
            longest,
            state: Mutex::new(State {
                commands: 0,
                messages: 0,
                down: false,
                messages_down: false,
                mute: false,
                twice: false,
                silent: None,
                lag: Duration::ZERO,
                disturbed: Duration::ZERO,
                closed: false,
                last_arrival: Duration::ZERO,
                last_reply: Duration::ZERO,
                last_message: Duration::ZERO,
                pipe: None,
            }),
            changed: Event::new(),
        })
    }

    /// Since when everything gets through both ways; `None` while it does not.
    pub fn calm_since(&self) -> Option<Duration> {
        let now = self.machine.now();
        self.look(|state| {
            let silent = state.silent == Some(state.commands);
            let broken = state.down || state.messages_down || state.mute || silent || state.closed;
            let up = !broken && state.lag.is_zero();
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

    /// Breaks the command connection, and the subscription's too if so asked; they are up again after `outage`.
    pub fn cut(self: &Arc<Self>, commands: bool, messages: bool, outage: Duration) {
        self.disturb(|state| {
            if commands {
                state.commands += 1;
                state.down = true;
            }
            if messages {
                state.messages += 1;
                state.messages_down = true;
            }
        });
        let link = self.clone();
        let world = self.machine.process(WORLD);
        self.machine.process(WORLD).spawn(Box::pin(async move {
            world.sleep(outage).await;
            link.disturb(|state| {
                state.down &= !commands;
                state.messages_down &= !messages;
            });
        }));
    }

    /// Half open: nothing gets through in either direction, and nobody is told.
    pub fn mute(self: &Arc<Self>, duration: Duration) {
        self.disturb(|state| state.mute = true);
        let link = self.clone();
        let world = self.machine.process(WORLD);
        self.machine.process(WORLD).spawn(Box::pin(async move {
            world.sleep(duration).await;
            // What was swallowed does not come back: the connection is broken by then.
            link.disturb(|state| state.mute = false);
            link.cut(true, true, Duration::from_millis(20));
        }));
    }

    /// Half open the other way: requests get through and no reply does, until the client gives the connection up.
    pub fn silence(&self) {
        self.disturb(|state| state.silent = Some(state.commands));
    }

    /// From now on, some requests are executed twice.
    pub fn duplicate(&self) {
        self.change(|state| state.twice = true);
    }

    /// For a while, messages take that much longer; requests do not.
    pub fn lag(self: &Arc<Self>, lag: Duration, duration: Duration) {
        self.disturb(|state| state.lag = lag);
        let link = self.clone();
        let world = self.machine.process(WORLD);
        self.machine.process(WORLD).spawn(Box::pin(async move {
            world.sleep(duration).await;
            link.disturb(|state| state.lag = Duration::ZERO);
        }));
    }

    /// The process is gone, and its sockets with it.
    pub fn kill(&self) {
        self.change(|state| {
            state.closed = true;
            state.commands += 1;
            state.messages += 1;
            state.pipe = None;
        });
    }

    fn delay(&self) -> Duration {
        self.machine.random(|random| random.between(self.shortest, self.longest))
    }

    /// Sends the request on its way. It goes on even if nobody waits for the answer any more.
    fn send(self: &Arc<Self>, request: Request) -> oneshot::Receiver<Result<Reply, ConnectionError>> {
        let (answer, answered) = oneshot::channel();
        let arrival = (self.machine.now() + self.delay()).max(self.look(|state| state.last_arrival));
        let pipe = self.change(|state| {
            state.last_arrival = arrival;
            match &state.pipe {
                Some((connection, pipe)) if *connection == state.commands => pipe.clone(),
                _ => {
                    let (sender, receiver) = mpsc::unbounded();
                    state.pipe = Some((state.commands, sender.clone()));
                    self.machine.process(WORLD).spawn(Box::pin(self.clone().carry(state.commands, receiver)));
                    sender
                }
            }
        });
        let _ = pipe.unbounded_send((arrival, request, answer));
        answered
    }

    /// The server's end of one connection: executes what comes, in the order in which it was sent.
    async fn carry(self: Arc<Self>, connection: u64, mut requests: mpsc::UnboundedReceiver<Sent>) {
        let world = self.machine.process(WORLD);
        while let Some((arrival, request, answer)) = requests.next().await {
            world.sleep(arrival.saturating_sub(self.machine.now())).await;
            if self.look(|state| state.mute && state.commands == connection) {
                // Held until the connection breaks, then lost with all that follows.
                self.until(|state| state.commands != connection).await;
                return;
            }
            if self.look(|state| state.commands != connection) {
                // The connection broke on the way: never executed, with all that follows, or later than anybody expects.
                if self.machine.random(|random| random.one_in(2)) {
                    return;
                }
                let late = self.machine.random(|random| random.between(Duration::ZERO, COMMAND_TIMEOUT * 2));
                world.sleep(late).await;
            }
            world.sleep(self.backend.frozen_for()).await;
            let given_up = answer.is_canceled() || self.look(|state| state.commands != connection);
            let reply = request.with_call(|call| self.backend.execute(self.process, call, given_up));
            let request = Arc::new(request);
            let twice = self.look(|state| state.twice) && self.machine.random(|random| random.one_in(20));
            if twice {
                let late = self.machine.random(|random| random.between(Duration::ZERO, COMMAND_TIMEOUT * 2));
                let (link, sleep, request) = (self.clone(), world.sleep(late), request.clone());
                world.spawn(Box::pin(async move {
                    sleep.await;
                    let _ = request.with_call(|call| link.backend.execute(link.process, call, true));
                }));
            }
            let back = (self.machine.now() + self.delay()).max(self.look(|state| state.last_reply));
            self.change(|state| state.last_reply = back);
            let (link, sleep) = (self.clone(), world.sleep(back.saturating_sub(self.machine.now())));
            world.spawn(Box::pin(async move {
                sleep.await;
                let open =
                    |state: &State| state.commands == connection && state.silent != Some(connection) && !state.mute;
                if link.look(open) {
                    if answer.send(reply.clone()).is_ok()
                        && let Ok(reply) = reply
                    {
                        request.with_call(|call| link.backend.answered(call, &reply));
                    }
                } else {
                    link.until(|state| state.commands != connection).await;
                }
            }));
        }
    }
}

/// A process's own handle: closes the link when dropped, as a socket would.
#[derive(Debug)]
pub struct SimConnection(pub Arc<Link>);

impl Drop for SimConnection {
    fn drop(&mut self) {
        self.close();
    }
}

#[async_trait]
impl Connection for SimConnection {
    async fn run(&self, call: Call<'_>) -> Result<Reply, ConnectionError> {
        let link = &self.0;
        link.backend.called(call);
        let request = Request::new(call);
        let mut sent = false;
        let attempt = async {
            link.until(|state| !state.down || state.closed).await;
            if link.look(|state| state.closed) {
                return Err(ConnectionError::Closed);
            }
            let connection = link.look(|state| state.commands);
            sent = true;
            let answered = link.send(request);
            let broken = std::pin::pin!(link.until(|state| state.commands != connection || state.closed));
            match select(answered, broken).await {
                Either::Left((Ok(answer), _)) => answer,
                _ if link.look(|state| state.closed) => Err(ConnectionError::Closed),
                _ => Err(ConnectionError::Unknown("the connection broke".to_owned())),
            }
        };
        let attempt = Box::pin(attempt);
        let outcome = match select(attempt, link.executor.sleep(COMMAND_TIMEOUT)).await {
            Either::Left((answer, _)) => return answer,
            Either::Right(((), attempt)) => drop(attempt),
        };
        let () = outcome;
        if sent {
            // No answer: the connection is given up, as the adapters do.
            link.cut(true, false, Duration::from_millis(10));
            Err(ConnectionError::Unknown("no answer in time".to_owned()))
        } else {
            Err(ConnectionError::Unreachable("down".to_owned()))
        }
    }

    async fn run_batch(&self, calls: &[Call<'_>]) -> Vec<Result<Reply, ConnectionError>> {
        futures::future::join_all(calls.iter().map(|call| self.run(*call))).await
    }

    async fn subscribe(&self, channel: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        let link = self.0.clone();
        let (sender, receiver) = mpsc::unbounded();
        let channel = channel.to_owned();
        let first = link.backend.listen(&channel);
        let world = link.machine.process(WORLD);
        self.0.machine.process(WORLD).spawn(Box::pin(async move {
            let mut messages = first;
            loop {
                let subscription = link.look(|state| state.messages);
                let broken = link.until(|state| state.messages != subscription || state.closed);
                let mut broken = Box::pin(broken);
                let (forward, mut on_the_way) = mpsc::unbounded::<(Duration, Notice)>();
                let carrier = (link.clone(), sender.clone(), world.clone());
                world.spawn(Box::pin(async move {
                    let (link, sender, world) = carrier;
                    while let Some((due, notice)) = on_the_way.next().await {
                        world.sleep(due.saturating_sub(link.machine.now())).await;
                        if link.look(|state| state.messages == subscription && !state.mute && !state.closed) {
                            let _ = sender.unbounded_send(notice);
                        }
                    }
                }));
                while let Either::Left((Some(notice), _)) = select(messages.next(), broken.as_mut()).await {
                    let usual = link.machine.now() + link.delay();
                    let due = link.look(|state| (usual + state.lag).max(state.last_message));
                    link.change(|state| {
                        state.last_message = due;
                        if !state.lag.is_zero() {
                            state.disturbed = state.disturbed.max(due);
                        }
                    });
                    let _ = forward.unbounded_send((due, notice));
                }
                // The server notices: nobody counts as a receiver any more.
                drop(messages);
                if link.look(|state| state.closed) || sender.unbounded_send(Notice::Gap).is_err() {
                    return;
                }
                link.until(|state| !state.messages_down || state.closed).await;
                world.sleep(link.delay()).await;
                messages = link.backend.listen(&channel);
                world.sleep(link.delay()).await;
                if sender.unbounded_send(Notice::Gap).is_err() {
                    return;
                }
            }
        }));
        Ok(receiver.boxed())
    }

    fn topology(&self) -> Topology {
        Topology { publish_counts_everyone: true }
    }

    fn close(&self) {
        self.0.kill();
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
