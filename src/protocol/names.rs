//! The names that are in use on a server: which keys show it, and the script that looks for these keys.

use std::fmt;

use super::call::{ScriptCall, Scripts};
use super::facts::{BARRIER, ELECTION, Facts, INSIDE, LATCH, LOCK, ONCE, READ_WRITE, SEMAPHORE, TURN, VOTE};
use super::failure::Failure;
use super::fields::Fields;
use super::key::{LIMITER, Named};
use super::script::scripts;

scripts! {
    "names", "names":
    PAGE = "page",
}

/// What a name is the name of, as listed by [`Client::names`](crate::Client::names).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum PrimitiveKind {
    /// A [`Lock`](crate::Lock).
    Lock,
    /// A [`RwLock`](crate::RwLock).
    RwLock,
    /// A [`Semaphore`](crate::Semaphore).
    Semaphore,
    /// A [`CountDownLatch`](crate::CountDownLatch).
    Latch,
    /// A [`Barrier`](crate::Barrier).
    Barrier,
    /// A [`DoubleBarrier`](crate::DoubleBarrier).
    DoubleBarrier,
    /// Work that runs [once](crate::Once) in a period.
    Once,
    /// An [`Election`](crate::Election).
    Election,
    /// A [`RateLimiter`](crate::RateLimiter).
    RateLimiter,
    /// What one master stores of a [`RedLock`](crate::RedLock).
    RedLock,
}

impl fmt::Display for PrimitiveKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lock => "lock",
            Self::RwLock => "read-write lock",
            Self::Semaphore => "semaphore",
            Self::Latch => "latch",
            Self::Barrier => "barrier",
            Self::DoubleBarrier => "double barrier",
            Self::Once => "run",
            Self::Election => "election",
            Self::RateLimiter => "rate limiter",
            Self::RedLock => "RedLock",
        })
    }
}

/// A key that shows that a name is in use.
struct Trace {
    kind: PrimitiveKind,
    word: &'static str,
    ending: &'static str,
}

/// The end of the key of a queue.
const QUEUE: &str = ":queue";

const fn trace(kind: PrimitiveKind, facts: &Facts, ending: &'static str) -> Trace {
    Trace { kind, word: facts.word, ending }
}

/// A name is in use while it is held or waited for. A latch is in use until its life ends, a run for as long as it is
/// remembered, and a rate limiter until its burst is whole again.
const TRACES: [Trace; 18] = [
    trace(PrimitiveKind::Lock, &LOCK, ""),
    trace(PrimitiveKind::Lock, &LOCK, QUEUE),
    trace(PrimitiveKind::RwLock, &READ_WRITE, ""),
    trace(PrimitiveKind::RwLock, &READ_WRITE, QUEUE),
    trace(PrimitiveKind::Semaphore, &SEMAPHORE, ""),
    trace(PrimitiveKind::Semaphore, &SEMAPHORE, QUEUE),
    trace(PrimitiveKind::Latch, &LATCH, ""),
    trace(PrimitiveKind::Latch, &LATCH, ":tickets"),
    trace(PrimitiveKind::Barrier, &BARRIER, ":tickets"),
    trace(PrimitiveKind::DoubleBarrier, &INSIDE, ":tickets"),
    trace(PrimitiveKind::Once, &ONCE, ""),
    trace(PrimitiveKind::Once, &ONCE, ":fence"),
    trace(PrimitiveKind::Election, &ELECTION, ""),
    trace(PrimitiveKind::Election, &ELECTION, QUEUE),
    Trace { kind: PrimitiveKind::RateLimiter, word: LIMITER.0, ending: LIMITER.1 },
    trace(PrimitiveKind::RedLock, &VOTE, ""),
    trace(PrimitiveKind::RedLock, &TURN, ""),
    trace(PrimitiveKind::RedLock, &TURN, QUEUE),
];

/// Which names are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted<'a> {
    /// `None`: all kinds.
    pub(crate) kind: Option<PrimitiveKind>,
    /// Only names that are waited for.
    pub(crate) waited_for: bool,
    /// How the names begin, encoded.
    pub(crate) begins: &'a str,
}

impl Wanted<'_> {
    /// What the server sifts keys by. That takes it half of the time that the script would take.
    fn pattern(self, prefix: &str) -> String {
        let literally = |text: &str| {
            text.chars().fold(String::new(), |mut pattern, char| {
                if matches!(char, '*' | '?' | '[' | '\\') {
                    pattern.push('\\');
                }
                pattern.push(char);
                pattern
            })
        };
        let ending = if self.waited_for { QUEUE } else { "" };
        format!("{}:*:{{{}*{ending}", literally(prefix), literally(self.begins))
    }
}

