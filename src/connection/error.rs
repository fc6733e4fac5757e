//! The error of a call.

use std::error::Error as _;

use crate::error::{Error, ErrorKind};

/// The reason why a call has no reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// The server answered with an error. The script did not run, or stopped where the error was raised.
    #[error("{code} {message}")]
    Refused {
        /// The first word of the answer, such as `WRONGTYPE`.
        code: String,
        /// The rest of the answer.
        message: String,
    },
    /// There was no connection before the deadline. The call was not executed.
    #[error("not connected: {0}")]
    Unreachable(String),
    /// There has been no connection yet. It is made [in the background](crate::ConfigBuilder::connect_in_background),
    /// and the last attempt failed with an error of this kind, other than [`Unavailable`](ErrorKind::Unavailable). The
    /// call was not executed.
    #[error("not connected: {reason}")]
    NotConnected {
        /// The kind of the error that connecting would have failed with.
        kind: ErrorKind,
        /// Its details.
        reason: String,
    },
    /// There is no connection, because the server's certificate is not accepted or the server requires a client
    /// certificate. The call was not executed. Later calls fail too until the setup is changed.
    #[error("{0}")]
    Certificate(String),
    /// The call was or may have been sent, and no answer arrived. It may or may not have been executed.
    #[error("no answer: {0}")]
    Unknown(String),
    /// The connection does not support the call. Nothing was sent.
    #[error("{0}")]
    Unsupported(String),
    /// The connection was closed, or its runtime was shut down.
    #[error("the connection is closed")]
    Closed,
}

impl ConnectionError {
    /// Makes a refusal from the error line that the server sent, without the leading `-`.
    ///
    /// Servers spell some errors differently. This function gives them one code:
    /// - Before Redis 7.0, an error raised inside a script is wrapped as
    ///   `ERR Error running script (...): ...: CODE text`. The code is `CODE`.
    /// - A missing right inside a script is `ERR ... The user executing the script can't ...`, or on Valkey
    ///   `ERR ACL failure in script: ...`. The code is `NOPERM`.
    pub fn refused(line: &str) -> Self {
        let (code, message) = line.split_once(' ').unwrap_or((line, ""));
        // An error that a script has caught and raised again has the code `ERR` once more.
        let raised_again = message.trim_start_matches("ERR ");
        let denied = message.contains("The user executing the script can't")
            || raised_again.starts_with("ACL failure in script");
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

    /// The error of calls until a first connection is made, after an attempt that has failed with `error`.
    pub(crate) fn until_connected(error: &Error) -> Self {
        match (error.kind(), error.source().and_then(|source| source.downcast_ref::<Self>())) {
            (ErrorKind::Closed, _) => Self::Closed,
            // The connection below is made in the background, too, and says why there is none.
            (_, Some(below @ (Self::Unreachable(_) | Self::NotConnected { .. }))) => below.clone(),
            (ErrorKind::Unavailable, _) => Self::Unreachable(error.details()),
            (kind, _) => Self::NotConnected { kind, reason: error.details() },
        }
    }

    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::NotConnected { kind, .. } => *kind,
            Self::Unreachable(_) | Self::Unknown(_) => ErrorKind::Unavailable,
            Self::Certificate(_) => ErrorKind::Certificate,
            Self::Unsupported(_) => ErrorKind::Unsupported,
            Self::Closed => ErrorKind::Closed,
            Self::Refused { code, message } => match code.as_str() {
                "NOPERM" | "NOAUTH" | "WRONGPASS" | "DENIED" => ErrorKind::Denied,
                "WRONGTYPE" => ErrorKind::WrongType,
                "ERR" if message.contains("nknown") => ErrorKind::Unsupported,
                // The server accepts clients again when others disconnect.
                "ERR" if message.contains("max number of clients") => ErrorKind::Refused,
                "ERR" => ErrorKind::Protocol,
                _ => ErrorKind::Refused,
            },
        }
    }
}
