//! The holds that tasks and processes have seen, which a checker from elsewhere looks at: stateright's.

use std::collections::BTreeMap;
use std::fmt::Arguments;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use bowline::LockGuard;
use bowline_model::history::{Hold, check};
use rustix::time::{ClockId, clock_gettime};

/// The clock that all processes of a machine share.
pub(crate) fn nanoseconds() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap() * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap()
}

/// A hold that its owner still looks at.
pub(crate) struct Watched {
    hold: Hold,
    /// When its guard was seen to be valid last.
    valid: u64,
}

impl Watched {
    /// A guard that was given out, and asked for at that time. `None`: it came too late, and was never seen to be
    /// valid.
    pub(crate) fn granted(guard: &LockGuard, asked: u64) -> Option<Self> {
        let hold = Hold { asked, granted: nanoseconds(), token: guard.token().get(), ended: None };
        let mut watched = Self { hold, valid: hold.granted };
        watched.look(guard);
        watched.hold.ended.is_none().then_some(watched)
    }

    /// Notes whether the guard is still valid. The time is read before the guard if it is, and after if it is not, so
    /// that the hold is never said to be longer than it was seen to be.
    pub(crate) fn look(&mut self, guard: &LockGuard) {
        let now = nanoseconds();
        if self.hold.ended.is_none() {
            match guard.is_valid() {
                true => self.valid = now,
                false => self.hold.ended = Some((self.valid, nanoseconds())),
            }
        }
    }

    /// What it was, if its guard is about to be released.
    pub(crate) fn released(mut self, guard: &LockGuard) -> Hold {
        self.look(guard);
        self.hold.ended.get_or_insert((self.valid, nanoseconds()));
        self.hold
    }
}

/// Where a process writes down its holds at once, so that it can be killed at any time.
pub(crate) struct Journal(File);

impl Journal {
    pub(crate) fn open(path: &Path) -> Self {
        Self(File::options().create(true).append(true).open(path).unwrap())
    }

    pub(crate) fn granted(&self, Watched { hold, .. }: &Watched) {
        self.line(format_args!("granted {} {} {}", hold.token, hold.asked, hold.granted));
    }

    pub(crate) fn ended(&self, hold: &Hold) {
        let (valid, gone) = hold.ended.expect("an end");
        self.line(format_args!("ended {} {valid} {gone}", hold.token));
    }

    /// Writes all of it in one call.
    fn line(&self, line: Arguments<'_>) {
        (&self.0).write_all(format!("{line}\n").as_bytes()).unwrap();
    }
}

/// What a process has written down. The end of a hold that it does not tell stays open, because the process was killed.
///
/// # Panics
/// It is no journal.
pub(crate) fn holds(journal: &str) -> Vec<Hold> {
    let mut holds = BTreeMap::new();
    for line in journal.lines() {
        let (event, numbers) = line.split_once(' ').unwrap();
        let numbers: Vec<u64> = numbers.split(' ').map(|number| number.parse().unwrap()).collect();
        let &[token, one, other] = &*numbers else { panic!("{line:?}") };
        match event {
            "granted" => {
                let new = holds.insert(token, Hold { asked: one, granted: other, token, ended: None });
                assert!(new.is_none(), "token {token} twice");
            }
            "ended" => holds.get_mut(&token).expect("it was granted").ended = Some((one, other)),
            _ => panic!("{line:?}"),
        }
    }
    holds.into_values().collect()
}

/// The holds of one lock are linearizable, and with a mistake in them they are not.
///
/// # Panics
/// They are not, or the checker does not find a mistake.
pub(crate) fn assert_linearizable(mut holds: Vec<Hold>) {
    check(&holds).unwrap();
    holds.sort_by_key(|hold| hold.token);
    for at in [0, holds.len() / 2, holds.len().saturating_sub(2)] {
        let Some([one, next]) = holds.get(at..at + 2).map(|pair| [pair[0], pair[1]]) else { continue };
        let mut planted = holds.clone();
        planted[at].ended = Some((next.granted + 1, next.granted + 2));
        assert!(check(&planted).is_err(), "{} was valid when {} was granted", one.token, next.token);
        let mut planted = holds.clone();
        (planted[at].token, planted[at + 1].token) = (next.token, one.token);
        assert!(check(&planted).is_err(), "{} came before {}", next.token, one.token);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(journals: &[&str]) -> Result<(), String> {
        check(&journals.iter().flat_map(|journal| holds(journal)).collect::<Vec<_>>())
    }

    #[test]
    fn journals_of_processes_are_what_the_checker_reads() {
        let one = "granted 10 1 2\nended 10 3 3\ngranted 13 30 40\nended 13 50 50\n";
        // Its second hold was lost at a time that it did not see, and it was killed while it had the third.
        let other = "granted 11 2 4\nended 11 5 19\ngranted 12 6 20\n";
        assert_eq!(of(&[one, other]), Ok(()));
        assert_linearizable([one, other].into_iter().flat_map(holds).collect());
    }

    #[test]
    fn planted_mistakes_in_journals_are_found() {
        let one = "granted 10 1 2\nended 10 5 5\n";
        for (other, what) in [
            ("granted 11 2 4\nended 11 6 6\n", "an overlap"),
            ("granted 11 2 4\n", "an overlap with the hold of a process that was killed"),
            ("granted 9 6 7\nended 9 8 8\n", "a smaller token later"),
            ("granted 9 6 7\n", "a smaller token of a process that was killed"),
            ("granted 10 6 7\nended 10 8 8\n", "a token twice"),
        ] {
            assert!(of(&[one, other]).is_err(), "not found: {what}");
        }
        assert!(of(&["granted 10 1 2\n", "granted 9 3 4\n"]).is_err(), "tokens count if no end is known");
    }
}