/// Where the next page begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Page<'a> {
    pub(crate) cursor: &'a str,
    /// How many keys are looked at.
    pub(crate) count: u32,
}

impl Page<'_> {
    /// The cursor that begins and ends.
    pub(crate) const START: &'static str = "0";
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageRead {
    /// Which server has answered.
    pub(crate) run_id: Box<str>,
    /// The cursor of the next page, which is of use on that server only.
    pub(crate) cursor: Box<str>,
    /// The encoded names. Some may be there more than once.
    pub(crate) names: Vec<(PrimitiveKind, Box<str>)>,
}

impl Scripts<'_> {
    /// Reads one page of the names on the server of the key `at`.
    pub(crate) async fn names(
        self,
        at: &Named,
        prefix: &str,
        page: Page<'_>,
        wanted: Wanted<'_>,
    ) -> Result<PageRead, Failure> {
        self.send(names(at, prefix, page, wanted)).await
    }
}

pub(super) fn names<'a>(
    at: &'a Named,
    prefix: &'a str,
    page: Page<'a>,
    wanted: Wanted<'_>,
) -> ScriptCall<'a, PageRead> {
    let call = ScriptCall::new(&PAGE, [at.main()].into_iter(), read);
    let call = call.text(page.cursor).number(page.count).spelled(wanted.pattern(prefix)).text(prefix);
    let traces = TRACES.iter().filter(|trace| wanted.kind.is_none_or(|kind| kind == trace.kind));
    let traces = traces.filter(|trace| !wanted.waited_for || trace.ending == QUEUE);
    traces.fold(call, |call, Trace { word, ending, .. }| call.spelled(format!("{word}{ending}")))
}

fn read(fields: &mut Fields<'_>) -> Option<PageRead> {
    let (run_id, cursor) = (fields.word()?.into(), fields.word()?.into());
    let mut names = Vec::new();
    while !fields.at_end() {
        let (word, name) = (fields.word()?, fields.bytes()?);
        let kind = TRACES.iter().find(|trace| trace.word == word)?.kind;
        // Bowline writes no name that is not a text.
        names.extend(std::str::from_utf8(name).ok().map(|name| (kind, name.into())));
    }
    Some(PageRead { run_id, cursor, names })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::Reply;
    use crate::protocol::fields::decode;

    /// An underscore stands for a byte that is in no text.
    fn page(words: &[&str]) -> Option<PageRead> {
        let bytes = |word: &str| word.bytes().map(|byte| if byte == b'_' { 0xff } else { byte }).collect();
        let words = words.iter().map(|word| Reply::Bytes(bytes(word))).collect();
        decode(&PAGE, &Reply::Array(words), 0, read).ok()
    }

    #[test]
    fn a_page_is_read_to_its_end() {
        let read = page(&["ab", "17", "rw", "a%7B", "lock", "_", "turn", "b"]).unwrap();
        assert_eq!((&*read.run_id, &*read.cursor), ("ab", "17"));
        assert_eq!(read.names, [(PrimitiveKind::RwLock, "a%7B".into()), (PrimitiveKind::RedLock, "b".into())]);
        assert_eq!(page(&["ab", "0"]).unwrap().names, []);
        for wrong in [&[][..], &["ab"], &["ab", "0", "lock"], &["ab", "0", "door", "a"]] {
            assert_eq!(page(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn patterns_match_to_the_letter() {
        let pattern = |begins, waited_for| Wanted { kind: None, waited_for, begins }.pattern("my\\app");
        assert_eq!(pattern("", false), r"my\\app:*:{*");
        assert_eq!(pattern("a*?[b]^-\\", true), r"my\\app:*:{a\*\?\[b]^-\\*:queue");
    }

    #[test]
    fn what_is_asked_for() {
        let at = Named::listing("p", 0);
        let asked = |kind, waited_for| {
            let wanted = Wanted { kind, waited_for, begins: "" };
            let call = names(&at, "p", Page { cursor: Page::START, count: 1 }, wanted);
            call.args.iter().skip(4).map(|word| format!("{:?}", word.as_arg())).count()
        };
        assert_eq!(asked(None, false), TRACES.len());
        assert_eq!(asked(None, true), 5);
        assert_eq!(asked(Some(PrimitiveKind::Lock), false), 2);
        assert_eq!(asked(Some(PrimitiveKind::RateLimiter), false), 1);
        assert_eq!(asked(Some(PrimitiveKind::Lock), true), 1);
    }
}
