//! The trait of connections, which run scripts and deliver messages, and its types.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;

use crate::protocol::Script;

mod error;
pub(crate) mod first_connect;
pub(crate) mod refusal;
mod topology;

pub use error::ConnectionError;
pub use topology::{Topology, Warning};

/// A connection to one Redis-compatible server, or to a cluster if the implementation supports that.
///
/// Implementations use [`#[async_trait]`](crate::async_trait). This crate re-exports it together with
/// [`BoxStream`](crate::BoxStream), so no other crate is needed. See `examples/custom_connection.rs` for a wrapper.
///
/// A wrapper around another connection returns that one from [`inner`](Self::inner). The defaults of all methods that
/// have one then forward to it, so a wrapper cannot lose acknowledged holds, or the good-bye of a client whose runtime
/// is gone, by leaving a method out.
///
/// `bowline::testing::check_connection` (feature `testing`) checks whether an implementation keeps the contract.
///
/// # Contract
/// - Every call returns within a deadline that the implementation sets, whatever the server does: at most the client's
///   [`command_timeout`](crate::ConfigBuilder::command_timeout). A client that needs the answer earlier drops the call.
/// - A call is executed at most once. It is sent again only after an answer which says that it was not executed, such
///   as `MOVED` of a cluster. A dropped call was either never sent or may have been executed.
/// - While the connection stays up, calls are executed in the order of their first polls. A call that is kept and not
///   polled holds up no other one.
/// - The implementation reconnects. Calls made in the meantime wait for the new connection until their deadline.
#[async_trait]
pub trait Connection: fmt::Debug + Send + Sync + 'static {
    /// The connection that this one wraps, to which the default of each method forwards. `None`: it wraps none.
    ///
    /// A wrapper that must see calls that it does not forward itself, such as those of
    /// [`run_acknowledged`](Self::run_acknowledged), overrides these methods as well.
    fn inner(&self) -> Option<&dyn Connection>;

    /// Runs a script.
    async fn run(&self, call: Call<'_>) -> Result<Reply, ConnectionError>;

    /// Runs several scripts, which are sent together. The answers are in the order of `calls`.
    async fn run_batch(&self, calls: &[Call<'_>]) -> Vec<Result<Reply, ConnectionError>>;

    /// Runs several scripts, which are sent together, and waits until `replicas` replicas have acknowledged their
    /// writes, or until shortly before `within` has passed. The answers are in the order of `calls`. Too few
    /// acknowledgements are not an error.
    ///
    /// The wait must not delay other calls. To cover these calls, the count is that of a `WAIT` that is sent behind
    /// them, on the same connection to the same server.
    ///
    /// In an implementation that cannot wait for replicas, nothing is sent and every call fails with
    /// [`Unsupported`](ConnectionError::Unsupported). This is the default without an [`inner`](Self::inner) connection.
    async fn run_acknowledged(
        &self,
        calls: &[Call<'_>],
        replicas: u32,
        within: Duration,
    ) -> Vec<Result<Acknowledged, ConnectionError>> {
        if let Some(inner) = self.inner() {
            return inner.run_acknowledged(calls, replicas, within).await;
        }
        let unsupported = "this connection cannot wait for replicas";
        calls.iter().map(|_| Err(ConnectionError::Unsupported(unsupported.to_owned()))).collect()
    }

    /// Subscribes to `channel` and keeps the subscription until the stream is dropped.
    ///
    /// Returns when the server has confirmed the first subscription. If the future is dropped before, no subscription
    /// remains.
    ///
    /// A client subscribes once, when it connects. Only if the topology has
    /// [sharded messages](Topology::sharded_messages), it also subscribes while it is in use, to one shard channel in
    /// each slot in which it waits, and drops that stream some time after its last wait there. A [`Notice::Gap`] of a
    /// shard channel is one of its own subscription. A gap that concerns the whole connection is delivered to the
    /// channel without a slot.
    ///
    /// A client that waits for [locks that Java shares](crate::Client::redisson) subscribes the channel of each such
    /// lock as well, also without sharded messages, and drops the stream after its last wait there.
    async fn subscribe(&self, channel: &str) -> Result<BoxStream<'static, Notice>, ConnectionError>;

    /// Reports the changes of a key until the stream is dropped: a [`Notice::Message`] soon after each one, whoever has
    /// made it. One message may stand for several changes, and there may be messages without a change. What the message
    /// says does not matter. A key that is gone because its time to live has passed may
    /// be reported much later.
    ///
    /// Returns when the server reports changes from now on. If the future is dropped before, nothing remains. Gaps and
    /// refusals are those of [`subscribe`](Self::subscribe). In a cluster, the server is the master of the key's slot,
    /// and a gap is delivered when that is another one. `inbox` is the client's own channel: the user may subscribe
    /// channels that begin with it, should the implementation need one.
    ///
    /// Used by [`Client::changes`](crate::Client::changes) only. In an implementation that cannot do it, the call fails
    /// with [`Unsupported`](ConnectionError::Unsupported). This is the default without an [`inner`](Self::inner)
    /// connection.
    async fn watch_key(&self, key: &str, inbox: &str) -> Result<BoxStream<'static, Notice>, ConnectionError> {
        match self.inner() {
            Some(inner) => inner.watch_key(key, inbox).await,
            None => Err(ConnectionError::Unsupported("this connection cannot watch keys".to_owned())),
        }
    }

    /// The topology of the server.
    fn topology(&self) -> Topology;

    /// The number of the server that executes calls with this key, as far as is known. Holds whose keys are on one
    /// server are renewed together. The default without an [`inner`](Self::inner) connection is 0 for all keys.
    fn node_of(&self, key: &str) -> u64 {
        self.inner().map_or(0, |inner| inner.node_of(key))
    }

    /// One slot of each server that stores names: calls with keys in these slots reach all of these servers. `None`: it
    /// is not known which servers there are, so names cannot be [listed](crate::Client::names).
    ///
    /// The default without an [`inner`](Self::inner) connection is `None` if the topology has
    /// [`one_name_per_call`](Topology::one_name_per_call), and otherwise one slot.
    fn slot_of_each_server(&self) -> Option<Vec<u16>> {
        match self.inner() {
            Some(inner) => inner.slot_of_each_server(),
            None => (!self.topology().one_name_per_call).then(|| vec![0]),
        }
    }

    /// The problems of the server's setup that were found when connecting and are not errors. The default without an
    /// [`inner`](Self::inner) connection is none.
    fn warnings(&self) -> Vec<Warning> {
        self.inner().map_or_else(Vec::new, |inner| inner.warnings())
    }

    /// The number of connections that were restored after a loss, for [`Client::stats`](crate::Client::stats). The
    /// default without an [`inner`](Self::inner) connection is zero.
    fn reconnects(&self) -> u64 {
        self.inner().map_or(0, |inner| inner.reconnects())
    }

    /// Why calls with this key cannot be sent now: how the last attempt at a connection failed, such as `WRONGPASS`.
    /// `None`: there is a connection, or it is not known why there is none. It is the cause in the error of a caller
    /// whose time is over. The default without an [`inner`](Self::inner) connection is `None`.
    fn why_down(&self, key: &str) -> Option<ConnectionError> {
        self.inner().and_then(|inner| inner.why_down(key))
    }

    /// A connection to the same server that needs no runtime. The client uses it after the runtime is shut down, to
    /// release its holds. It has [closed](Self::close) this one before.
    ///
    /// Polling its calls blocks the thread. Connecting and all calls together take at most `within`. `None`: the
    /// implementation has no such connection. This is the default without an [`inner`](Self::inner) connection.
    fn without_runtime(&self, within: Duration) -> Option<Box<dyn Connection>> {
        self.inner().and_then(|inner| inner.without_runtime(within))
    }

    /// Closes the connection. All current and later calls fail with [`ConnectionError::Closed`], subscriptions end, and
    /// nothing reconnects. No request is sent after this method has returned, even by a thread that runs a call at the
    /// same time. Dropping the connection has the same effect.
    fn close(&self);
}

/// One call of a script with its keys and arguments, made by [`Call::new`]. Later versions may add fields.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Call<'a> {
    /// The script to run.
    pub script: &'static Script,
    /// `KEYS`: all keys that the script uses.
    pub keys: &'a [&'a str],
    /// `ARGV`: all other arguments.
    pub args: &'a [Arg<'a>],
    /// The time after which the answer is useless to the caller. An implementation may then give up the call and
    /// replace the connection. `None`, or a value above the implementation's own deadline, leaves that deadline.
    pub within: Option<Duration>,
}

