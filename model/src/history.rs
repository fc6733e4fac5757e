//! Whether a history of one lock is linearizable, by stateright's `LinearizabilityTester`.
//!
//! The specification is a lock with tokens: an acquisition finds the lock free and gets a larger token than all before,
//! and a hold ends once. A hold is what its guard says: it begins between the call and the guard, and ends when the
//! guard is released or is no longer valid, which the owner may see later. An acquisition without an outcome has given
//! out no guard, so it is no operation. A hold whose owner died has an end that never returns: it may have ended at any
//! time since the grant.

use stateright::semantics::{ConsistencyTester, LinearizabilityTester, SequentialSpec};

/// One hold of the lock, by a clock that all its holders share.
#[derive(Clone, Copy, Debug)]
pub struct Hold {
    /// When the acquisition began, or any time before.
    pub asked: u64,
    /// When the guard was given out.
    pub granted: u64,
    /// The fencing token.
    pub token: u64,
    /// Between which times the hold ended. `None`: its owner did not say.
    pub ended: Option<(u64, u64)>,
}

/// How many holds are checked at a time: the tester's work grows with the square of that. Two windows share half of
/// their holds. Any part of a history that is linearizable is so too, and what breaks the order of tokens does so
/// between holds with neighbouring tokens.
const WINDOW: usize = 16;

/// The holds of a lock.
#[derive(Clone)]
struct Lock<'a> {
    /// The tokens that acquisitions have got, each of them later than the smaller ones. The tester need not try another
    /// order, since it would find that one wrong only later.
    tokens: &'a [u64],
    held: Option<u64>,
}

#[derive(Clone, Debug)]
enum Op {
    Acquire,
    End(u64),
}

#[derive(Clone, Debug, PartialEq)]
enum Ret {
    Token(u64),
    Ended(bool),
    Busy,
}

impl SequentialSpec for Lock<'_> {
    type Op = Op;
    type Ret = Ret;

    fn invoke(&mut self, op: &Op) -> Ret {
        match op {
            Op::Acquire => match (self.held, self.tokens) {
                (None, [token, later @ ..]) => {
                    (self.held, self.tokens) = (Some(*token), later);
                    Ret::Token(*token)
                }
                _ => Ret::Busy,
            },
            Op::End(token) => Ret::Ended(self.held.take_if(|held| held == token).is_some()),
        }
    }
}

/// Checks the holds of one lock, in any order.
///
/// # Errors
/// The holds for which no order explains what was seen.
pub fn check(holds: &[Hold]) -> Result<(), String> {
    let mut holds = holds.to_vec();
    holds.sort_by_key(|hold| (hold.token, hold.asked));
    for from in (0..holds.len()).step_by(WINDOW / 2) {
        let window = &holds[from..holds.len().min(from + WINDOW)];
        if !is_linearizable(window)? {
            return Err(format!("not linearizable: {window:?}"));
        }
    }
    Ok(())
}

fn is_linearizable(holds: &[Hold]) -> Result<bool, String> {
    let mut tokens: Vec<u64> = holds.iter().map(|hold| hold.token).collect();
    tokens.dedup();
    // At one time, calls come before returns, because these may have been concurrent. Each operation has a thread of
    // its own.
    let mut events = Vec::new();
    for (n, hold) in holds.iter().enumerate() {
        let (acquire, end) = (2 * n, 2 * n + 1);
        events.push((hold.asked.min(hold.granted), 0, acquire, Some(Op::Acquire), Ret::Busy));
        events.push((hold.granted, 1, acquire, None, Ret::Token(hold.token)));
        let (from, until) = hold.ended.map_or((hold.granted, None), |(from, until)| (from, Some(until.max(from))));
        events.push((from, 0, end, Some(Op::End(hold.token)), Ret::Busy));
        events.extend(until.map(|until| (until, 1, end, None, Ret::Ended(true))));
    }
    events.sort_by_key(|(at, returns, thread, ..)| (*at, *returns, *thread));
    let mut tester = LinearizabilityTester::new(Lock { tokens: &tokens, held: None });
    for (_, _, thread, op, ret) in events {
        match op {
            Some(op) => tester.on_invoke(thread, op)?,
            None => tester.on_return(thread, ret)?,
        };
    }
    Ok(tester.is_consistent())
}
