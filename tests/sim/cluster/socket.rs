//! One socket between a process and a node: bytes that take their time, in order, and ends that do not always hear of
//! each other.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use event_listener::Event;
use futures::future::select;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Cluster;
use crate::executor::WORLD;
use crate::nodes::Node;

pub struct Socket {
    cluster: Arc<Cluster>,
    pub number: u64,
    pub node: Node,
    state: Mutex<State>,
    /// Notified for the server's end.
    changed: Event,
}

/// Bytes, and when they arrive.
type OnTheWay = VecDeque<(Duration, Vec<u8>)>;

#[derive(Default)]
struct State {
    up: OnTheWay,
    down: OnTheWay,
    last_up: Duration,
    last_down: Duration,
    reader: Option<Waker>,
    /// The connection was lost, and both ends know.
    broken: bool,
    /// The client has closed its end.
    gone: bool,
    /// Answers do not get through any more.
    silent: bool,
    /// Nothing gets through any more.
    mute: bool,
    /// How much longer than usual answers and messages take.
    lag: Duration,
    ready: bool,
    subscribed: bool,
}

impl Socket {
    pub fn new(cluster: &Arc<Cluster>, number: u64, node: Node) -> Arc<Self> {
        let (state, changed) = (Mutex::default(), Event::new());
        Arc::new(Self { cluster: cluster.clone(), number, node, state, changed })
    }

    fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.lock().unwrap())
    }

    /// Changes the state, and wakes both ends.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let (output, reader) = {
            let mut state = self.state.lock().unwrap();
            (change(&mut state), state.reader.take())
        };
        self.changed.notify(usize::MAX);
        reader.into_iter().for_each(Waker::wake);
        output
    }

    fn now(&self) -> Duration {
        self.cluster.machine.now()
    }

    /// The next bytes from the client. `None`: there will be none, or the connection is lost.
    pub async fn arrived(&self) -> Option<Vec<u8>> {
        let world = self.cluster.machine.process(WORLD);
        loop {
            let changed = self.changed.listen();
            let wait = {
                let mut state = self.state.lock().unwrap();
                if state.broken || (state.gone && state.up.is_empty()) {
                    return None;
                }
                let due = state.up.front().map(|(due, _)| due.saturating_sub(self.now()));
                match due.filter(|_| !state.mute) {
                    Some(Duration::ZERO) => return state.up.pop_front().map(|(_, bytes)| bytes),
                    due => due,
                }
            };
            match wait {
                Some(wait) => drop(select(world.sleep(wait), changed).await),
                None => changed.await,
            }
        }
    }

    /// Until one of the ends has closed it, or it broke.
    pub async fn over(&self) {
        loop {
            let changed = self.changed.listen();
            if self.is_over() {
                return;
            }
            changed.await;
        }
    }

    pub fn is_over(&self) -> bool {
        self.look(|state| state.broken || state.gone)
    }

    /// What was on its way when the connection was lost.
    pub fn rest(&self) -> Vec<u8> {
        self.change(|state| state.up.drain(..).flat_map(|(_, bytes)| bytes).collect())
    }

    /// Sends bytes to the client.
    pub fn send(self: &Arc<Self>, bytes: Vec<u8>) {
        let (usual, now) = (self.now() + self.cluster.delay(), self.now());
        let due = {
            let mut state = self.state.lock().unwrap();
            if state.silent || state.mute || state.broken || state.gone || bytes.is_empty() {
                return;
            }
            let due = (usual + state.lag).max(state.last_down);
            state.last_down = due;
            state.down.push_back((due, bytes));
            due
        };
        let (world, socket) = (self.cluster.machine.process(WORLD), self.clone());
        let sleep = world.sleep(due - now);
        world.spawn(Box::pin(async move {
            sleep.await;
            let reader = socket.state.lock().unwrap().reader.take();
            reader.into_iter().for_each(Waker::wake);
        }));
    }

    /// The login is done.
    pub fn is_ready(&self) -> bool {
        self.look(|state| state.ready)
    }

    pub fn ready(&self) {
        self.change(|state| state.ready = true);
    }

    /// Whether it carries messages.
    pub fn is_subscribed(&self) -> bool {
        self.look(|state| state.subscribed)
    }

    pub fn subscribe(&self) {
        self.change(|state| state.subscribed = true);
    }

    /// Whether everything gets through in the usual time.
    pub fn is_sound(&self) -> bool {
        self.look(|state| !(state.broken || state.silent || state.mute) && state.lag.is_zero())
    }

    pub fn break_off(&self) {
        self.change(|state| state.broken = true);
    }

    pub fn silence(&self) {
        self.change(|state| state.silent = true);
    }

    /// What is on its way is lost as well.
    pub fn mute(&self) {
        let now = self.now();
        self.change(|state| {
            state.mute = true;
            state.down.retain(|(due, _)| *due <= now);
        });
    }

    pub fn lag(&self, lag: Duration) {
        self.change(|state| state.lag = lag);
    }
}

/// The client's end.
pub struct Stream(pub Arc<Socket>);

impl Drop for Stream {
    fn drop(&mut self) {
        self.0.change(|state| {
            state.gone = true;
            if state.mute {
                state.up.clear();
            }
        });
        self.0.cluster.churned(Duration::ZERO);
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let now = self.0.now();
        let mut state = self.0.state.lock().unwrap();
        let is_broken = state.broken;
        match state.down.front_mut() {
            Some((due, bytes)) if *due <= now => {
                let count = bytes.len().min(buffer.remaining());
                buffer.put_slice(&bytes[..count]);
                bytes.drain(..count);
                if bytes.is_empty() {
                    state.down.pop_front();
                }
                Poll::Ready(Ok(()))
            }
            _ if is_broken => Poll::Ready(Err(io::ErrorKind::ConnectionReset.into())),
            _ => {
                state.reader = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let usual = self.0.now() + self.0.cluster.delay();
        let written = {
            let mut state = self.0.state.lock().unwrap();
            if state.broken {
                Err(io::ErrorKind::BrokenPipe.into())
            } else {
                let due = usual.max(state.last_up);
                state.last_up = due;
                state.up.push_back((due, bytes.to_vec()));
                Ok(bytes.len())
            }
        };
        self.0.changed.notify(usize::MAX);
        Poll::Ready(written)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
