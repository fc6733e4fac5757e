//! `run --once`: a command that runs once in each period.

use std::cell::Cell;
use std::time::Duration;

use bowline::{Client, ErrorKind, LossSignal};

use super::session::{Session, Watched};
use super::signals::Signals;
use super::times::Times;
use super::{NotRun, code, not_run, shown};
use crate::args::run::Run;
use crate::exit::Failure;

/// What became of a run that began. The error counts as one of the work.
type Worked = Result<Watched, Result<Watched, Failure>>;

pub(super) async fn run(
    client: &Client,
    run: &Run,
    period: Duration,
    times: Times,
    signals: &mut Signals,
    is_leaving: &Cell<bool>,
) -> Result<u8, Failure> {
    // Until the run begins, nothing but the server is waited for.
    is_leaving.set(true);
    let mut session = Session::new(run, times, signals);
    // The hold of the run, for after the work, which is dropped if the hold is lost.
    let mut hold: Option<LossSignal> = None;
    let job = client.once(&shown(run), period);
    let job = if run.mode.retry_on_error { job.retry_on_error() } else { job };
    let ran = {
        let (session, hold) = (&mut session, &mut hold);
        job.try_run(|run| async move {
            *hold = Some(run.lost_signal().clone());
            is_leaving.set(false);
            let worked = work(session, run).await;
            is_leaving.set(true);
            worked
        })
        .await
    };
    let why = hold.as_ref().and_then(LossSignal::reason).map(|loss| loss.to_string());
    match (ran, hold) {
        (Ok(None), _) => Ok(not_run(run, NotRun::Skipped)),
        (Ok(Some(Ok(watched) | Err(Ok(watched)))), _) => Ok(code(run, watched, why.as_deref(), true)),
        (Ok(Some(Err(Err(failure)))), _) => Err(failure),
        (Err(error), Some(hold)) if error.kind() == ErrorKind::Lost => {
            is_leaving.set(false);
            session.end(&hold).await;
            Ok(code(run, Watched::Lost, why.as_deref(), false))
        }
        (Err(error), _) => Err(error.into()),
    }
}

async fn work(session: &mut Session<'_>, run: bowline::Run) -> Worked {
    let (name, token) = (shown(session.run()), run.token().get().to_string());
    session.start(&name, Some(token)).map_err(Err)?;
    match session.watch(run.lost_signal()).await {
        Watched::Exited(status) if status.success() => Ok(Watched::Exited(status)),
        other => Err(Ok(other)),
    }
}
