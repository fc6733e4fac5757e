//! The one error type of the public API.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

/// The result of a bowline operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, as a value to match on.
///
/// There may be more kinds in later versions: a `match` needs an arm for the others, in which
/// [`is_retryable`](Self::is_retryable) says what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument, a name, a duration or a URL is not valid, or blocking code was called where it may not block. Nothing was
    /// sent.
    InvalidInput,
    /// The `timeout` ran out before there was what was waited for, or an answer. What was sent is cancelled in the background,
    /// which may take some milliseconds more.
    TimedOut,
    /// `max_waiters` acquisitions wait already.
    QueueFull,
    /// More permits than the semaphore has.
    OverLimit,
    /// Waiting would wait for oneself: the holder that asks to write reads already.
    WouldDeadlock,
    /// The lease is over: Redis dropped the hold, gave it to somebody else, or may have done so. Or the latch that was
    /// waited for ended before it was counted down.
    Lost,
    /// There is no connection to the server, or the server gave no answer in time. Whether the last request was executed is
    /// unknown; what it may have left is cleaned up in the background or ends with its lease.
    ///
    /// When connecting, the message says whether the name was not resolved, the connection was refused, nothing answered at
    /// the address, or the connection broke.
    Unavailable,
    /// The server said no for a reason that may pass (`LOADING`, `BUSY`, `READONLY`, `OOM`, ...).
    Refused,
    /// The server said no because the user lacks a right or could not log in. When connecting, the message names the right.
    Denied,
    /// TLS failed: the server's certificate is expired, for another name, or signed by an authority that this system does
    /// not trust; or the server asks for a certificate of the client.
    Certificate,
    /// The key holds a value of another type: something other than bowline wrote it.
    WrongType,
    /// The server is too old, lacks a command, speaks TLS where the URL says plain or the other way round, or is no Redis
    /// at all.
    Unsupported,
    /// The server answered something that the script never replies.
    Protocol,
    /// The client was closed, or its runtime was shut down.
    Closed,
    /// The [`client_id`](crate::ConfigBuilder::client_id) that was set is that of a client that lives, or whose connection
    /// the server has not yet seen closed.
    ClientIdInUse,
}

