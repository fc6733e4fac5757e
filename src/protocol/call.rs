//! A script with its keys and arguments, and how its reply is read.

use std::borrow::Cow;
use std::time::Duration;

use super::failure::Failure;
use super::fields::{Fields, decode};
use super::key::Named;
use super::script::Script;
use crate::connection::{Acknowledged, Arg, Call, Connection, ConnectionError, Topology};
use crate::mutant::{self, Mutant};

mod args;

/// A connection, with the argument that is the same in all calls of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scripts<'a> {
    pub(crate) connection: &'a dyn Connection,
    pub(crate) inbox_prefix: &'a str,
}

/// The arguments that every script gets that may send messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site<'a> {
    /// The common prefix of all clients' inboxes.
    pub(crate) inbox_prefix: &'a str,
    /// The slot of the keys, if messages are sharded. Scripts derive it from the hash tag in the prefix that they are
    /// given.
    pub(crate) slot: Option<u16>,
    /// Whether the server can count every subscriber of an inbox.
    pub(crate) counts_everyone: bool,
    /// Whether the caller reads the messages for its own client in the reply of a release.
    pub(crate) listens: bool,
}

/// A typed call: nothing is sent until [`Scripts::send`].
pub(crate) struct ScriptCall<'a, T> {
    pub(super) script: &'static Script,
    keys: Vec<&'a str>,
    /// One more key, which was spelled for this call.
    mark: Option<Box<str>>,
    pub(super) args: Vec<Word<'a>>,
    /// The number of entries in the reply, for calls about several holds or tickets.
    entries: usize,
    pub(super) read: Read<T>,
}

/// Reads a reply.
type Read<T> = fn(&mut Fields<'_>) -> Option<T>;

/// An argument, either borrowed or formatted for this call.
pub(super) enum Word<'a> {
    Text(&'a str),
    Spelled(String),
    Number(u64),
}

impl Site<'_> {
    /// The way of messages on channels of Redisson. In a cluster in which this client has no shard channels, Redisson
    /// may have them: then both kinds are sent.
    pub(super) fn how(self) -> &'static str {
        match self {
            Site { slot: Some(_), .. } => "sharded",
            Site { counts_everyone: true, .. } => "single",
            Site { .. } => "both",
        }
    }
}

impl<'a> Scripts<'a> {
    /// The arguments for calls with these keys.
    pub(super) fn site(self, keys: &Named) -> Site<'a> {
        let Topology { publish_counts_everyone: counts_everyone, sharded_messages, .. } = self.connection.topology();
        let counts_everyone = counts_everyone || mutant::on(Mutant::ReceiversBelieved);
        let slot = sharded_messages.then(|| keys.slot());
        Site { inbox_prefix: self.inbox_prefix, slot, counts_everyone, listens: true }
    }

    pub(super) fn send<T>(self, call: ScriptCall<'a, T>) -> impl Future<Output = Result<T, Failure>> {
        self.send_within(call, None)
    }

    /// Like [`send`](Self::send), for an answer that is of no use after `within`.
    pub(super) fn send_within<T>(
        self,
        call: ScriptCall<'a, T>,
        within: Option<Duration>,
    ) -> impl Future<Output = Result<T, Failure>> {
        self.send_told(call, within, true)
    }

    /// Like [`send`](Self::send), for a caller that shows no error to anyone. A key of a wrong type costs no other
    /// call, and no time.
    pub(super) fn send_quietly<T>(self, call: ScriptCall<'a, T>) -> impl Future<Output = Result<T, Failure>> {
        self.send_told(call, None, false)
    }

    /// With `is_told`, the error of a key of a wrong type says which key.
    async fn send_told<T>(
        self,
        call: ScriptCall<'a, T>,
        within: Option<Duration>,
        is_told: bool,
    ) -> Result<T, Failure> {
        let explained = {
            let args: Vec<Arg<'_>> = call.args.iter().map(Word::as_arg).collect();
            let keys = call.keys();
            match self.connection.run(Call { within, ..Call::new(call.script, &keys, &args) }).await {
                Err(error) if is_told && is_about_types(&error) => self.explained(call.script, &call.keys, error),
                reply => return Ok(decode(call.script, &reply?, call.entries, call.read)?),
            }
        };
        Err(explained.await.into())
    }
}

