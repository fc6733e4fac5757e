//! Runs bowline on tokio. The [documentation of the crate](crate) has an example.
//!
//! `use bowline::*` makes the name `tokio` ambiguous. Import [`bowline::prelude::*`](crate::prelude) instead.

use std::fmt;
use std::future::{pending, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
#[cfg(unix)]
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::task::Poll;
use std::time::{Duration, Instant};

use ::tokio::net::TcpStream;
use ::tokio::runtime::{Handle, RuntimeFlavor};
use ::tokio::task::AbortHandle;
use event_listener::Event;
use futures::FutureExt;
use futures::future::{BoxFuture, Either, select};

use super::{Executor, clock, must_not_block, yield_once};
use crate::client::Client;
use crate::config::Config;
use crate::connect::connect_functions;
use crate::connection::Connection;
use crate::error::{Error, ErrorKind, Result};
use crate::redis::dial::{Dial, DialError, Dialled, Stream, addresses, tune};
use crate::redis::{ConnectOptions, RedisConnection};

/// A tokio runtime, multi-threaded or current-thread.
///
/// It keeps the runtime's handle, so it also works on threads outside of the runtime. The runtime needs its timer and
/// its sockets ([`enable_all`](tokio::runtime::Builder::enable_all), which `#[tokio::main]` calls). Without the timer,
/// sleeping panics.
///
/// The clock is tokio's: if a test pauses it, bowline's leases and timeouts stand still too. On Linux, it goes on while
/// the machine is suspended; timers that run meanwhile end later by that.
///
/// A current-thread runtime makes progress only while a thread drives it by `Runtime::block_on`. Until then its tasks
/// and timers wait, and so does [`block_on`](Executor::block_on) of a future that depends on them.
#[derive(Clone)]
pub struct Tokio {
    inner: Arc<Inner>,
}

struct Inner {
    handle: Handle,
    /// A test may pause the clock. A runtime with several threads always has that of the system.
    may_pause: bool,
    shutdown: Arc<Shutdown>,
    /// A task that does nothing. tokio drops it with the runtime, and gives no other sign of the shutdown.
    sentinel: AbortHandle,
}

#[derive(Default)]
struct Shutdown {
    /// Locked for reading while a timer is polled. tokio panics if a timer is polled after the timer driver has
    /// stopped, and stops the driver only after it has dropped all tasks, including the sentinel.
    down: RwLock<bool>,
    event: Event,
}

impl Shutdown {
    fn down(&self) -> RwLockReadGuard<'_, bool> {
        self.down.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Marks the shutdown when the sentinel task is dropped.
struct Mark(Arc<Shutdown>);

impl Drop for Mark {
    fn drop(&mut self) {
        *self.0.down.write().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.event.notify(usize::MAX);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.sentinel.abort();
    }
}

impl Tokio {
    /// An executor for the runtime of `handle`.
    pub fn new(handle: Handle) -> Self {
        let shutdown = Arc::new(Shutdown::default());
        let mark = Mark(Arc::clone(&shutdown));
        let sentinel = handle.spawn(async move {
            let _mark = mark;
            pending::<()>().await;
        });
        let (sentinel, may_pause) = (sentinel.abort_handle(), handle.runtime_flavor() != RuntimeFlavor::MultiThread);
        Self { inner: Arc::new(Inner { handle, may_pause, shutdown, sentinel }) }
    }

    /// An executor for the runtime that the caller runs in.
    ///
    /// # Errors
    /// [`InvalidInput`](ErrorKind::InvalidInput) outside of a tokio runtime.
    pub fn current() -> Result<Self> {
        match Handle::try_current() {
            Ok(handle) => Ok(Self::new(handle)),
            Err(error) => Err(Error::new(ErrorKind::InvalidInput, "connect").with_source(error)),
        }
    }
}

/// Whether the thread is destroying its thread-locals, tokio's included. Entering a runtime would panic then, and a
/// panic in a destructor of a thread-local aborts the process.
fn thread_ends() -> bool {
    Handle::try_current().is_err_and(|error| error.is_thread_local_destroyed())
}

impl Executor for Tokio {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        drop(self.inner.handle.spawn(task));
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        // tokio drops a running task at its next pending poll. A loop around a sleep that is ready at once would never
        // be pending.
        if *self.inner.shutdown.down() || thread_ends() {
            return Box::pin(yield_once());
        }
        #[expect(clippy::disallowed_methods, reason = "this is the adapter")]
        let timer = {
            let _runtime = self.inner.handle.enter();
            ::tokio::time::sleep(duration)
        };
        // The sleep keeps the sentinel alive. Otherwise a sleep that outlives the last executor would end early.
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            let mut timer = pin!(timer);
            // This needs no listener for the shutdown, because the timer driver fires every timer when it stops.
            let down = poll_fn(move |cx| {
                let down = inner.shutdown.down();
                if *down { Poll::Ready(true) } else { timer.as_mut().poll(cx).map(|()| false) }
            })
            .await;
            if down {
                yield_once().await;
            }
        })
    }

    fn now(&self) -> Instant {
        if !self.inner.may_pause {
            return clock::now();
        }
        let suspended = clock::suspended();
        if thread_ends() {
            #[expect(clippy::disallowed_methods, reason = "this is the adapter")]
            return Instant::now() + suspended;
        }
        // Other threads see a paused clock only inside the runtime's context.
        let _runtime = self.inner.handle.enter();
        ::tokio::time::Instant::now().into_std() + suspended
    }

    fn block_on(&self, future: BoxFuture<'_, ()>) -> Result<()> {
        let shutdown = self.inner.shutdown.event.listen();
        let closed = || Err(Error::new(ErrorKind::Closed, "block_on"));
        if *self.inner.shutdown.down() {
            return closed();
        }
        let mut polled = false;
        let mut both = select(future, shutdown);
        let both = poll_fn(|cx| {
            polled = true;
            both.poll_unpin(cx)
        });
        // tokio refuses to block by a panic before the first poll. It offers no way to ask beforehand.
        match catch_unwind(AssertUnwindSafe(|| self.inner.handle.block_on(both))) {
            Ok(Either::Left(_)) => Ok(()),
            Ok(Either::Right(_)) => closed(),
            Err(_) if !polled => Err(must_not_block("tokio::task::spawn_blocking")),
            Err(panic) => resume_unwind(panic),
        }
    }
}