impl ErrorKind {
    /// Whether the same call can succeed later without a change to the program or the server's setup.
    ///
    /// Retrying [`Lost`](Self::Lost) means starting over: acquire again, and redo the work under the new token.
    pub fn is_retryable(self) -> bool {
        match self {
            Self::TimedOut | Self::QueueFull | Self::Lost | Self::Unavailable | Self::Refused | Self::ClientIdInUse => {
                true
            }
            Self::InvalidInput
            | Self::OverLimit
            | Self::WouldDeadlock
            | Self::Denied
            | Self::Certificate
            | Self::WrongType
            | Self::Unsupported
            | Self::Protocol
            | Self::Closed => false,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::InvalidInput => "invalid input",
            Self::TimedOut => "timed out",
            Self::QueueFull => "the queue is full",
            Self::OverLimit => "more than the limit",
            Self::WouldDeadlock => "it would wait for itself",
            Self::Lost => "the lease was lost",
            Self::Unavailable => "the server is not available",
            Self::Refused => "the server refused",
            Self::Denied => "the server denied access",
            Self::Certificate => "TLS failed",
            Self::WrongType => "the key holds another type",
            Self::Unsupported => "the server does not support this",
            Self::Protocol => "unexpected reply",
            Self::Closed => "the client is closed",
            Self::ClientIdInUse => "a living client has this id",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An operation that failed: its [`kind`](Self::kind), what was attempted, on which name, and the cause.
///
/// `{}` shows the error without its [`source`](StdError::source), so that a report which walks the chain, such as `{:#}` of
/// anyhow, shows each cause once. `{:#}` of the error itself shows the whole chain in one line. Neither they nor `Debug` show
/// passwords or attempt ids.
///
/// ```
/// # fn show(error: bowline::Error) {
/// eprintln!("{error}");   // lock "orders:42": the server refused
/// eprintln!("{error:#}"); // lock "orders:42": the server refused: LOADING Redis is loading the dataset in memory
/// # }
/// ```
#[derive(Clone)]
pub struct Error {
    kind: ErrorKind,
    operation: &'static str,
    name: Option<Arc<str>>,
    /// What exactly is wrong, in a sentence. It is a part of this error, not a cause of it.
    reason: Option<Arc<str>>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    /// For implementations of [`Executor::block_on`](crate::Executor::block_on), and for tests of code that handles errors.
    pub fn new(kind: ErrorKind, operation: &'static str) -> Self {
        Self { kind, operation, name: None, reason: None, source: None }
    }

    /// An error with a sentence that says what exactly is wrong.
    pub(crate) fn because(kind: ErrorKind, operation: &'static str, reason: impl Into<String>) -> Self {
        Self::new(kind, operation).with_reason(reason)
    }

    /// Says in a sentence what exactly is wrong.
    pub fn with_reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into().into());
        self
    }

    /// Bad input is found before it is known what for.
    pub(crate) fn during(mut self, operation: &'static str) -> Self {
        self.operation = operation;
        self
    }

    pub(crate) fn with_name(mut self, name: &str) -> Self {
        self.name = Some(name.into());
        self
    }

    pub(crate) fn with_source(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What was attempted, for example `"lock"` or `"connect"`.
    pub fn operation(&self) -> &str {
        self.operation
    }

    /// The name of the primitive it was attempted on, if there is one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Short for [`self.kind().is_retryable()`](ErrorKind::is_retryable).
    pub fn is_retryable(&self) -> bool {
        self.kind.is_retryable()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.operation)?;
        if let Some(name) = &self.name {
            write!(f, " {name:?}")?;
        }
        write!(f, ": {}", self.kind)?;
        if let Some(reason) = &self.reason {
            write!(f, ": {reason}")?;
        }
        if f.alternate() { write_causes(f, self) } else { Ok(()) }
    }
}

/// Each level below `error`, after a colon.
fn write_causes(f: &mut fmt::Formatter<'_>, error: &dyn StdError) -> fmt::Result {
    let mut below = error.source();
    while let Some(cause) = below {
        write!(f, ": {cause}")?;
        below = cause.source();
    }
    Ok(())
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Error");
        debug.field("kind", &self.kind).field("operation", &self.operation);
        if let Some(name) = &self.name {
            debug.field("name", name);
        }
        if let Some(reason) = &self.reason {
            debug.field("reason", reason);
        }
        if let Some(source) = &self.source {
            debug.field("source", &format_args!("{}", Chain(&**source)));
        }
        debug.finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// A cause with all causes below it.
struct Chain<'a>(&'a (dyn StdError + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        write_causes(f, self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::ConnectionError;

    #[derive(Debug, thiserror::Error)]
    #[error("asking the server")]
    struct Asking(#[source] ConnectionError);

    /// As reports of errors do, such as anyhow's `{:#}`.
    fn report(error: &dyn StdError) -> String {
        match error.source() {
            Some(cause) => format!("{error}: {}", report(cause)),
            None => error.to_string(),
        }
    }

    #[test]
    fn message_says_what_where_and_why() {
        let error = Error::because(ErrorKind::InvalidInput, "lock", "the name is empty").with_name("a b");
        assert_eq!(error.to_string(), "lock \"a b\": invalid input: the name is empty");
        assert!(format!("{error:?}").contains("InvalidInput") && format!("{error:?}").contains("is empty"));
        assert!(StdError::source(&error).is_none());
    }

    #[test]
    fn each_cause_is_shown_once() {
        let asking = Asking(ConnectionError::refused("LOADING for a while"));
        let error = Error::new(ErrorKind::Refused, "lock").with_name("a").with_source(asking);
        let whole = "lock \"a\": the server refused: asking the server: LOADING for a while";
        assert_eq!(error.to_string(), "lock \"a\": the server refused");
        assert_eq!(format!("{error:#}"), whole);
        assert_eq!(report(&error), whole);
        let shown = format!("{error:?}");
        assert_eq!(shown.matches("LOADING").count(), 1, "{shown}");
    }
}
