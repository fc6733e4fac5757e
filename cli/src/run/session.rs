//! The command and its hold: what ends the one when the other one ends.

use std::process::ExitStatus;
use std::time::{Duration, Instant};

use bowline::{Loss, LossSignal};
use rustix::process::Signal;

use super::child::{Child, Group};
use super::signals::{self, Signals};
use super::times::Times;
use super::{shown, sleep};
use crate::args::run::Run;
use crate::exit::Failure;
use crate::show::complain;

/// The longest sleep. A timer stands still while the machine is suspended, and the lease does not.
const LONGEST: Duration = Duration::from_secs(1);

/// When to look first whether what a command has started has ended. Each later look takes twice the time, because all
/// processes of the machine are looked at. The end of a child wakes this process sooner.
const FIRST_LOOK: Duration = Duration::from_millis(20);

/// Why a command is no longer watched.
#[derive(Clone, Copy, Debug)]
pub(super) enum Watched {
    Exited(ExitStatus),
    /// It was ended, because the hold was lost or about to be.
    Lost,
    /// It was ended, because it ran for too long.
    TooLong,
}

/// A command that runs, and the signals of this process.
pub(super) struct Session<'a> {
    run: &'a Run,
    times: Times,
    signals: &'a mut Signals,
    child: Option<Child>,
    /// Whether the command is being ended.
    is_ending: bool,
}

impl<'a> Session<'a> {
    pub(super) fn new(run: &'a Run, times: Times, signals: &'a mut Signals) -> Self {
        Self { run, times, signals, child: None, is_ending: false }
    }

    pub(super) fn run(&self) -> &'a Run {
        self.run
    }

    /// Whether there is no time left to run the command: this process may have stood still since the grant.
    pub(super) fn is_late(&self, hold: &LossSignal) -> bool {
        hold.remaining() <= self.times.least()
    }

    /// The number of a signal that has arrived before the command was started, and keeps it from that.
    pub(super) async fn interrupted(&mut self) -> Option<u8> {
        self.signals.interrupted().await
    }

    /// Starts the command.
    pub(super) fn start(&mut self, name: &str, token: Option<String>) -> Result<(), Failure> {
        let variables = [("BOWLINE_NAME", Some(name.to_owned())), ("BOWLINE_TOKEN", token)];
        self.child = Some(Child::start(&self.run.command, &variables)?);
        Ok(())
    }

    /// Waits for the end of the command, and ends it in time if the hold ends before. If the command ends after a
    /// SIGTERM, what it has left behind is ended, too.
    ///
    /// May be dropped: the command goes on.
    pub(super) async fn watch(&mut self, hold: &LossSignal) -> Watched {
        let Self { run, times, signals, child: Some(child), is_ending } = self else { return Watched::Lost };
        // What arrived before the command was there has not reached it, also if the terminal sends it to both.
        while let Some(signal) = signals.arrived().await {
            if matches!(signal, Signal::INT | Signal::QUIT) {
                child.signal(signal);
            } else {
                pass(signal, child, *times, hold).await;
            }
        }
        let mut lost = Box::pin(hold.wait());
        let mut too_long = Box::pin(sleep(times.at_most));
        let why = loop {
            if let Some(status) = child.ended() {
                if child.has_got_sigterm() && !child.is_gone() {
                    *is_ending = true;
                    end(run, child, signals, *times, hold).await;
                }
                return Watched::Exited(status);
            }
            let left = hold.remaining();
            if left <= times.least() {
                break Watched::Lost;
            }
            tokio::select! {
                signal = signals.next() => pass(signal, child, *times, hold).await,
                () = tokio::time::sleep((left - times.least()).min(LONGEST)) => {}
                _ = &mut lost => break Watched::Lost,
                () = &mut too_long => break Watched::TooLong,
            }
        };
        *is_ending = true;
        end(run, child, signals, *times, hold).await;
        why
    }

    /// Ends a command whose watch was dropped. What a command has left behind goes on if the command has ended by
    /// itself, and not after a SIGTERM.
    pub(super) async fn end(&mut self, hold: &LossSignal) {
        if let Self { run, times, signals, child: Some(child), is_ending } = self
            && (*is_ending || child.ended().is_none() || child.has_got_sigterm())
        {
            end(run, child, signals, *times, hold).await;
        }
    }
}

