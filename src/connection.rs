//! The server as bowline sees it: run scripts, hear messages.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;

use crate::error::ErrorKind;
use crate::protocol::Script;

pub(crate) mod refusal;

/// A connection to one Redis-compatible server (or, for adapters that can, a cluster of them).
///
/// An implementation stands under [`#[async_trait]`](crate::async_trait), which this crate re-exports with
/// [`BoxStream`](crate::BoxStream): it needs no other crate. `examples/custom_connection.rs` is one.
///
/// # Contract
/// - Every call returns within a deadline of the implementation's own, whatever the server does.
/// - A call is sent at most once. What is left of a call whose future is dropped is: not sent, or executed.
/// - Calls that were polled one after the other on a connection that stays up are executed in that order.
/// - Reconnecting is the implementation's business; calls made meanwhile wait for it, up to their deadline.
#[async_trait]
pub trait Connection: fmt::Debug + Send + Sync + 'static {
    /// Runs one script.
    async fn run(&self, call: Call<'_>) -> Result<Reply, ConnectionError>;

    /// Runs several scripts, written to the server at once; the answers are in the order of `calls`.
    async fn run_batch(&self, calls: &[Call<'_>]) -> Vec<Result<Reply, ConnectionError>>;

    /// Runs several scripts, written to the server at once, and waits until `replicas` replicas have acknowledged what they have
    /// written, or until `within` is nearly over. The answers are in the order of `calls`; that fewer replicas have
    /// acknowledged is no error.
    ///
    /// The wait must not hold up other calls. What is counted must cover the calls: the replicas that `WAIT` counts
    /// behind them on the same connection to the same server.
    ///
    /// An implementation that cannot wait for replicas leaves this as it is: every call fails with
    /// [`Unsupported`](ConnectionError::Unsupported), and nothing is sent.
    async fn run_acknowledged(
        &self,
        calls: &[Call<'_>],
        replicas: u32,
        within: Duration,
    ) -> Vec<Result<Acknowledged, ConnectionError>> {
        let _ = (replicas, within);
        let unsupported = "this connection cannot wait for replicas";
        calls.iter().map(|_| Err(ConnectionError::Unsupported(unsupported.to_owned()))).collect()
    }

    /// Subscribes to `channel`, and keeps it subscribed until the stream is dropped.
    ///
    /// Returns once the server has confirmed the first subscription. Dropped before, it leaves none.
    async fn subscribe(&self, channel: &str) -> Result<BoxStream<'static, Notice>, ConnectionError>;

    /// What the server's topology can do.
    fn topology(&self) -> Topology;

    /// A number for the server that executes calls with this key, as far as is known. Holds whose keys are on one server are
    /// renewed together. One server has one number.
    fn node_of(&self, key: &str) -> u64 {
        let _ = key;
        0
    }

    /// What is wrong with the server's setup without being an error, found when connecting.
    fn warnings(&self) -> Vec<Warning> {
        Vec::new()
    }

    /// How often a connection that was lost has been made again, for [`Client::stats`](crate::Client::stats).
    fn reconnects(&self) -> u64 {
        0
    }

    /// A connection to the same server that works without a runtime, for the moment when the runtime has been shut down and
    /// leases are left to release. Polling its calls blocks the thread; connecting and all calls together take no longer
    /// than `within`. `None`: the implementation has no such connection.
    fn without_runtime(&self, within: Duration) -> Option<Box<dyn Connection>> {
        let _ = within;
        None
    }

    /// Closes the connection: every call under way and every later one fails with [`ConnectionError::Closed`],
    /// subscriptions end, nothing reconnects. Dropping the connection does the same.
    fn close(&self);
}

/// One script with its keys and arguments. Made by [`Call::new`]; there may be more fields in later versions.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Call<'a> {
    /// What to run.
    pub script: &'static Script,
    /// `KEYS`: every key the script touches.
    pub keys: &'a [&'a str],
    /// `ARGV`: everything else.
    pub args: &'a [Arg<'a>],
    /// After this the answer is of no use to the caller, and the connection may be broken. `None` leaves the limit to the
    /// connection, which has one of its own for every call; a longer one changes nothing.
    pub within: Option<Duration>,
}

impl<'a> Call<'a> {
    /// A call without a time limit of its own.
    pub fn new(script: &'static Script, keys: &'a [&'a str], args: &'a [Arg<'a>]) -> Self {
        Self { script, keys, args, within: None }
    }

    /// The same call, whose answer is of no use after `within`.
    pub fn within(self, within: Duration) -> Self {
        Self { within: Some(within), ..self }
    }
}

/// One argument of a script.
#[derive(Clone, Copy)]
pub enum Arg<'a> {
    /// Sent as it is.
    Text(&'a str),
    /// Sent in decimal.
    Number(u64),
}

/// Shows numbers only: texts are attempt ids and tickets, which are nobody else's to know.
impl fmt::Debug for Arg<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "<{} bytes>", text.len()),
            Self::Number(number) => number.fmt(f),
        }
    }
}

/// What a script replied.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply {
    /// Nothing.
    Nil,
    /// An integer.
    Integer(i64),
    /// A string of bytes; status replies come as this too.
    Bytes(Vec<u8>),
    /// A list.
    Array(Vec<Reply>),
}

/// What a script replied, and how many replicas have what it wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Acknowledged {
    /// The reply.
    pub reply: Reply,
    /// How many replicas had acknowledged the writes of the script when the wait ended.
    pub replicas: u32,
}

