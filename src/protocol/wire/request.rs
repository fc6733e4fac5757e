//! A call that owns its keys and arguments.

use super::super::call::ScriptCall;
use super::super::script::Script;
use crate::connection::{Arg, Call};

/// A script with its keys and arguments, which outlives the call that sends it.
#[derive(Clone, Debug)]
pub struct Request {
    /// The script that is run.
    pub script: &'static Script,
    keys: Vec<String>,
    args: Vec<OwnedArg>,
}

#[derive(Clone, Debug)]
enum OwnedArg {
    Text(String),
    Number(u64),
}

impl Request {
    /// A copy of the call.
    pub fn new(call: &Call<'_>) -> Self {
        Self::made(call.script, call.keys, call.args.iter().copied())
    }

    pub(super) fn of<T>(call: &ScriptCall<'_, T>) -> Self {
        Self::made(call.script, &call.keys(), call.args.iter().map(|word| word.as_arg()))
    }

    fn made<'a>(script: &'static Script, keys: &[&str], args: impl Iterator<Item = Arg<'a>>) -> Self {
        let args = args.map(|arg| match arg {
            Arg::Text(text) => OwnedArg::Text(text.to_owned()),
            Arg::Number(number) => OwnedArg::Number(number),
        });
        Self { script, keys: keys.iter().map(|key| (*key).to_owned()).collect(), args: args.collect() }
    }

    /// Passes the call to `using`. Its only time limit is the connection's.
    pub fn with_call<T>(&self, using: impl FnOnce(Call<'_>) -> T) -> T {
        using(Call::new(self.script, &self.keys(), &self.args()))
    }

    /// `KEYS`.
    pub fn keys(&self) -> Vec<&str> {
        self.keys.iter().map(String::as_str).collect()
    }

    /// `ARGV`.
    pub fn args(&self) -> Vec<Arg<'_>> {
        let args = self.args.iter().map(|arg| match arg {
            OwnedArg::Text(text) => Arg::Text(text),
            OwnedArg::Number(number) => Arg::Number(*number),
        });
        args.collect()
    }

    /// `ARGV` as the server receives it, where texts and numbers do not differ.
    pub fn words(&self) -> Vec<String> {
        let words = self.args.iter().map(|arg| match arg {
            OwnedArg::Text(text) => text.clone(),
            OwnedArg::Number(number) => number.to_string(),
        });
        words.collect()
    }
}
