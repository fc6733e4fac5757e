//! The calls of a rate limiter, each of which is sent at most once, unless it was not executed.

use std::pin::pin;
use std::time::Duration;

use super::quota::{Quota, Terms};
use crate::acquire::wait::LastFailure;
use crate::error::Result;
use crate::handle::Primitive;
use crate::mutant::{self, Mutant};
use crate::protocol::dispatch::{Failure, Scripts};
use crate::protocol::key::Named;
use crate::protocol::rate::{TakeArgs, Taken, Timed};
use crate::protocol::reply::ServerMillis;

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

    /// Takes what the call costs, if the wait for it is at most `longest`, as that is when the request is sent.
    pub(super) async fn take(
        &self,
        operation: &'static str,
        terms: &Terms,
        longest: impl Fn() -> Duration,
        last: Option<&LastFailure>,
    ) -> Result<Taken> {
        let Terms { cost, burst, .. } = *terms;
        self.ask(operation, last, |scripts, named, not_after| {
            scripts.take(named, TakeArgs { cost, burst, longest: longest(), not_after })
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
        let context = self.primitive.context();
        let named = self.primitive.keys(operation)?;
        let mut retry = context.retry(operation, named);
        loop {
            let sent = retry.begin().await?;
            // A server that was frozen must not take permits for callers that have given up.
            let not_after = context.not_after(sent, retry.limit(sent));
            let call = pin!(call(context.scripts(), named, not_after));
            match retry.bounded(sent, call).await {
                Ok((answer, now)) => {
                    context.observe(now);
                    // Without one, the estimate of the server's clock was wrong, and the answer has corrected it.
                    if let Some(answer) = answer {
                        return Ok(answer);
                    }
                }
                Err(failure) if failure.may_be_done() && !mutant::on(Mutant::PermitsTakenAgain) => {
                    return Err(retry.error(failure).with_reason("the request may have been executed"));
                }
                Err(failure) => {
                    if let Some(last) = last {
                        last.set(Some(&failure));
                    }
                    retry.again_after(failure).await?;
                }
            }
        }
    }
}
