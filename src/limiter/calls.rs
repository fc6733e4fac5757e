//! The calls of a rate limiter, each of which is sent at most once, unless it was not executed.

use std::time::Duration;

use super::quota::{Quota, Terms};
use crate::acquire::wait::LastFailure;
use crate::driver::retry::Retry;
use crate::error::Result;
use crate::handle::Primitive;
use crate::mutant::{self, Mutant};
use crate::protocol::dispatch::{Failure, Scripts};
use crate::protocol::key::Named;
use crate::protocol::rate::{TakeArgs, Taken};
use crate::protocol::reply::{ServerMillis, Timed};

/// What the handle and its waits share.
#[derive(Clone, Debug)]
pub(super) struct Calls {
    pub(super) primitive: Primitive<Named>,
    pub(super) quota: Quota,
}

impl Calls {
    /// What a call asks for, if it is valid.
    pub(super) fn terms(&self, operation: &'static str, cost: u32) -> Result<Terms> {
        let named = self.primitive.keys(operation)?;
        self.quota.for_call(operation, cost).map_err(|error| error.with_name(&named.name))
    }

    /// Takes what the call costs if the wait is at most `longest`, which is called when the request is sent. With
    /// `gives_up`, the server takes nothing once that time has passed.
    pub(super) async fn take(
        &self,
        operation: &'static str,
        terms: &Terms,
        (longest, gives_up): (impl Fn() -> Duration, bool),
        last: Option<&LastFailure>,
    ) -> Result<Taken> {
        let Terms { cost, burst, .. } = *terms;
        let context = self.primitive.context();
        self.ask(operation, last, |scripts, named, not_after| {
            let longest = longest();
            let not_after = match gives_up {
                true => not_after.min(context.not_after(context.now(), Some(longest))),
                false => not_after,
            };
            scripts.take(named, TakeArgs { cost, burst, longest, not_after })
        })
        .await
    }

    /// Sends the request, and sends it again only if it was not executed: a copy would take once more.
    pub(super) async fn ask<'a, T, F>(
        &'a self,
        operation: &'static str,
        last: Option<&LastFailure>,
        call: impl Fn(Scripts<'a>, &'a Named, ServerMillis) -> F,
    ) -> Result<T>
    where
        F: Future<Output = std::result::Result<Timed<T>, Failure>>,
    {
        let stop = |retry: &Retry<'_>, failure: Failure| {
            if failure.may_be_done() && !mutant::on(Mutant::PermitsTakenAgain) {
                return Err(retry.error(failure).with_reason("the request may have been executed"));
            }
            if let Some(last) = last {
                last.set(Some(&failure));
            }
            Ok(failure)
        };
        // A server that was frozen must not take permits for callers that have given up.
        self.primitive.ask_in_time_unless(operation, stop, call).await
    }
}