impl Acknowledged {
    /// A reply that so many replicas have acknowledged.
    pub fn new(reply: Reply, replicas: u32) -> Self {
        Self { reply, replicas }
    }
}

/// What a subscription delivers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// A message that was published on the channel.
    Message(Vec<u8>),
    /// Messages may have been missed: the subscription was interrupted, or has just been restored.
    ///
    /// Comes once when the interruption is seen and once when the subscription stands again. An implementation whose calls
    /// have a connection of their own says it after every reconnect of that too: the server may be another one.
    Gap,
    /// The server refused to restore the subscription, or is none that can be used any more: see
    /// [`ConnectionError::Certificate`]. The connection tries again; until it succeeds, no message arrives.
    /// Comes once in an interruption, however many attempts are refused.
    Refused(ConnectionError),
}

/// What the scripts can rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Topology {
    /// `PUBSUB NUMSUB` inside a script counts every subscriber there is. A waiter is passed over if the count of its inbox is 0.
    /// True for one server, false in a cluster, where the count is the node's own.
    pub publish_counts_everyone: bool,
    /// The keys of a call must belong to one name. Holds are renewed by one call each, all of them in one
    /// [`run_batch`](Connection::run_batch). False for one server, where one call renews many holds.
    pub one_name_per_call: bool,
}

impl Topology {
    /// One server.
    pub const fn single_server() -> Self {
        Self { publish_counts_everyone: true, one_name_per_call: false }
    }

    /// A cluster, in which a node knows its own subscribers only.
    pub const fn cluster() -> Self {
        Self { publish_counts_everyone: false, one_name_per_call: true }
    }
}

/// A setup that endangers locks without stopping them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// `maxmemory-policy` is not `noeviction`: the server may drop the keys of held locks to make room.
    Eviction {
        /// The policy that is set.
        policy: String,
    },
    /// [`command_timeout`](crate::ConfigBuilder::command_timeout) is longer than half of the
    /// [`lease`](crate::ConfigBuilder::lease): a call may be waited for until a lease is over.
    SlowTimeout {
        /// The longest wait for the answer to one command.
        command_timeout: Duration,
        /// The lease of holds that ask for none of their own.
        lease: Duration,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Eviction { policy } => {
                write!(f, "maxmemory-policy is {policy}: the server may evict the keys of held locks; set noeviction")
            }
            Self::SlowTimeout { command_timeout, lease } => {
                write!(f, "command_timeout is {command_timeout:?}, which is more than half of the lease of {lease:?}")
            }
        }
    }
}

/// Why a call has no reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// The server answered with an error; the script did not run, or stopped where it was raised.
    #[error("{code} {message}")]
    Refused {
        /// The first word of the answer, such as `WRONGTYPE`.
        code: String,
        /// The rest of it.
        message: String,
    },
    /// No connection could be had before the deadline: the call was not executed.
    #[error("not connected: {0}")]
    Unreachable(String),
    /// No connection could be had, because the server's certificate is not accepted, or it asks for one of the client: the
    /// call was not executed, and the next one fails too until somebody changes the setup.
    #[error("{0}")]
    Certificate(String),
    /// The call was, or may have been, sent, and no answer came: whether it was executed is unknown.
    #[error("no answer: {0}")]
    Unknown(String),
    /// The connection cannot do what was asked of it: nothing was sent.
    #[error("{0}")]
    Unsupported(String),
    /// The connection was closed by its owner, or its runtime was shut down.
    #[error("the connection is closed")]
    Closed,
}

impl ConnectionError {
    /// A refusal, from the error line that the server sent, without the leading `-`.
    ///
    /// The code is made the same for every server: before 7.0, an error raised inside a script comes wrapped as
    /// `ERR Error running script (...): ...: CODE text`; and a missing right of the user comes as
    /// `ERR ... The user executing the script can't ...`, of Valkey as `ERR ACL failure in script: ...`, instead of `NOPERM`.
    pub fn refused(line: &str) -> Self {
        let (code, message) = line.split_once(' ').unwrap_or((line, ""));
        let denied =
            message.contains("The user executing the script can't") || message.starts_with("ACL failure in script");
        if code == "ERR" && denied {
            return Self::Refused { code: "NOPERM".to_owned(), message: message.to_owned() };
        }
        if code == "ERR" && message.starts_with("Error running script") {
            let raised = message.rsplit_once("@user_script:").map_or("", |(_, raised)| raised);
            let raised = raised.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ':' | ' ' | '-'));
            let inner = raised.split(' ').next().unwrap_or("");
            if !inner.is_empty() && inner.chars().all(|c| c.is_ascii_uppercase()) {
                return Self::Refused { code: inner.to_owned(), message: raised[inner.len()..].trim().to_owned() };
            }
        }
        Self::Refused { code: code.to_owned(), message: message.to_owned() }
    }

    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::Unreachable(_) | Self::Unknown(_) => ErrorKind::Unavailable,
            Self::Certificate(_) => ErrorKind::Certificate,
            Self::Unsupported(_) => ErrorKind::Unsupported,
            Self::Closed => ErrorKind::Closed,
            Self::Refused { code, message } => match code.as_str() {
                "NOPERM" | "NOAUTH" | "WRONGPASS" => ErrorKind::Denied,
                "WRONGTYPE" => ErrorKind::WrongType,
                "ERR" if message.contains("nknown") => ErrorKind::Unsupported,
                // There may be room again.
                "ERR" if message.contains("max number of clients") => ErrorKind::Refused,
                "ERR" => ErrorKind::Protocol,
                _ => ErrorKind::Refused,
            },
        }
    }
}

#[cfg(test)]
mod tests;
