//! Counters in the format of Redisson, which Java programs change as well: the scripts as typed calls.
//!
//! | who writes | spelled | contents |
//! |---|---|---|
//! | Redisson, too | the name itself | a string: the count of a latch, or the permits of a semaphore. It has no TTL |
//! | Redisson, too | the channel of a latch, `redisson_countdownlatch__channel__{<name>}` | `1` when it is set, `0` when it is open |
//! | Redisson, too | the channel of a semaphore, `redisson_sc:{<name>}` | how many threads to wake, when there are permits |
//! | bowline | `<prefix>:call:{<hash tag of the name>}:<attempt id>` | a string: the answer to a call that must not be executed twice |

use super::call::{ScriptCall, Scripts, Site};
use super::copy::CallCopy;
use super::failure::Failure;
use super::fields::Fields;
use super::key::SharedCounter;
use super::reply::{ServerMillis, Timed};
use super::script::{Script, scripts};

scripts! {
    "shared_counter", "shared":
    COUNT = "count",
    COUNT_DOWN = "count_down",
    RELEASE = "release",
    SET = "set",
    TAKE = "take",
}

/// What the names of the scripts begin with.
pub(super) const PREFIX: &str = "shared_";

/// A call that is marked. `mark` is that of the copy.
fn marked<'a, T>(
    script: &'static Script,
    (counter, mark): (&'a SharedCounter, &'a str),
    read: fn(&mut Fields<'_>) -> Option<T>,
) -> ScriptCall<'a, T> {
    ScriptCall::new(script, [counter.main(), mark].into_iter(), read)
}

/// What all marked calls get.
fn of_copy<'a, T>(
    call: ScriptCall<'a, T>,
    counter: &'a SharedCounter,
    site: Site<'a>,
    copy: CallCopy,
) -> ScriptCall<'a, T> {
    call.copy(copy).text(counter.channel()).text(site.how())
}

/// Sets a latch to a count, or a semaphore to a number of permits.
pub(super) fn set<'a>(
    counter: (&'a SharedCounter, &'a str),
    site: Site<'a>,
    copy: CallCopy,
    new: u32,
) -> ScriptCall<'a, Timed<bool>> {
    let call = of_copy(marked(&SET, counter, was_set).number(new), counter.0, site, copy);
    if counter.0.is_latch() { call.text("1") } else { call.number(new) }
}

/// `permits` 0 means all that are there.
pub(super) fn take<'a>(
    counter: (&'a SharedCounter, &'a str),
    site: Site<'a>,
    copy: CallCopy,
    (permits, tries_channel): (u32, bool),
) -> ScriptCall<'a, Timed<u32>> {
    let call = of_copy(marked(&TAKE, counter, taken).number(permits), counter.0, site, copy);
    if tries_channel { call.spelled(format!("{}:check", counter.0.channel())) } else { call.text("") }
}

/// What is given to a semaphore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    /// So many permits, which may be negative.
    Permits(i64),
    /// What the call with the same id has taken, if anything.
    Unknown,
}

pub(super) fn release<'a>(
    counter: (&'a SharedCounter, &'a str),
    site: Site<'a>,
    copy: CallCopy,
    given: Given,
) -> ScriptCall<'a, Timed<()>> {
    let (permits, taken) = match given {
        Given::Permits(permits) => (permits, "yes"),
        Given::Unknown => (0, "unknown"),
    };
    let call = marked(&RELEASE, counter, released).spelled(permits.to_string());
    of_copy(call, counter.0, site, copy).text(taken)
}

pub(super) fn count_down<'a>(
    counter: (&'a SharedCounter, &'a str),
    site: Site<'a>,
    copy: CallCopy,
) -> ScriptCall<'a, Timed<u64>> {
    of_copy(marked(&COUNT_DOWN, counter, counted), counter.0, site, copy)
}

pub(super) fn count(counter: &SharedCounter) -> ScriptCall<'_, (u64, ServerMillis)> {
    ScriptCall::new(&COUNT, [counter.main()].into_iter(), |fields| {
        let now = fields.number()?;
        Some((fields.number()?, now))
    })
}

fn was_set(fields: &mut Fields<'_>) -> Option<Timed<bool>> {
    let answer = match fields.word()? {
        "SET" => Some(true),
        "EXISTS" => Some(false),
        "STALE" => None,
        _ => return None,
    };
    Some((answer, fields.number()?))
}

fn counted(fields: &mut Fields<'_>) -> Option<Timed<u64>> {
    in_time(fields, "COUNT", |fields| fields.number())
}

fn taken(fields: &mut Fields<'_>) -> Option<Timed<u32>> {
    in_time(fields, "TAKEN", |fields| fields.units())
}

fn released(fields: &mut Fields<'_>) -> Option<Timed<()>> {
    in_time(fields, "RELEASED", |_| Some(()))
}

/// What follows the word, unless the call was too late.
fn in_time<T>(fields: &mut Fields<'_>, word: &str, read: impl Fn(&mut Fields<'_>) -> Option<T>) -> Option<Timed<T>> {
    let answer = match fields.word()? {
        "STALE" => None,
        said if said == word => Some(read(fields)?),
        _ => return None,
    };
    Some((answer, fields.number()?))
}

impl Scripts<'_> {
    pub(crate) async fn set_shared(
        self,
        counter: &SharedCounter,
        copy: CallCopy,
        new: u32,
    ) -> Result<Timed<bool>, Failure> {
        let mark = self.mark(counter, copy)?;
        self.send(set((counter, &mark), self.site(counter), copy, new)).await
    }

    pub(crate) async fn take_shared(
        self,
        counter: &SharedCounter,
        copy: CallCopy,
        wanted: (u32, bool),
    ) -> Result<Timed<u32>, Failure> {
        let mark = self.mark(counter, copy)?;
        self.send(take((counter, &mark), self.site(counter), copy, wanted)).await
    }

    pub(crate) async fn release_shared(
        self,
        counter: &SharedCounter,
        copy: CallCopy,
        given: Given,
    ) -> Result<Timed<()>, Failure> {
        let mark = self.mark(counter, copy)?;
        self.send(release((counter, &mark), self.site(counter), copy, given)).await
    }

    pub(crate) async fn count_down_shared(
        self,
        counter: &SharedCounter,
        copy: CallCopy,
    ) -> Result<Timed<u64>, Failure> {
        let mark = self.mark(counter, copy)?;
        self.send(count_down((counter, &mark), self.site(counter), copy)).await
    }

    pub(crate) async fn shared_count(self, counter: &SharedCounter) -> Result<(u64, ServerMillis), Failure> {
        counter.check_slots(self.connection.topology())?;
        self.send(count(counter)).await
    }

    /// The mark of a call, if its name can be used.
    fn mark(self, counter: &SharedCounter, copy: CallCopy) -> Result<String, Failure> {
        counter.check_slots(self.connection.topology())?;
        Ok(counter.mark(copy.id))
    }
}
