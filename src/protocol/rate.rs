//! The rate limiter: its scripts as typed calls. It has no [`Kind`](super::kind::Kind), because nothing of it is
//! queued, held or renewed.

use std::time::Duration;

use super::call::{ScriptCall, Scripts};
use super::failure::Failure;
use super::fields::Fields;
use super::key::Named;
use super::reply::{ServerMillis, Timed};
use super::script::scripts;

scripts! { "rate", "rate": INSPECT = "inspect", RESET = "reset", TAKE = "take" }

/// What is asked of a rate limiter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TakeArgs {
    /// By how much the permits move the theoretical arrival time on.
    pub(crate) cost: Duration,
    /// How far ahead of the clock that time may be without a wait.
    pub(crate) burst: Duration,
    /// The longest wait.
    pub(crate) longest: Duration,
    pub(crate) not_after: ServerMillis,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Whether nothing was taken, because the wait is too long.
    pub(crate) limited: bool,
    /// How long from now on the permits are not free.
    pub(crate) wait: Duration,
    /// How far the theoretical arrival time is ahead of the clock.
    pub(crate) ahead: Duration,
}

pub(super) fn take(named: &Named, args: TakeArgs) -> ScriptCall<'_, Timed<Taken>> {
    let TakeArgs { cost, burst, longest, not_after } = args;
    call(named, &TAKE, taken).nanos(cost).nanos(burst).nanos(longest).number(not_after)
}

pub(super) fn reset(named: &Named, not_after: ServerMillis) -> ScriptCall<'_, Timed<bool>> {
    call(named, &RESET, was_reset).number(not_after)
}

pub(super) fn inspect(named: &Named) -> ScriptCall<'_, (Duration, ServerMillis)> {
    call(named, &INSPECT, |fields| Some((nanos(fields)?, fields.number()?)))
}

fn call<'a, T>(
    named: &'a Named,
    script: &'static super::Script,
    read: fn(&mut Fields<'_>) -> Option<T>,
) -> ScriptCall<'a, T> {
    ScriptCall::new(script, [named.main()].into_iter(), read)
}

fn taken(fields: &mut Fields<'_>) -> Option<Timed<Taken>> {
    let limited = match fields.word()? {
        "TAKEN" => false,
        "LIMITED" => true,
        "STALE" => return Some((None, fields.number()?)),
        _ => return None,
    };
    let taken = Taken { limited, wait: nanos(fields)?, ahead: nanos(fields)? };
    Some((Some(taken), fields.number()?))
}

fn was_reset(fields: &mut Fields<'_>) -> Option<Timed<bool>> {
    Some(match fields.word()? {
        "RESET" => (Some(fields.flag()?), fields.number()?),
        "STALE" => (None, fields.number()?),
        _ => return None,
    })
}

fn nanos(fields: &mut Fields<'_>) -> Option<Duration> {
    fields.number().map(Duration::from_nanos)
}

impl Scripts<'_> {
    pub(crate) async fn take(self, named: &Named, args: TakeArgs) -> Result<Timed<Taken>, Failure> {
        self.send(take(named, args)).await
    }

    pub(crate) async fn reset_rate(self, named: &Named, not_after: ServerMillis) -> Result<Timed<bool>, Failure> {
        self.send(reset(named, not_after)).await
    }

    /// How far the theoretical arrival time is ahead of the clock, and the clock.
    pub(crate) async fn inspect_rate(self, named: &Named) -> Result<(Duration, ServerMillis), Failure> {
        self.send(inspect(named)).await
    }
}