impl fmt::Debug for Tokio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokio").field("shut_down", &*self.inner.shutdown.down()).finish_non_exhaustive()
    }
}

connect_functions!(
    "the tokio runtime that this is called in, which needs its timer and sockets (`enable_all`)",
    Tokio::current()?,
    ", and [`InvalidInput`](crate::ErrorKind::InvalidInput) outside of a tokio runtime"
);

#[derive(Debug)]
struct Sockets;

/// Connects to the first of these addresses that accepts.
async fn tcp(addresses: impl IntoIterator<Item = SocketAddr>) -> Dialled {
    #[expect(clippy::disallowed_methods, reason = "this is the adapter")]
    let pause = || ::tokio::time::sleep(addresses::PAUSE);
    Ok(Box::new(addresses::first(addresses, dial, pause).await?))
}

async fn dial(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    tune(&stream)?;
    Ok(stream)
}

impl Dial for Sockets {
    fn tcp<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, Dialled> {
        Box::pin(async move {
            let addresses = ::tokio::net::lookup_host((host, port)).await.map_err(DialError::Name)?;
            tcp(addresses).await
        })
    }

    #[cfg(unix)]
    fn unix<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Dialled> {
        Box::pin(async move { Ok(Box::new(::tokio::net::UnixStream::connect(path).await?) as Stream) })
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::dial::addresses::lab::Addresses;

    #[::tokio::test]
    async fn an_address_that_is_silent_is_followed_by_the_next_one() {
        let addresses = Addresses::new();
        // The system gives up after some 130 s.
        let limit = Duration::from_secs(60);
        #[expect(clippy::disallowed_methods, reason = "this is a test of the adapter")]
        let _stream = ::tokio::time::timeout(limit, tcp(addresses.list())).await.unwrap().unwrap();
        addresses.accepting.set_nonblocking(true).unwrap();
        addresses.accepting.accept().expect("the stream is connected to it");
    }
}
