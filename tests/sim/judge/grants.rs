//! I2, I4: who is granted the lock by a script, and with which token; I3: nobody who could be served is left waiting.

use std::collections::BTreeSet;
use std::time::Duration;

use bowline::{Arg, Call};

use super::view::{Ticket, View, id_of};

/// How many expired tickets one script drops: with more of them it may leave the lock free and be called again.
const MOST_DROPPED: usize = 64;

/// One script, with a name before and after it.
pub struct Step<'a> {
    pub call: Call<'a>,
    pub word: &'a str,
    pub before: &'a View,
    pub after: &'a View,
    /// The server's.
    pub now: Duration,
}

/// The n-th argument.
pub fn arg<'a>(call: &Call<'a>, n: usize) -> &'a str {
    match call.args[n] {
        Arg::Text(text) => text,
        Arg::Number(_) => panic!("argument {n} of {} is a number", call.script.name()),
    }
}

pub fn number(call: &Call<'_>, n: usize) -> u64 {
    match call.args[n] {
        Arg::Number(number) => number,
        Arg::Text(_) => panic!("argument {n} of {} is no number", call.script.name()),
    }
}

/// Wire ids that a call is about.
pub fn subjects<'a>(call: &Call<'a>) -> Vec<&'a str> {
    match call.script.name() {
        "lock_acquire" | "lock_release" | "lock_force_release" => vec![arg(call, 0)],
        "lock_cancel" => vec![id_of(arg(call, 0))],
        "lock_touch" => (2..call.args.len()).step_by(2).map(|n| id_of(arg(call, n))).collect(),
        "lock_renew" => (0..call.args.len()).step_by(2).map(|n| arg(call, n)).collect(),
        _ => Vec::new(),
    }
}

/// Whether more may be left to do than one script does.
pub fn may_be_long(before: &View, now: Duration) -> bool {
    before.queue.iter().filter(|ticket| !ticket.lives(now)).count() >= MOST_DROPPED
}

impl Step<'_> {
    /// The caller reads the reply, so that these need no message.
    fn own(&self) -> BTreeSet<&str> {
        match self.call.script.name() {
            "lock_acquire" if arg(&self.call, 1) == "wait" => BTreeSet::from([arg(&self.call, 0)]),
            "lock_touch" => subjects(&self.call).into_iter().collect(),
            _ => BTreeSet::new(),
        }
    }

    fn first<'v>(&self, queue: &'v [Ticket], listens: &impl Fn(&str) -> bool) -> Option<&'v Ticket> {
        let own = self.own();
        let cancelled = (self.call.script.name() == "lock_cancel").then(|| id_of(arg(&self.call, 0)));
        let mut queue = queue.iter().filter(|ticket| cancelled != Some(&*ticket.id));
        // The caller's own are refreshed before anybody is looked for, also when they had expired.
        queue.find(|ticket| own.contains(&*ticket.id) || (ticket.lives(self.now) && listens(&ticket.id)))
    }

    /// What is wrong with it. `listens` says of a wire id whether its client hears a message now.
    pub fn check(&self, highest: u64, listens: impl Fn(&str) -> bool) -> Option<String> {
        let held = self.before.hold.as_ref().map(|hold| &hold.id);
        match &self.after.hold {
            Some(hold) if held != Some(&hold.id) => {
                if hold.token <= highest {
                    return Some(format!("I2 {} got token {} after {highest}", hold.id, hold.token));
                }
                let first = self.first(&self.before.queue, &listens)?;
                (first.id != hold.id).then(|| format!("I4 {} got the lock before {}", hold.id, first.id))
            }
            None if self.promotes() && !may_be_long(self.before, self.now) => {
                let left = self.first(&self.after.queue, &listens)?;
                Some(format!("I3 the lock is left free, and {} waits", left.id))
            }
            _ => None,
        }
    }

    fn promotes(&self) -> bool {
        !matches!(self.call.script.name(), "lock_renew" | "lock_inspect") && !matches!(self.word, "STALE" | "FULL")
    }
}
