//! The script registry: every Lua source, composed once and hashed once.

use std::fmt;
use std::sync::LazyLock;

#[cfg(test)]
mod arity;
pub(crate) mod call;
pub(crate) mod client;
pub(crate) mod dispatch;
pub(crate) mod key;
pub(crate) mod latch;
pub(crate) mod lock;
pub(crate) mod permit;
pub(crate) mod reply;
pub(crate) mod ticket;
pub(crate) mod token;

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
    fn new(name: &'static str, text: &str) -> Self {
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

    /// As it is written, fragments included: what the source is without comments and indentation.
    #[cfg(any(test, feature = "_mutants"))]
    #[doc(hidden)]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What it is called in errors and counts, for example `lock_acquire`.
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

    /// Every script, in the order of their names.
    pub fn all() -> impl Iterator<Item = &'static Script> {
        REGISTRY.iter()
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Script({})", self.name)
    }
}

/// Parts that several scripts share. `--@include <name>` on a line of its own is replaced by the part.
const FRAGMENTS: [(&str, &str); 10] = [
    ("absent", include_str!("protocol/fragments/absent.lua")),
    ("calls", include_str!("protocol/fragments/calls.lua")),
    ("clock", include_str!("protocol/fragments/clock.lua")),
    ("hold", include_str!("protocol/fragments/hold.lua")),
    ("latch", include_str!("protocol/fragments/latch.lua")),
    ("outlive", include_str!("protocol/fragments/outlive.lua")),
    ("queue", include_str!("protocol/fragments/queue.lua")),
    ("tell", include_str!("protocol/fragments/tell.lua")),
    ("token", include_str!("protocol/fragments/token.lua")),
    ("units", include_str!("protocol/fragments/units.lua")),
];

fn compose(text: &str) -> String {
    let mut source = String::with_capacity(text.len());
    for line in text.lines() {
        let fragment = line.strip_prefix("--@include ").and_then(|name| FRAGMENTS.iter().find(|(n, _)| *n == name));
        match fragment {
            Some((_, fragment)) => source.push_str(&compose(fragment)),
            None => {
                source.push_str(line);
                source.push('\n');
            }
        }
    }
    source
}

/// A server that has forgotten the scripts is sent each as a whole, by all its clients at once: what only people read stays
/// at home. No script has a string or a comment of more than one line.
fn stripped(text: &str) -> String {
    let mut source = String::with_capacity(text.len());
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("--")) {
        source.push_str(line);
        source.push('\n');
    }
    source
}

macro_rules! registry {
    ($($constant:ident = $name:literal;)+) => {
        static REGISTRY: LazyLock<Vec<Script>> = LazyLock::new(|| {
            vec![$(Script::new($name, include_str!(concat!("protocol/", $name, ".lua")))),+]
        });
        #[expect(non_camel_case_types, reason = "named after the constants")]
        enum Index { $($constant),+ }
        $(pub(crate) static $constant: LazyLock<&'static Script> =
            LazyLock::new(|| &REGISTRY[Index::$constant as usize]);)+
    };
}

registry! {
    CLIENT_LISTENERS = "client_listeners";
    LATCH_CANCEL = "latch_cancel";
    LATCH_COUNT_DOWN = "latch_count_down";
    LATCH_DELETE = "latch_delete";
    LATCH_HEARTBEAT = "latch_heartbeat";
    LATCH_INSPECT = "latch_inspect";
    LATCH_SET = "latch_set";
    LATCH_WAIT = "latch_wait";
    LOCK_ACQUIRE = "lock_acquire";
    LOCK_CANCEL = "lock_cancel";
    LOCK_FORCE_RELEASE = "lock_force_release";
    LOCK_HEARTBEAT = "lock_heartbeat";
    LOCK_INSPECT = "lock_inspect";
    LOCK_RELEASE = "lock_release";
    LOCK_RENEW = "lock_renew";
    PERMIT_ACQUIRE = "permit_acquire";
    PERMIT_CANCEL = "permit_cancel";
    PERMIT_CHANGE = "permit_change";
    PERMIT_HEARTBEAT = "permit_heartbeat";
    PERMIT_INSPECT = "permit_inspect";
    PERMIT_LIMIT = "permit_limit";
    PERMIT_RELEASE = "permit_release";
    PERMIT_RENEW = "permit_renew";
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header<'a>(script: &'a Script, field: &str) -> &'a str {
        let prefix = format!("-- {field}:");
        let line = script.text().lines().take_while(|line| line.starts_with("--")).find(|l| l.starts_with(&prefix));
        line.unwrap_or_else(|| panic!("{} has no {field} in its header", script.name()))[prefix.len()..].trim()
    }

    /// Highest N in `KEYS[N]` or `ARGV[N]`, fragments included.
    fn highest(script: &Script, array: &str) -> usize {
        let mut highest = 0;
        for part in script.source().split(&format!("{array}[")).skip(1) {
            if let Ok(n) = part[..part.find(']').unwrap()].parse() {
                highest = highest.max(n);
            }
        }
        highest
    }

    #[test]
    fn headers_say_what_the_scripts_use() {
        for script in Script::all() {
            for (field, array) in [("KEYS", "KEYS"), ("ARGV", "ARGV")] {
                let header = header(script, field);
                let fixed =
                    header.split(' ').filter(|word| !word.is_empty()).take_while(|w| !w.starts_with('[')).count();
                assert!(highest(script, array) <= fixed, "{} {field}", script.name());
            }
            assert!(!header(script, "Reply").is_empty());
        }
    }

    #[test]
    fn fragments_are_all_known_and_keys_are_never_built_in_lua() {
        for script in Script::all() {
            assert!(!script.source().contains("--@include"), "{}", script.name());
            assert!(!script.source().contains(":{"), "{}", script.name());
            assert_eq!(script.sha1().len(), 40);
        }
    }

    /// What is left is the same program: its words and strings in their order.
    #[test]
    fn comments_blank_lines_and_indentation_are_not_sent() {
        let text = "-- Head.\n\nlocal a = '--' -- why\n  if a then\n\t-- what\n    return 'x  y'\n  end\n";
        assert_eq!(stripped(text), "local a = '--' -- why\nif a then\nreturn 'x  y'\nend\n");
        for script in Script::all() {
            assert!(!script.text().contains("[[") && !script.text().contains("[="), "{}", script.name());
            for line in script.source().lines() {
                assert_eq!(line, line.trim(), "{}", script.name());
                assert!(!line.is_empty() && !line.contains("--"), "{}: {line}", script.name());
                assert_eq!(line.matches('\'').count() % 2, 0, "a string goes on: {line}");
                assert!(!line.ends_with('\\'));
            }
            assert!(script.source().len() < 13_000, "{} has {} bytes", script.name(), script.source().len());
        }
    }

    #[test]
    fn names_are_sorted_and_constants_point_at_their_script() {
        let names: Vec<_> = Script::all().map(Script::name).collect();
        assert!(names.is_sorted());
        assert_eq!(LOCK_ACQUIRE.name(), "lock_acquire");
        assert_eq!(LOCK_HEARTBEAT.name(), "lock_heartbeat");
    }
}
