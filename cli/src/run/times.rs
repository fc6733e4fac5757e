//! The times of a run, and how they depend on each other.

use std::time::Duration;

use bowline::MAX_LEASE;

use crate::args::run::Run;
use crate::exit::Failure;

/// Shorter leases leave no time to end a command.
const SHORTEST_LEASE: Duration = Duration::from_secs(1);

/// From SIGTERM to SIGKILL, unless it is said, or the lease is short.
const KILL_AFTER: Duration = Duration::from_secs(5);

/// When the command is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    /// From SIGTERM to SIGKILL.
    pub(super) kill_after: Duration,
    /// From SIGKILL to the end of the lease: a killed process may need a moment.
    pub(super) margin: Duration,
    /// How long the command may run.
    pub(super) at_most: Option<Duration>,
}

impl Times {
    pub(super) fn of(run: &Run) -> Result<Self, Failure> {
        let Run { lease, kill_after, at_most, .. } = run;
        if !(SHORTEST_LEASE..=MAX_LEASE).contains(lease) {
            return Err(Failure::own(format!("--lease is {SHORTEST_LEASE:?} to 24 h, not {lease:?}")));
        }
        // The lease is renewed every third of its length: this leaves another third for renewals that fail at first.
        let longest = *lease / 3;
        if let Some(time) = kill_after.filter(|time| *time > longest) {
            let why = format!("--kill-after is {time:?}, which is more than a third of the lease of {lease:?}");
            return Err(Failure::own(why));
        }
        let kill_after = kill_after.unwrap_or(KILL_AFTER.min(longest));
        Ok(Self { kill_after, margin: *lease / 20, at_most: *at_most })
    }

    /// How much of the lease must be left for the command to go on.
    pub(super) fn least(&self) -> Duration {
        self.kill_after + self.margin
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Arguments, Verb};

    fn times(options: &[&str]) -> Result<Times, Failure> {
        let words = [&["bowline", "run", "a"], options, &["--", "true"]].concat();
        match Arguments::try_parse_from(words).unwrap().verb {
            Verb::Run(run) => Times::of(&run),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn there_is_time_to_end_the_command_before_the_lease_ends() {
        let s = Duration::from_secs_f64;
        for (options, kill_after, margin) in [
            (&[][..], 5.0, 1.5),
            (&["--lease", "3s"], 1.0, 0.15),
            (&["--lease", "1m", "--kill-after", "20s"], 20.0, 3.0),
            (&["--kill-after", "0s"], 0.0, 1.5),
        ] {
            let times = times(options).unwrap();
            assert_eq!((times.kill_after, times.margin), (s(kill_after), s(margin)), "{options:?}");
        }
        for (options, why) in [
            (&["--kill-after", "11s"], "more than a third"),
            (&["--lease", "900ms"], "--lease is 1s"),
            (&["--lease", "25h"], "to 24 h"),
        ] {
            assert!(times(options).unwrap_err().message.contains(why), "{options:?}");
        }
    }
}
