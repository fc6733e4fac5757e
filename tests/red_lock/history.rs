//! The holds that tasks and processes have seen, which a checker from elsewhere looks at: stateright's.

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
    /// A guard that was given out, and asked for at that time. `None`: it came too late, and was never seen to be valid.
    pub(crate) fn granted(guard: &LockGuard, asked: u64) -> Option<Self> {
        let hold = Hold { asked, granted: nanoseconds(), token: guard.token().get(), ended: None };
        let mut watched = Self { hold, valid: hold.granted };
        watched.look(guard);
        watched.hold.ended.is_none().then_some(watched)
    }

    /// Notes whether the guard is still valid. The time is read before the guard if it is, and after if it is not, so that the hold
    /// is never said to be longer than it was seen to be.
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

/// As a process tells it, on a line. An end that its owner has not seen is told as 0, and stays open.
pub(crate) fn spelled(holds: &[Hold]) -> String {
    let words = holds.iter().map(|hold| {
        let (valid, ended) = hold.ended.unwrap_or_default();
        format!("{},{},{},{valid},{ended}", hold.asked, hold.granted, hold.token)
    });
    words.collect::<Vec<_>>().join(" ")
}

/// # Panics
/// It is no history.
pub(crate) fn parsed(line: &str) -> Vec<Hold> {
    let hold = |word: &str| {
        let numbers: Vec<u64> = word.split(',').map(|number| number.parse().unwrap()).collect();
        let &[asked, granted, token, valid, ended] = &*numbers else { panic!("no hold: {word}") };
        Hold { asked, granted, token, ended: (ended > 0).then_some((valid, ended)) }
    };
    line.split_whitespace().map(hold).collect()
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

#[test]
fn what_a_process_tells_is_what_the_checker_reads() {
    let told = "1,2,10,3,3 2,4,11,5,90 6,20,12,0,0 30,40,13,50,50";
    assert_eq!(spelled(&parsed(told)), told);
    assert_linearizable(parsed(told));
    for (planted, what) in [
        ("1,2,10,5,5 2,4,11,6,6", "an overlap"),
        ("1,2,11,3,3 4,5,10,6,6", "a smaller token later"),
        ("1,2,10,3,3 4,5,10,6,6", "a token twice"),
        ("1,2,10,9,0 3,20,9,0,0", "a smaller token while the end of a hold is not known"),
    ] {
        let [one, other] = planted.split_once(' ').map(|(one, other)| [one, other]).unwrap();
        let holds: Vec<Hold> = [one, other].into_iter().flat_map(parsed).collect();
        assert!(check(&holds).is_err(), "not found: {what}");
    }
}
