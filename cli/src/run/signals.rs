//! The signals that bowline catches while it waits and while a command runs.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::task::Poll;

use rustix::process::{Signal, getpid, kill_process};
use tokio::signal::unix::{SignalKind, signal};

use super::child::Group;
use super::processes::is_group_orphaned;

/// Those that end a wait for a lock, and are passed on to a command.
const ENDING: [Signal; 6] = [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM, Signal::USR1, Signal::USR2];

/// Those that mean something else.
const OTHER: [Signal; 4] = [Signal::CHILD, Signal::CONT, Signal::TSTP, Signal::WINCH];

/// The signals of this process, from when it was made.
pub(super) struct Signals(Vec<(Signal, tokio::signal::unix::Signal)>);

impl Signals {
    /// A signal that is ignored stays so, also for the command: that is what `nohup` is for. Without SIGCHLD, nobody
    /// would tell how the command has ended.
    pub(super) fn new() -> io::Result<Self> {
        Self::of(ENDING.into_iter().chain(OTHER))
    }

    /// Those that somebody sends again who does not want to wait.
    pub(super) fn impatient() -> io::Result<Self> {
        Self::of([Signal::INT, Signal::TERM])
    }

    fn of(all: impl IntoIterator<Item = Signal>) -> io::Result<Self> {
        let ignored = ignored();
        let caught = all.into_iter().filter(|signal| *signal == Signal::CHILD || ignored & bit(*signal) == 0);
        let streams = caught.map(|caught| Ok((caught, signal(SignalKind::from_raw(caught.as_raw()))?)));
        streams.collect::<io::Result<_>>().map(Self)
    }

    /// The next signal. May be dropped: no signal is missed.
    pub(super) async fn next(&mut self) -> Signal {
        poll_fn(|context| {
            for (signal, stream) in &mut self.0 {
                if stream.poll_recv(context).is_ready() {
                    return Poll::Ready(*signal);
                }
            }
            Poll::Pending
        })
        .await
    }

    /// A signal that has arrived already.
    pub(super) async fn arrived(&mut self) -> Option<Signal> {
        already(self.next()).await
    }

    /// The number of the next signal that ends a wait. Without a command, there is nothing else to stop than bowline.
    pub(super) async fn interrupt(&mut self) -> u8 {
        loop {
            let signal = self.next().await;
            if signal == Signal::TSTP {
                if may_stop(Group::here()) {
                    stop();
                }
            } else if ENDING.contains(&signal) {
                return number(signal);
            }
        }
    }

    /// The number of a signal that has arrived already and ends a wait.
    pub(super) async fn interrupted(&mut self) -> Option<u8> {
        already(self.interrupt()).await
    }

    /// The number of the signal that ends this program although it has not said good-bye to the server: the second one
    /// in all, and one that arrives while nothing but `is_leaving` is under way. The first one may be the one that has
    /// ended the command or the wait.
    pub(super) async fn second(&mut self, is_leaving: &Cell<bool>) -> u8 {
        let mut has_one = false;
        loop {
            let signal = self.next().await;
            if std::mem::replace(&mut has_one, true) && is_leaving.get() {
                return number(signal);
            }
        }
    }
}

/// What the future waits for, if that has happened already.
async fn already<T>(future: impl Future<Output = T>) -> Option<T> {
    // Only then does the runtime take note of signals that have arrived.
    tokio::task::yield_now().await;
    tokio::select! {
        biased;
        happened = future => Some(happened),
        () = std::future::ready(()) => None,
    }
}

fn number(signal: Signal) -> u8 {
    u8::try_from(signal.as_raw()).unwrap_or(u8::MAX)
}

/// Whether a stop makes sense. At a terminal without a shell that could continue it, this process would stop for ever.
/// Without a terminal, whoever sends SIGTSTP can send SIGCONT.
pub(super) fn may_stop(group: Group) -> bool {
    group == Group::Own || !is_group_orphaned()
}

/// Stops this process until it is continued.
pub(super) fn stop() {
    let _ = kill_process(getpid(), Signal::STOP);
}

pub(super) fn is_ending(signal: Signal) -> bool {
    ENDING.contains(&signal)
}

fn bit(signal: Signal) -> u64 {
    1 << (signal.as_raw() - 1)
}

/// The signals that this process was started to ignore. Linux tells them.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A process with several threads gets its signal on any of them, and so not at once.
    async fn eventually<T>(signals: &mut Signals, mut look: impl AsyncFnMut(&mut Signals) -> Option<T>) -> T {
        for _ in 0..10_000 {
            if let Some(seen) = look(signals).await {
                return seen;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("no signal has come")
    }

    #[tokio::test]
    async fn a_signal_that_has_arrived_is_seen_once() {
        let mut signals = Signals::of([Signal::USR2]).unwrap();
        assert_eq!(signals.arrived().await, None);
        kill_process(getpid(), Signal::USR2).unwrap();
        assert_eq!(eventually(&mut signals, async |signals| signals.arrived().await).await, Signal::USR2);
        assert_eq!(signals.arrived().await, None);
    }

    #[tokio::test]
    async fn a_signal_that_has_arrived_ends_a_wait_unless_it_means_something_else() {
        let mut signals = Signals::of([Signal::USR1, Signal::WINCH]).unwrap();
        kill_process(getpid(), Signal::WINCH).unwrap();
        kill_process(getpid(), Signal::USR1).unwrap();
        let interrupted = eventually(&mut signals, async |signals| signals.interrupted().await).await;
        assert_eq!(interrupted, number(Signal::USR1));
        assert_eq!(signals.interrupted().await, None);
    }
}
