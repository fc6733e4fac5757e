//! The error type of the public API.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

pub use self::kind::ErrorKind;

mod kind;

/// The result of a bowline operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failed operation: its [`kind`](Self::kind), its [`operation`](Self::operation), the [`name`](Self::name) of the
/// primitive and the cause.
///
/// `{}` prints the error without its [`source`](StdError::source). Reports that walk the chain, such as anyhow's
/// `{:#}`, therefore print each cause once. `{:#}` of this error prints the whole chain in one line. No format,
/// including `Debug`, prints passwords or attempt ids.
///
/// ```
/// # fn show(error: bowline::Error) {
/// eprintln!("{error}");   // lock "orders:42": the server refused
/// eprintln!("{error:#}"); // lock "orders:42": the server refused: LOADING Redis is loading the dataset in memory
/// # }
/// ```
#[derive(Clone)]
pub struct Error {
    /// Boxed, because each result, and each future that waits for one, has room for an error.
    parts: Box<Parts>,
}

#[derive(Clone)]
struct Parts {
    kind: ErrorKind,
    operation: &'static str,
    name: Option<Arc<str>>,
    /// Details in one sentence. They belong to this error and are not its source.
    reason: Option<Arc<str>>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    /// Makes an error without a name or a cause. Meant for implementations of
    /// [`Executor::block_on`](crate::Executor::block_on) and for tests of error handling.
    pub fn new(kind: ErrorKind, operation: &'static str) -> Self {
        Self { parts: Box::new(Parts { kind, operation, name: None, reason: None, source: None }) }
    }

    /// Makes an error with details.
    pub(crate) fn because(kind: ErrorKind, operation: &'static str, reason: impl Into<String>) -> Self {
        Self::new(kind, operation).with_reason(reason)
    }

    /// Adds details in one sentence, which the message shows after the kind.
    pub fn with_reason(mut self, reason: impl Into<String>) -> Self {
        self.parts.reason = Some(reason.into().into());
        self
    }

    /// Sets the operation. Input is checked before the operation that uses it is known.
    pub(crate) fn during(mut self, operation: &'static str) -> Self {
        self.parts.operation = operation;
        self
    }

    /// An operation on no name has an empty one.
    pub(crate) fn with_name(mut self, name: &str) -> Self {
        self.parts.name = Some(name.into()).filter(|name: &Arc<str>| !name.is_empty());
        self
    }

    pub(crate) fn with_source(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.parts.source = Some(Arc::new(source));
        self
    }

    /// The reason and the causes in one line, without the kind and the operation.
    pub(crate) fn details(&self) -> String {
        let reason = self.parts.reason.as_deref().map(str::to_owned);
        let causes = self.source().map(|source| Chain(source).to_string());
        let details: Vec<_> = reason.into_iter().chain(causes).collect();
        if details.is_empty() { self.parts.kind.to_string() } else { details.join(": ") }
    }

    /// The kind of failure.
    pub fn kind(&self) -> ErrorKind {
        self.parts.kind
    }

    /// The operation that failed, for example `"lock"` or `"connect"`.
    pub fn operation(&self) -> &str {
        self.parts.operation
    }

    /// The name of the primitive, if the operation was on one.
    pub fn name(&self) -> Option<&str> {
        self.parts.name.as_deref()
    }

    /// Returns [`self.kind().is_retryable()`](ErrorKind::is_retryable).
    pub fn is_retryable(&self) -> bool {
        self.parts.kind.is_retryable()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.parts.operation)?;
        if let Some(name) = &self.parts.name {
            write!(f, " {name:?}")?;
        }
        write!(f, ": {}", self.parts.kind)?;
        if let Some(reason) = &self.parts.reason {
            write!(f, ": {reason}")?;
        }
        if f.alternate() { write_causes(f, self) } else { Ok(()) }
    }
}

/// Writes the sources of `error`, each after a colon.
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
        debug.field("kind", &self.parts.kind).field("operation", &self.parts.operation);
        if let Some(name) = &self.parts.name {
            debug.field("name", name);
        }
        if let Some(reason) = &self.parts.reason {
            debug.field("reason", reason);
        }
        if let Some(source) = &self.parts.source {
            debug.field("source", &format_args!("{}", Chain(&**source)));
        }
        debug.finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.parts.source.as_deref().map(|source| source as _)
    }
}

/// Displays an error with all its sources.
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

    /// Walks the chain as a report does, such as anyhow's `{:#}`.
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
