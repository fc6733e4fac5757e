//! A connection without a runtime: std's sockets, on the thread that polls.
//!
//! It sends the last calls of a client whose runtime has been shut down. Its lifetime is short and is fixed when it is
//! made: resolving the name, the login and all calls together take no longer. It never reconnects.
//!
//! The first poll of a call queues its command and yields, so that the calls that are polled together go into one
//! write. The next poll writes the queue, and reads until the answer has come.

use std::fmt;
use std::sync::Mutex;
use std::time::Duration;

use ::redis::Value;
use async_trait::async_trait;
use futures::stream::BoxStream;

use self::wire::Wire;
use super::convert::{self, command, is_noscript};
use super::dial::checks::check_server;
use super::dial::deadline::{Deadline, SocketDeadline};
use super::dial::locate::Locate;
use super::url::target::Target;
use crate::connection::{Call, Connection, ConnectionError, Notice, Reply, Topology};
use crate::mutex::lock;
use crate::runtime::yield_once;

mod dial;
mod wire;

pub(super) struct Blocking {
    /// Locked while the thread blocks. Another thread that polls a call has to wait for the same socket anyway.
    wire: Mutex<Wire>,
}

impl Blocking {
    /// Finds the server, connects and logs in. `None`: this failed or took too long.
    pub(super) fn connect(locate: &dyn Locate, within: Duration) -> Option<Self> {
        let deadline = Deadline::after(within)?;
        Self::connect_by(locate, deadline, deadline)
    }

    /// As [`connect`](Self::connect). The login ends by `login`, and the calls by `calls`.
    pub(super) fn connect_by(locate: &dyn Locate, login: Deadline, calls: Deadline) -> Option<Self> {
        let until = SocketDeadline::new(login);
        let target = locate.locate_blocking(login)?;
        let (wire, hello) = self::login(&target, &until)?;
        check_server(&hello, target.purpose()).ok()?;
        until.put_off(calls);
        Some(Self { wire: Mutex::new(wire) })
    }

    /// Queues a call, by `EVAL` with the source if `whole` is set, else by `EVALSHA`.
    fn queue(&self, call: &Call<'_>, whole: bool) -> Result<u64, ConnectionError> {
        let mut wire = lock(&self.wire);
        let whole = whole || !wire.knows(call.script);
        let place = wire.queue(&command(call, whole))?;
        if whole {
            wire.sent(call.script);
        }
        Ok(place)
    }

    fn answer(&self, place: u64) -> Result<Value, ConnectionError> {
        lock(&self.wire).answer(place)
    }
}

/// Logs in as the other connections do. Also returns the answer to `HELLO`.
fn login(target: &Target, until: &SocketDeadline) -> Option<(Wire, Reply)> {
    let mut commands = vec![target.introduction().hello(target.login().last().as_ref())];
    if target.db() != 0 {
        let mut select = ::redis::cmd("SELECT");
        select.arg(target.db());
        commands.push(select);
    }
    let mut wire = Wire::new(dial::dial(target, until)?);
    let mut replies = ask(&mut wire, &commands)?.into_iter();
    let hello = replies.next()?.ok()?;
    replies.all(|reply| reply.is_ok()).then_some((wire, hello))
}

/// Sends commands in one write. `None`: no answer came in time.
fn ask(wire: &mut Wire, commands: &[::redis::Cmd]) -> Option<Vec<Result<Reply, ConnectionError>>> {
    let places: Vec<u64> = commands.iter().map(|command| wire.queue(command)).collect::<Result<_, _>>().ok()?;
    places.into_iter().map(|place| wire.answer(place).ok().map(convert::reply)).collect()
}

/// Logs in to a server and sends it some commands.
pub(super) fn ask_once(
    target: &Target,
    commands: &[::redis::Cmd],
    deadline: Deadline,
) -> Option<Vec<Result<Reply, ConnectionError>>> {
    ask(&mut login(target, &SocketDeadline::new(deadline))?.0, commands)
}

#[async_trait]
impl Connection for Blocking {
    fn inner(&self) -> Option<&dyn Connection> {
        None
    }

    async fn run(&self, call: Call<'_>) -> Result<Reply, ConnectionError> {
        let mut answers = self.run_batch(&[call]).await;
        answers.pop().unwrap_or(Err(ConnectionError::Closed))
    }

    async fn run_batch(&self, calls: &[Call<'_>]) -> Vec<Result<Reply, ConnectionError>> {
        let mut places: Vec<_> = calls.iter().map(|call| self.queue(call, false)).collect();
        yield_once().await;
        let mut values: Vec<Result<Value, ConnectionError>> =
            places.drain(..).map(|place| place.and_then(|place| self.answer(place))).collect();
        // The server's script cache was flushed.
        for (call, value) in calls.iter().zip(&mut values) {
            if matches!(value, Ok(value) if is_noscript(value)) {
                *value = self.queue(call, true).and_then(|place| self.answer(place));
            }
        }
        values.into_iter().map(|value| value.and_then(convert::reply)).collect()
    }

    /// No one could read a subscription of this connection.
    async fn subscribe(&self, _channel: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        Err(ConnectionError::Closed)
    }

    fn topology(&self) -> Topology {
        Topology::single_server()
    }

    fn close(&self) {
        lock(&self.wire).close();
    }
}

impl fmt::Debug for Blocking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blocking").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
