//! What a call asks for, independent of whoever waits for the answer.

use bowline::{Arg, Call, Script};

pub struct Request {
    pub script: &'static Script,
    keys: Vec<String>,
    args: Vec<OwnedArg>,
}

enum OwnedArg {
    Text(String),
    Number(u64),
}

impl Request {
    pub fn new(call: &Call<'_>) -> Self {
        let args = call.args.iter().map(|arg| match arg {
            Arg::Text(text) => OwnedArg::Text((*text).to_owned()),
            Arg::Number(number) => OwnedArg::Number(*number),
        });
        Self {
            script: call.script,
            keys: call.keys.iter().map(|key| (*key).to_owned()).collect(),
            args: args.collect(),
        }
    }

    pub fn with_call<T>(&self, using: impl FnOnce(Call<'_>) -> T) -> T {
        using(Call::new(self.script, &self.keys(), &self.args()))
    }

    pub fn keys(&self) -> Vec<&str> {
        self.keys.iter().map(String::as_str).collect()
    }

    pub fn args(&self) -> Vec<Arg<'_>> {
        self.args
            .iter()
            .map(|arg| match arg {
                OwnedArg::Text(text) => Arg::Text(text),
                OwnedArg::Number(number) => Arg::Number(*number),
            })
            .collect()
    }
}
