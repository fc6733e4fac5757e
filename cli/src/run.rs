//! `run`: a command that runs while a lock is held.

use std::cell::Cell;
use std::error::Error as _;
use std::time::Duration;

use bowline::{Client, Error, ErrorKind};

use crate::args::Servers;
use crate::args::run::Run;
use crate::connect;
use crate::exit::{self, Failure, LOST, NO, OK, SIGNALLED, TIMED_OUT};
use crate::show::complain;

mod child;
mod granted;
mod once;
mod processes;
mod progress;
mod session;
mod signals;
mod times;

use granted::Granted;
use session::{Session, Watched};
use signals::Signals;
use times::Times;

/// Why the command did not run.
enum NotRun {
    /// Somebody else holds.
    Conflict,
    /// This period has had its run.
    Skipped,
    /// A signal came first.
    Interrupted(u8),
}

pub(crate) async fn run(servers: &Servers, run: Run) -> Result<u8, Failure> {
    let times = Times::of(&run)?;
    let uncaught = |error: std::io::Error| Failure::own(format!("cannot catch signals: {error}"));
    let mut signals = Signals::new().map_err(uncaught)?;
    let mut impatient = Signals::impatient().map_err(uncaught)?;
    let label = run.label.clone().unwrap_or_else(own_label);
    let mut own = connect::client(&label);
    own.insert("lease".to_owned(), format!("{}ms", run.lease.as_millis()).into());
    let client = tokio::select! {
        connected = connect::connect(servers, own) => connected?,
        signal = signals.interrupt() => return Ok(SIGNALLED.saturating_add(signal)),
    };
    // Whether the command has ended or will not run, so that only the server is waited for.
    let is_leaving = Cell::new(false);
    let work = async {
        let ended = match run.mode.once {
            Some(period) => once::run(&client, &run, period, times, &mut signals, &is_leaving).await,
            None => hold(&client, &run, times, &mut signals, &is_leaving).await,
        };
        is_leaving.set(true);
        client.close().await;
        ended
    };
    tokio::select! {
        // In this order, a signal that has ended the command as well is not taken for a second one.
        biased;
        signal = impatient.second(&is_leaving) => {
            complain(&format!("bowline: {}: ended by a second signal; what is held ends with its lease", shown(&run)));
            Ok(SIGNALLED.saturating_add(signal))
        }
        ended = work => ended,
    }
}

async fn hold(
    client: &Client,
    run: &Run,
    times: Times,
    signals: &mut Signals,
    is_leaving: &Cell<bool>,
) -> Result<u8, Failure> {
    let acquired = tokio::select! {
        // In this order, a signal that has arrived by now ends the wait.
        biased;
        signal = signals.interrupt() => return Ok(not_run(run, NotRun::Interrupted(signal))),
        acquired = granted::acquire(client, run) => acquired,
        never = progress::show(client, run) => match never {},
    };
    let granted = match acquired {
        Ok(Some(granted)) => granted,
        Ok(None) => return Ok(not_run(run, NotRun::Conflict)),
        Err(error) if error.kind() == ErrorKind::TimedOut => {
            if !run.quiet {
                complain(&format!("bowline: {error:#}"));
            }
            return Ok(not_run(run, NotRun::Conflict));
        }
        Err(error) => return Err(error.into()),
    };
    let hold = granted.signal();
    let mut session = Session::new(run, times, signals);
    let is_late = session.is_late(&hold);
    let started = if is_late { Ok(()) } else { session.start(&granted.name(run), granted.token(run)) };
    let watched = match started {
        Ok(()) if is_late => Watched::Lost,
        Ok(()) => session.watch(&hold).await,
        Err(failure) => {
            is_leaving.set(true);
            released(granted).await;
            return Err(failure);
        }
    };
    is_leaving.set(true);
    let lost = hold.reason().map(|loss| loss.to_string());
    let lost_until_released = released(granted).await;
    Ok(code(run, watched, lost.or(lost_until_released)))
}

/// Releases. Returns why the hold was lost, if it did not last until then.
async fn released(granted: Granted) -> Option<String> {
    let error = granted.release().await.err()?;
    let lost = loss_of(&error);
    if lost.is_none() {
        complain(&format!("bowline: not released, and ends with its lease: {error:#}"));
    }
    lost
}

/// Why the hold was lost, if that is what the error says.
fn loss_of(error: &Error) -> Option<String> {
    let why = || error.source().map_or_else(|| error.to_string(), ToString::to_string);
    (error.kind() == ErrorKind::Lost).then(why)
}

/// The exit code, with a message if the hold was lost. That counts more than how the command has ended.
fn code(run: &Run, watched: Watched, lost: Option<String>) -> u8 {
    match (watched, lost) {
        (Watched::Exited(status), None) => exit::of(status),
        (Watched::TooLong, None) => TIMED_OUT,
        (_, lost) => {
            let why = lost.as_deref().unwrap_or("the lease could not be renewed in time");
            complain(&format!("bowline: {}: the lock was lost: {why}", shown(run)));
            LOST
        }
    }
}

fn not_run(run: &Run, why: NotRun) -> u8 {
    match why {
        NotRun::Conflict => run.conflict_exit_code.unwrap_or(NO),
        NotRun::Skipped => run.conflict_exit_code.unwrap_or(OK),
        NotRun::Interrupted(signal) => SIGNALLED.saturating_add(signal),
    }
}

/// The name, or all of them.
fn shown(run: &Run) -> String {
    run.name.clone().unwrap_or_else(|| run.mode.all.join(","))
}

/// The host and the process id, cut so that it is a valid label.
fn own_label() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let host: String = host.chars().filter(|c| !c.is_control()).take(40).collect();
    let label = format!("{host}:{}", std::process::id());
    if label.len() <= bowline::MAX_LABEL { label } else { std::process::id().to_string() }
}

/// Sleeps for that time, or forever.
async fn sleep(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}