impl<'a> Call<'a> {
    /// A call whose only time limit is the connection's deadline.
    pub fn new(script: &'static Script, keys: &'a [&'a str], args: &'a [Arg<'a>]) -> Self {
        Self { script, keys, args, within: None }
    }

    /// Sets the time after which the answer is useless.
    pub fn within(self, within: Duration) -> Self {
        Self { within: Some(within), ..self }
    }
}

/// An argument of a script.
#[derive(Clone, Copy)]
pub enum Arg<'a> {
    /// Sent as it is.
    Text(&'a str),
    /// Sent in decimal.
    Number(u64),
}

/// Shows numbers only. Texts are attempt ids and tickets, which are kept secret.
impl fmt::Debug for Arg<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "<{} bytes>", text.len()),
            Self::Number(number) => number.fmt(f),
        }
    }
}

/// The reply of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply {
    /// No value.
    Nil,
    /// An integer.
    Integer(i64),
    /// A string of bytes, or a status reply.
    Bytes(Vec<u8>),
    /// A list.
    Array(Vec<Reply>),
}

/// The reply of a script, and the number of replicas that have its writes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Acknowledged {
    /// The reply.
    pub reply: Reply,
    /// The number of replicas that had acknowledged the writes of the script when the wait ended.
    pub replicas: u32,
}

impl Acknowledged {
    /// A reply whose writes `replicas` replicas have acknowledged.
    pub fn new(reply: Reply, replicas: u32) -> Self {
        Self { reply, replicas }
    }
}

/// An item of a subscription's stream.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// A message that was published on the channel.
    Message(Vec<u8>),
    /// Messages may have been missed, because the subscription was interrupted or has just been restored.
    ///
    /// It is delivered once when the interruption is noticed and once when the subscription is restored. An
    /// implementation with a separate connection for calls also delivers it after each reconnect of that connection,
    /// because it may now be connected to another server.
    Gap,
    /// The server refused to restore the subscription, or its [certificate](ConnectionError::Certificate) is no longer
    /// accepted. The connection keeps trying, and no message arrives until it succeeds. It is delivered once per
    /// interruption, however many attempts are refused.
    Refused(ConnectionError),
}

#[cfg(test)]
mod tests;
