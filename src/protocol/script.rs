//! A Lua source, composed and hashed once.

use std::fmt;

use super::limits::IN_LUA;

/// A Lua script that the server runs atomically.
///
/// Connections send `EVALSHA` with [`sha1`](Self::sha1) and, when the server answers `NOSCRIPT`, `EVAL` with
/// [`source`](Self::source) to the same server.
pub struct Script {
    name: &'static str,
    #[cfg(any(test, feature = "_mutants"))]
    text: String,
    source: String,
    sha1: String,
}

impl Script {
    pub(crate) fn new(name: &'static str, text: &str) -> Self {
        let text = compose(text);
        let source = stripped(&text);
        let sha1 = sha1_smol::Sha1::from(&source).digest().to_string();
        Self {
            name,
            #[cfg(any(test, feature = "_mutants"))]
            text,
            source,
            sha1,
        }
    }

    /// The source as it is written, with its fragments, comments and indentation.
    #[cfg(any(test, feature = "_mutants"))]
    #[doc(hidden)]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The commands that the script calls. What is not spelled out in a call is no command that anybody knows.
    #[cfg(any(test, feature = "_mutants"))]
    #[doc(hidden)]
    pub fn commands(&self) -> impl Iterator<Item = &str> {
        let code = self.text.lines().filter(|line| !line.trim_start().starts_with("--"));
        let calls = ["redis.call(", "redis.pcall("];
        let called = code.flat_map(move |line| calls.into_iter().flat_map(|call| line.split(call).skip(1)));
        called.map(|rest| rest.strip_prefix('\'').and_then(|rest| rest.split('\'').next()).unwrap_or(rest))
    }

    /// The parts that a script may have more than once.
    #[cfg(feature = "_mutants")]
    #[doc(hidden)]
    pub fn steps() -> impl Iterator<Item = &'static str> {
        FRAGMENTS.iter().map(|(_, text)| *text).filter(|text| text.starts_with("-- Steps:"))
    }

    /// The text with the numbers that its names stand for, as in [`text`](Self::text).
    #[cfg(feature = "_mutants")]
    #[doc(hidden)]
    pub fn with_numbers(text: &str) -> String {
        let mut numbered = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            push_with_numbers(&mut numbered, line);
        }
        numbered
    }

    /// The name of the script in errors and counts, for example `lock_acquire`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The Lua source that is sent, fragments included, without comments and indentation.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The SHA1 of the source, in lower-case hexadecimal.
    pub fn sha1(&self) -> &str {
        &self.sha1
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Script({})", self.name)
    }
}

/// Parts that several scripts share. `--@include <name>` on a line of its own is replaced by the part. Most only define
/// functions. A part whose head begins with "Steps" runs where it stands: a fast path makes no function, so a script
/// may have the same steps once more in a function.
const FRAGMENTS: [(&str, &str); 55] = [
    ("absent", include_str!("fragments/absent.lua")),
    ("ahead", include_str!("fragments/ahead.lua")),
    ("ballot", include_str!("fragments/ballot.lua")),
    ("barrier", include_str!("fragments/barrier.lua")),
    ("changes", include_str!("fragments/changes.lua")),
    ("claimed", include_str!("fragments/claimed.lua")),
    ("clock", include_str!("fragments/clock.lua")),
    ("counter", include_str!("fragments/counter.lua")),
    ("drop_waiters", include_str!("fragments/drop_waiters.lua")),
    ("end_own", include_str!("fragments/end_own.lua")),
    ("fence_ttl", include_str!("fragments/fence_ttl.lua")),
    ("heartbeat", include_str!("fragments/heartbeat.lua")),
    ("held_permit", include_str!("fragments/held_permit.lua")),
    ("hold", include_str!("fragments/hold.lua")),
    ("inbox", include_str!("fragments/inbox.lua")),
    ("latch", include_str!("fragments/latch.lua")),
    ("latch_calls", include_str!("fragments/latch_calls.lua")),
    ("latch_messages", include_str!("fragments/latch_messages.lua")),
    ("listed", include_str!("fragments/listed.lua")),
    ("load", include_str!("fragments/load.lua")),
    ("mark", include_str!("fragments/mark.lua")),
    ("mutex", include_str!("fragments/mutex.lua")),
    ("mutex_hold", include_str!("fragments/mutex_hold.lua")),
    ("newcomers", include_str!("fragments/newcomers.lua")),
    ("news", include_str!("fragments/news.lua")),
    ("note_run", include_str!("fragments/note_run.lua")),
    ("outlive", include_str!("fragments/outlive.lua")),
    ("outnumbers", include_str!("fragments/outnumbers.lua")),
    ("permit_renewed", include_str!("fragments/permit_renewed.lua")),
    ("permit_token", include_str!("fragments/permit_token.lua")),
    ("permits", include_str!("fragments/permits.lua")),
    ("permits_end", include_str!("fragments/permits_end.lua")),
    ("place", include_str!("fragments/place.lua")),
    ("probe", include_str!("fragments/probe.lua")),
    ("process", include_str!("fragments/process.lua")),
    ("promote", include_str!("fragments/promote.lua")),
    ("publish", include_str!("fragments/publish.lua")),
    ("queue", include_str!("fragments/queue.lua")),
    ("read_token", include_str!("fragments/read_token.lua")),
    ("redisson_hold", include_str!("fragments/redisson_hold.lua")),
    ("renew", include_str!("fragments/renew.lua")),
    ("renewed", include_str!("fragments/renewed.lua")),
    ("reserve", include_str!("fragments/reserve.lua")),
    ("run", include_str!("fragments/run.lua")),
    ("send", include_str!("fragments/send.lua")),
    ("sole", include_str!("fragments/sole.lua")),
    ("stored", include_str!("fragments/stored.lua")),
    ("tat", include_str!("fragments/tat.lua")),
    ("timed", include_str!("fragments/timed.lua")),
    ("token", include_str!("fragments/token.lua")),
    ("voted", include_str!("fragments/voted.lua")),
    ("voted_at_once", include_str!("fragments/voted_at_once.lua")),
    ("voting", include_str!("fragments/voting.lua")),
    ("wanted", include_str!("fragments/wanted.lua")),
    ("watched", include_str!("fragments/watched.lua")),
];

