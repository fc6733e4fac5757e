//! Runs work that stops when the hold that protects it is lost.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use super::loss::NamedLoss;
use crate::error::Result;
use crate::mutant::{self, Mutant};

/// Runs `work` until it is done or the hold is lost. `loss` looks at the clock, and `lost` waits for a signal.
pub(crate) async fn protect<F: Future>(
    operation: &'static str,
    loss: impl Fn() -> Option<NamedLoss>,
    lost: impl Future<Output = NamedLoss>,
    work: F,
) -> Result<F::Output> {
    let (mut work, mut lost) = (pin!(work), pin!(lost));
    poll_fn(|context| {
        // The clock is checked too, because the process may have slept through the deadline.
        let mut known = loss();
        if mutant::on(Mutant::ProtectWaitsForSignal) {
            known = None;
        }
        if let Poll::Ready(signalled) = lost.as_mut().poll(context) {
            known = Some(signalled);
        }
        match known {
            Some(loss) => Poll::Ready(Err(loss.error(operation))),
            None => work.as_mut().poll(context).map(Ok),
        }
    })
    .await
}