/// Passes a signal on to the command.
async fn pass(signal: Signal, child: &mut Child, times: Times, hold: &LossSignal) {
    match (signal, child.group()) {
        // The terminal has sent these to the command as well.
        (Signal::INT | Signal::QUIT | Signal::WINCH, Group::Shared) | (Signal::CHILD, _) => {}
        (Signal::TSTP, group) if signals::may_stop(group) => {
            // Who is stopped does not renew. So the command must not go on: it is stopped in any case.
            if group == Group::Own || !child.stops().await {
                child.signal(Signal::STOP);
            }
            signals::stop();
        }
        // After a long stop, the hold may be lost: the command must not go on then.
        (Signal::CONT, _) if hold.remaining() > times.margin => child.signal(Signal::CONT),
        (Signal::WINCH, Group::Own) => child.signal(signal),
        _ if signals::is_ending(signal) => child.signal(signal),
        _ => {}
    }
}

/// Ends the command and what it has started: by SIGTERM, and by SIGKILL when its time is over.
async fn end(run: &Run, child: &mut Child, signals: &mut Signals, times: Times, hold: &LossSignal) {
    let began = Instant::now();
    let until_kill = || {
        let patience = times.kill_after.saturating_sub(began.elapsed());
        match hold.reason() {
            // Others may be granted the lock when the lease is over.
            None | Some(Loss::Expired) => patience.min(hold.remaining().saturating_sub(times.margin)),
            // The hold has ended already, whatever is done now.
            Some(_) => patience,
        }
    };
    // One that goes on after a SIGTERM gets another one.
    let has_got_it = child.has_got_sigterm() && child.ended().is_some();
    if !has_got_it && !until_kill().is_zero() {
        child.signal(Signal::TERM);
        // A stopped process would not see it.
        child.signal(Signal::CONT);
    }
    let mut pause = FIRST_LOOK;
    loop {
        let left = until_kill();
        if child.is_gone() || left.is_zero() {
            break;
        }
        let mut longest = LONGEST;
        // What it has started may need its time, too. More is adopted when a parent of it ends.
        if child.ended().is_some() {
            child.terminate_rest();
            longest = grown(&mut pause);
        }
        tokio::select! {
            _ = signals.next() => {}
            () = tokio::time::sleep(left.min(longest)) => {}
        }
    }
    child.kill().await;
    outlast(run, child, signals, times, hold).await;
}

/// Waits for a command that could not be ended, until the hold ends: the lock must not be released before. If the
/// command has ended, and only what it has left could not be ended, another signal ends the wait.
async fn outlast(run: &Run, child: &mut Child, signals: &mut Signals, times: Times, hold: &LossSignal) {
    let is_over = || hold.reason().is_some() || hold.remaining().is_zero();
    if child.is_gone() {
        return;
    }
    let why = child.refusal().map_or_else(|| "it has not ended after SIGKILL".to_owned(), |error| error.to_string());
    let then = if is_over() { "it goes on without the lock" } else { "the lock is held until it or the lease ends" };
    let what = if child.ended().is_some() { "what the command has left" } else { "the command" };
    complain(&format!("bowline: {}: {what} cannot be ended: {why}; {then}", shown(run)));
    let mut pause = FIRST_LOOK;
    while !child.is_gone() && !is_over() {
        tokio::select! {
            signal = signals.next() => {
                if child.ended().is_some() && signals::is_ending(signal) {
                    return;
                }
                pass(signal, child, times, hold).await;
            }
            () = tokio::time::sleep(grown(&mut pause).min(hold.remaining())) => {}
        }
    }
}

/// The pause, which is twice as long the next time.
fn grown(pause: &mut Duration) -> Duration {
    let next = (*pause * 2).min(LONGEST);
    std::mem::replace(pause, next)
}