fn compose(text: &str) -> String {
    let mut source = String::with_capacity(text.len());
    for line in text.lines() {
        let fragment = line.strip_prefix("--@include ").and_then(|name| FRAGMENTS.iter().find(|(n, _)| *n == name));
        match fragment {
            Some((_, fragment)) => source.push_str(&compose(fragment)),
            None => {
                push_with_numbers(&mut source, line);
                source.push('\n');
            }
        }
    }
    source
}

/// What `redis.call` and `redis.pcall` are called in the source that is sent.
pub(crate) const CALLS: [&str; 2] = ["C", "P"];

/// What functions of Lua are called there, in scripts that become shorter by it.
const FUNCTIONS: [(&str, &str); 5] =
    [("M", "string.match"), ("F", "string.find"), ("T", "string.format"), ("S", "string.sub"), ("N", "tonumber")];

/// Removes comments and indentation, and calls functions by short names. After a server has lost its script cache, all
/// clients send it each script in full at the same time, so scripts are short. A local name is also found faster. No
/// script has a string or a comment of more than one line, or uses one of the short names.
fn stripped(text: &str) -> String {
    let mut source = String::with_capacity(text.len());
    let [call, pcall] = CALLS;
    let is_shorter = |(short, long): &(&str, &str)| {
        let saved = text.matches(&format!("{long}(")).count() * (long.len() - short.len());
        saved > ",=".len() + short.len() + long.len()
    };
    let functions: Vec<_> = FUNCTIONS.into_iter().filter(is_shorter).collect();
    let named = [(call, "redis.call"), (pcall, "redis.pcall")].into_iter().chain(functions.iter().copied());
    let (short, long): (Vec<_>, Vec<_>) = named.unzip();
    source.push_str(&format!("local {}={}\n", short.join(","), long.join(",")));
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("--")) {
        for (n, part) in line.split('\'').enumerate() {
            if n > 0 {
                source.push('\'');
            }
            // Every second part is inside a string.
            if n % 2 == 1 {
                source.push_str(part);
            } else {
                let part = part.replace("redis.call", call).replace("redis.pcall", pcall);
                let shorter = |part: String, (short, long): &(&str, &str)| part.replace(long, short);
                push_tight(&mut source, &functions.iter().fold(part, shorter));
            }
        }
        source.push('\n');
    }
    source
}

/// Removes the spaces around operators and punctuation. They stay around `..`, which may follow a number, and around
/// `-`, which might become a comment.
fn push_tight(source: &mut String, code: &str) {
    let mut words = code.split(' ').peekable();
    while let Some(word) = words.next() {
        source.push_str(word);
        let Some(next) = words.peek() else { return };
        let is_sign = |word: &str| matches!(word, "=" | "==" | "~=" | "<" | ">" | "<=" | ">=" | "+" | "*" | "/");
        if !(word.ends_with(',') || is_sign(word) || is_sign(next)) {
            source.push(' ');
        }
    }
}

/// Replaces the names of [shared numbers](super::limits) in a line of code, and in strings that consist of such a name,
/// because commands take strings faster than numbers. No script has a string with a quote in it.
fn push_with_numbers(source: &mut String, line: &str) {
    if line.trim_start().starts_with("--") {
        source.push_str(line);
        return;
    }
    for (n, part) in line.split('\'').enumerate() {
        if n > 0 {
            source.push('\'');
        }
        if n % 2 == 1 && !IN_LUA.iter().any(|(name, _)| *name == part) {
            source.push_str(part);
        } else {
            push_code(source, part);
        }
    }
}

fn push_code(source: &mut String, code: &str) {
    let mut rest = code;
    while let Some(start) = rest.find(in_word) {
        let (before, from_word) = rest.split_at(start);
        let (word, behind) = from_word.split_at(from_word.find(|c| !in_word(c)).unwrap_or(from_word.len()));
        source.push_str(before);
        match IN_LUA.iter().find(|(name, _)| *name == word) {
            Some((_, number)) => source.push_str(&number.to_string()),
            None => source.push_str(word),
        }
        rest = behind;
    }
    source.push_str(rest);
}

fn in_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Declares the scripts of a folder. Each becomes a static named after its file, and `SCRIPTS` lists them.
macro_rules! scripts {
    ($folder:literal, $prefix:literal: $($constant:ident = $file:literal),+ $(,)?) => {
        $(static $constant: std::sync::LazyLock<$crate::protocol::script::Script> = std::sync::LazyLock::new(|| {
            let text = include_str!(concat!($folder, "/", $file, ".lua"));
            $crate::protocol::script::Script::new(concat!($prefix, "_", $file), text)
        });)+
        pub(super) static SCRIPTS: &[&std::sync::LazyLock<$crate::protocol::script::Script>] = &[$(&$constant),+];
    };
}
pub(super) use scripts;

#[cfg(test)]
mod tests;
