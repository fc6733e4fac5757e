//! The signals that bowline catches while it waits and while a command runs.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use rustix::process::{Signal, getpid, kill_process};
use tokio::signal::unix::{SignalKind, signal};

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
        let ignored = ignored();
        let caught =
            ENDING.into_iter().chain(OTHER).filter(|signal| *signal == Signal::CHILD || ignored & bit(*signal) == 0);
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

    /// The number of the next signal that ends a wait. Without a command, there is nothing else to stop than bowline.
    pub(super) async fn interrupt(&mut self) -> u8 {
        loop {
            let signal = self.next().await;
            if signal == Signal::TSTP {
                stop();
            } else if ENDING.contains(&signal) {
                return u8::try_from(signal.as_raw()).unwrap_or(u8::MAX);
            }
        }
    }
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
