//! The outcome of a command: its reply or its error line.

use std::borrow::Cow;

/// The reply of a command to the script that called it.
#[derive(Debug, PartialEq)]
pub(super) enum LuaAnswer {
    Nil,
    Ok,
    Integer(i64),
    Bytes(Vec<u8>),
    Array(Vec<Option<Vec<u8>>>),
    /// Names, each with a count.
    Counts(Vec<(Vec<u8>, usize)>),
    /// Some keys, and the cursor of the next ones.
    Page {
        cursor: Vec<u8>,
        keys: Vec<Vec<u8>>,
    },
}

impl LuaAnswer {
    pub(super) fn count(n: usize) -> Self {
        Self::Integer(i64::try_from(n).unwrap_or(i64::MAX))
    }

    pub(super) fn array(items: impl IntoIterator<Item = Vec<u8>>) -> Self {
        Self::Array(items.into_iter().map(Some).collect())
    }

    pub(super) fn maybe(bytes: Option<&Vec<u8>>) -> Self {
        bytes.map_or(Self::Nil, |bytes| Self::Bytes(bytes.clone()))
    }
}

/// An error reply, as the line that Redis sends without the leading `-`.
#[derive(Debug, PartialEq)]
pub(super) struct Failure(pub(super) Cow<'static, str>);

impl Failure {
    pub(super) const WRONG_TYPE: Self =
        Self(Cow::Borrowed("WRONGTYPE Operation against a key holding the wrong kind of value"));
    pub(super) const SYNTAX: Self = Self(Cow::Borrowed("ERR syntax error"));
    pub(super) const NOT_AN_INTEGER: Self = Self(Cow::Borrowed("ERR value is not an integer or out of range"));
    pub(super) const OVERFLOW: Self = Self(Cow::Borrowed("ERR increment or decrement would overflow"));
    pub(super) const NOT_A_FLOAT: Self = Self(Cow::Borrowed("ERR value is not a valid float"));
    pub(super) const CURSOR: Self = Self(Cow::Borrowed("ERR invalid cursor"));
    pub(super) const NOT_A_RANGE: Self = Self(Cow::Borrowed("ERR min or max is not a float"));
    pub(super) const UNKNOWN: Self = Self(Cow::Borrowed("ERR Unknown Redis command called from script"));
    pub(super) const ARITY: Self = Self(Cow::Borrowed("ERR Wrong number of args calling Redis command from script"));

    pub(super) fn expire_time(command: &str) -> Self {
        Self(format!("ERR invalid expire time in '{command}' command").into())
    }
}
