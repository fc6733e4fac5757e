//! `run --once`: a command that runs once in each period.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use bowline::{Client, ErrorKind, LossSignal};

use super::session::{Session, Watched};
use super::signals::Signals;
use super::times::Times;
use super::{NotRun, code, loss_of, not_run, shown};
use crate::args::run::Run;
use crate::exit::Failure;

/// What became of a run that began. The error counts as one of the work.
type Worked = Result<Watched, Undone>;

enum Undone {
    Ended(Watched),
    /// A signal came before the command was started.
    Interrupted(u8),
    Failed(Failure),
}

pub(super) async fn run(
    client: &Client,
    run: &Run,
    period: Duration,
    times: Times,
    signals: &mut Signals,
    is_leaving: &Cell<bool>,
) -> Result<u8, Failure> {
    // The signals end the wait until the run begins, and are those of its session from then on.
    let waiting = Cell::new(Some(signals));
    // For after the work, which is dropped if the hold is lost.
    let mut begun: Option<(Session<'_>, LossSignal)> = None;
    // Why the hold was lost before the work was done.
    let mut lost = None;
    let job = client.once(&shown(run), period);
    let job = if run.mode.retry_on_error { job.retry_on_error() } else { job };
    let ran = {
        let (begun, lost, waiting) = (&mut begun, &mut lost, &waiting);
        let ran = job.try_run(|granted| async move {
            let Some(signals) = waiting.take() else { return Err(Undone::Failed(Failure::own("the run began twice"))) };
            let (session, hold) = begun.insert((Session::new(run, times, signals), granted.lost_signal().clone()));
            let worked = work(session, granted).await;
            *lost = hold.reason().map(|loss| loss.to_string());
            is_leaving.set(true);
            worked
        });
        tokio::select! {
            // In this order, a signal that has arrived by now ends the wait.
            biased;
            signal = interrupted(waiting) => return Ok(not_run(run, NotRun::Interrupted(signal))),
            ran = ran => ran,
        }
    };
    match (ran, begun) {
        (Ok(None), _) => Ok(not_run(run, NotRun::Skipped)),
        (Ok(Some(Ok(watched) | Err(Undone::Ended(watched)))), _) => Ok(code(run, watched, lost)),
        (Ok(Some(Err(Undone::Interrupted(signal)))), _) => Ok(not_run(run, NotRun::Interrupted(signal))),
        (Ok(Some(Err(Undone::Failed(failure)))), _) => Err(failure),
        (Err(error), Some((mut session, hold))) if error.kind() == ErrorKind::Lost => {
            is_leaving.set(false);
            session.end(&hold).await;
            Ok(code(run, Watched::Lost, loss_of(&error)))
        }
        (Err(error), _) => Err(error.into()),
    }
}

/// The number of a signal that ends the wait, while there are signals to wait for.
async fn interrupted(waiting: &Cell<Option<&mut Signals>>) -> u8 {
    poll_fn(|context| {
        let Some(signals) = waiting.take() else { return Poll::Pending };
        let polled = pin!(signals.interrupt()).poll(context);
        waiting.set(Some(signals));
        polled
    })
    .await
}

async fn work(session: &mut Session<'_>, run: bowline::Run) -> Worked {
    if let Some(signal) = session.interrupted().await {
        return Err(Undone::Interrupted(signal));
    }
    if session.is_late(run.lost_signal()) {
        return Err(Undone::Ended(Watched::Lost));
    }
    let (name, token) = (shown(session.run()), run.token().get().to_string());
    session.start(&name, Some(token)).map_err(Undone::Failed)?;
    match session.watch(run.lost_signal()).await {
        Watched::Exited(status) if status.success() => Ok(Watched::Exited(status)),
        other => Err(Undone::Ended(other)),
    }
}
