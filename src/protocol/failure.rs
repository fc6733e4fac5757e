//! The reasons why a script has no outcome.

use std::sync::Arc;

use super::fields::UnexpectedReply;
use crate::connection::ConnectionError;
use crate::connection::refusal::explain;
use crate::error::{Error, ErrorKind};

/// Why a script has no outcome.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    #[error(transparent)]
    Reply(#[from] UnexpectedReply),
    /// The caller waited no longer. The script may have been executed, or may yet be, and this is all that is known of
    /// it.
    #[error(transparent)]
    Late(ConnectionError),
    /// Resources of this kind are never asked that, so nothing was sent.
    #[error("there is no such request about a {0}")]
    NoSuchRequest(&'static str),
    /// The keys and the channel of the name are in different slots of a cluster, so nothing was sent.
    #[error("in a cluster, the name {0:?} and what Redisson derives from it are in different slots")]
    OtherSlots(Arc<str>),
    /// An operator has removed the ticket from the queue.
    #[error("an operator took it out of the queue")]
    Dropped,
}

impl Failure {
    /// Whether the script may have been executed to its end.
    pub(crate) fn may_be_done(&self) -> bool {
        matches!(self, Self::Connection(ConnectionError::Unknown(_)) | Self::Late(_) | Self::Reply(_))
    }

    /// The error of an operation that fails for this reason.
    pub(crate) fn into_error(self, operation: &'static str) -> Error {
        let error = Error::new(self.kind(), operation);
        match self {
            Self::Connection(cause) | Self::Late(cause) => error.with_source(cause),
            Self::Reply(cause) => error.with_source(cause),
            Self::NoSuchRequest(_) | Self::OtherSlots(_) | Self::Dropped => error.with_reason(self.to_string()),
        }
    }

    /// The error of connecting: the server or the user's rights do not fit.
    pub(crate) fn when_connecting(self, prefix: &str) -> Error {
        let explained = match &self {
            Self::Connection(error) | Self::Late(error) => explain(error, prefix),
            Self::Reply(_) | Self::NoSuchRequest(_) | Self::OtherSlots(_) | Self::Dropped => None,
        };
        let error = self.into_error("connect");
        match explained {
            Some(reason) => error.with_reason(reason),
            None => error,
        }
    }

    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Self::Connection(error) | Self::Late(error) => error.kind(),
            Self::Reply(_) | Self::NoSuchRequest(_) => ErrorKind::Protocol,
            Self::OtherSlots(_) => ErrorKind::InvalidInput,
            Self::Dropped => ErrorKind::Dropped,
        }
    }
}