impl Scripts<'_> {
    /// Sends several calls at once. The answers are in the order of the calls, and one error does not affect the other
    /// calls.
    pub(super) async fn send_each<T>(self, calls: &[ScriptCall<'_, T>], within: Duration) -> Vec<Result<T, Failure>> {
        let (keys, args) = words(calls);
        let batch = calls.iter().zip(&keys).zip(&args);
        let batch = batch.map(|((call, keys), args)| Call::new(call.script, keys, args).within(within));
        let replies = self.connection.run_batch(&batch.collect::<Vec<_>>()).await;
        let read = |(call, reply): (&ScriptCall<'_, T>, Result<_, _>)| {
            Ok(decode(call.script, &reply?, call.entries, call.read)?)
        };
        calls.iter().zip(replies).map(read).collect()
    }

    pub(super) async fn send_one_acknowledged<T>(
        self,
        call: ScriptCall<'_, T>,
        replicas: u32,
        within: Duration,
    ) -> Result<(T, u32), Failure> {
        let explained = match self.send_one_acknowledged_quietly(&call, replicas, within).await {
            Err(Failure::Connection(error)) if is_about_types(&error) => self.explained(call.script, &call.keys, error),
            answer => return answer,
        };
        Err(explained.await.into())
    }

    /// See [`send_quietly`](Self::send_quietly).
    pub(super) async fn send_one_acknowledged_quietly<T>(
        self,
        call: &ScriptCall<'_, T>,
        replicas: u32,
        within: Duration,
    ) -> Result<(T, u32), Failure> {
        let answer = self.send_acknowledged(std::slice::from_ref(call), replicas, within).await.pop();
        answer.unwrap_or_else(|| Err(ConnectionError::Unknown("the answer is missing".to_owned()).into()))
    }

    /// Like [`send_each`](Self::send_each). Each answer comes with the number of replicas that have acknowledged the
    /// call.
    pub(super) async fn send_acknowledged<T>(
        self,
        calls: &[ScriptCall<'_, T>],
        replicas: u32,
        within: Duration,
    ) -> Vec<Result<(T, u32), Failure>> {
        let (keys, args) = words(calls);
        let batch = calls.iter().zip(&keys).zip(&args).map(|((call, keys), args)| Call::new(call.script, keys, args));
        let batch: Vec<_> = batch.collect();
        let answers = self.connection.run_acknowledged(&batch, replicas, within).await;
        let read = |(call, answer): (&ScriptCall<'_, T>, Result<Acknowledged, ConnectionError>)| {
            let Acknowledged { reply, replicas } = answer?;
            Ok((decode(call.script, &reply, call.entries, call.read)?, replicas))
        };
        calls.iter().zip(answers).map(read).collect()
    }
}

fn is_about_types(error: &ConnectionError) -> bool {
    matches!(error, ConnectionError::Refused { code, .. } if code == "WRONGTYPE")
}

/// The keys and the arguments of several calls.
type Words<'a> = (Vec<Cow<'a, [&'a str]>>, Vec<Vec<Arg<'a>>>);

fn words<'a, T>(calls: &'a [ScriptCall<'_, T>]) -> Words<'a> {
    calls.iter().map(|call| (call.keys(), call.args.iter().map(Word::as_arg).collect())).unzip()
}

impl<'a, T> ScriptCall<'a, T> {
    pub(super) fn new(script: &'static Script, keys: impl Iterator<Item = &'a str>, read: Read<T>) -> Self {
        Self { script, keys: keys.collect(), mark: None, args: Vec::with_capacity(11), entries: 0, read }
    }

    /// Adds the key of a mark.
    pub(super) fn marked(self, mark: String) -> Self {
        Self { mark: Some(mark.into()), ..self }
    }

    /// The keys, in the order of `KEYS` in the script.
    pub(super) fn keys(&self) -> Cow<'_, [&str]> {
        match &self.mark {
            None => Cow::Borrowed(&self.keys),
            Some(mark) => self.keys.iter().copied().chain([&**mark]).collect(),
        }
    }

    /// The same call, whose reply is read in another way.
    pub(super) fn read_as<U>(self, read: Read<U>) -> ScriptCall<'a, U> {
        let Self { script, keys, mark, args, entries, .. } = self;
        ScriptCall { script, keys, mark, args, entries, read }
    }
}

impl Word<'_> {
    pub(super) fn as_arg(&self) -> Arg<'_> {
        match self {
            Self::Text(text) => Arg::Text(text),
            Self::Spelled(text) => Arg::Text(text),
            Self::Number(number) => Arg::Number(*number),
        }
    }
}
