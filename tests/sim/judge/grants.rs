//! I2, I4: who is granted what by a script, and with which token; I3: no ticket is left waiting that could be served;
//! I5: no more is granted than there is.

use std::collections::BTreeSet;
use std::time::Duration;

use bowline::{Arg, Call};

use super::view::{Hold, Ticket, View, client_of, id_of};

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
        // As a server receives it.
        Arg::Text(text) => {
            text.parse().unwrap_or_else(|_| panic!("argument {n} of {} is no number: {text}", call.script.name()))
        }
    }
}

/// The token of the guard whose hold is changed.
pub fn kept(call: &Call<'_>) -> Option<u64> {
    let is_told = |arg: &&Arg<'_>| !matches!(arg, Arg::Text(""));
    (call.script.name() == "permit_change" && call.args.get(9).is_some_and(|arg| is_told(&arg)))
        .then(|| number(call, 9))
}

/// What a script does, whatever the primitive: `acquire`, `heartbeat`, ...
pub fn verb(call: &Call<'_>) -> &'static str {
    match call.script.name().split_once('_').map_or("", |(_, verb)| verb) {
        // Both give up one hold for another one.
        "resume" => "change",
        "renew_short" => "renew",
        verb => verb,
    }
}

/// Attempt ids that a call is about.
pub fn subjects<'a>(call: &Call<'a>) -> Vec<&'a str> {
    match verb(call) {
        "acquire" | "drain" | "ask_ahead" | "go_on" | "release" | "force_release" | "wait" | "watch" | "set"
        | "count_down" | "delete" => {
            vec![arg(call, 0)]
        }
        "cancel" => vec![id_of(arg(call, 0))],
        "change" => {
            let rest = call.args.get(8).map(|_| arg(call, 8)).filter(|id| !id.is_empty());
            [arg(call, 0), arg(call, 1)].into_iter().chain(rest).collect()
        }
        "heartbeat" => {
            let first = match call.script.name() {
                "latch_heartbeat" => 1,
                "lock_heartbeat" => 2,
                _ => 3,
            };
            (first..call.args.len()).step_by(2).map(|n| id_of(arg(call, n))).collect()
        }
        "renew" => (0..call.args.len()).step_by(4).map(|n| arg(call, n)).collect(),
        _ => Vec::new(),
    }
}

/// The ticket that a call about a hold queues up.
pub fn requeued<'a>(call: &Call<'a>) -> Option<&'a str> {
    let ticket = match call.script.name() {
        "lock_release" => arg(call, 3),
        "lock_ask_ahead" | "permit_ask_ahead" | "permit_release" => arg(call, 4),
        _ => "",
    };
    Some(ticket).filter(|ticket| !ticket.is_empty())
}

/// Whether messages for the caller's client are in the reply.
pub fn listens_to_reply(call: &Call<'_>) -> bool {
    match call.script.name() {
        "lock_release" => number(call, 5) == 1,
        "permit_release" => number(call, 6) == 1,
        _ => false,
    }
}

/// Whether more may be left to do than one script does.
pub fn may_be_long(before: &View, now: Duration) -> bool {
    before.queue.iter().filter(|ticket| !ticket.lives(now)).count() >= MOST_DROPPED
}

impl Step<'_> {
    /// What is wrong with it. `listens` says of a attempt id whether its client hears a message now.
    pub fn check(&self, highest: u64, listens: impl Fn(&str) -> bool) -> Option<String> {
        let granted: Vec<&Hold> =
            self.after.holds.iter().filter(|hold| hold.lives(self.now) && !self.held(&hold.id)).collect();
        let wrong = granted.iter().find_map(|hold| self.token(hold, highest, &listens));
        wrong
            .or_else(|| self.again())
            .or_else(|| self.ahead(highest))
            .or_else(|| self.goes_on())
            .or_else(|| self.change(&granted))
            .or_else(|| self.drained())
            .or_else(|| self.order(&granted, &listens))
            .or_else(|| {
                let used: u64 =
                    self.after.holds.iter().filter(|hold| hold.lives(self.now)).map(|hold| hold.units).sum();
                // After an operator has lowered the limit, more units may still be held, but no more may be granted.
                let more = used > self.after.limit && !granted.is_empty();
                more.then(|| format!("I5 {used} of {} are held: {:?}", self.after.limit, self.after.holds))
            })
    }

    /// I5: no ticket for more than a new limit stays in the queue; that is never longer than one call looks at.
    fn drained(&self) -> Option<String> {
        let stays = self.after.queue.iter().find(|ticket| ticket.units > self.after.limit)?;
        (verb(&self.call) == "limit" && self.word == "LIMIT")
            .then(|| format!("I5 {} waits for {} of {}", stays.id, stays.units, self.after.limit))
    }

    fn held(&self, id: &str) -> bool {
        self.before.hold(id).is_some_and(|hold| hold.lives(self.now))
    }

    /// I2. Semaphores have no tokens.
    fn token(&self, hold: &Hold, highest: u64, listens: &impl Fn(&str) -> bool) -> Option<String> {
        let View { limit, fence, queue, .. } = self.before;
        let Hold { id, units, token, .. } = hold;
        let old = match verb(&self.call) {
            "change" if id == arg(&self.call, 1) => self.before.hold(arg(&self.call, 0)),
            _ => None,
        };
        // A writer whose grant was undone, because it did not listen, has used up a token.
        let tried = || queue.iter().any(|ticket| ticket.units == *limit && !listens(&ticket.id));
        let right = match (old, fence) {
            _ if self.call.keys[0].starts_with("bowline:sem:") => true,
            (Some(old), _) if old.units >= *units && !self.resumes(*units) => {
                // That of the guard, if the hold was handed off or has its next budget.
                *token == kept(&self.call).unwrap_or(old.token)
            }
            (_, Some(last)) if units < limit => token == last || tried(),
            _ => *token > highest,
        };
        (!right).then(|| format!("I2 {id} got token {token} for {units} after {highest}, the counter was {fence:?}"))
    }

    /// Whether the call gives a hold of that many units, which has tokens of its own, to another attempt.
    fn resumes(&self, units: u64) -> bool {
        self.call.script.name() == "lock_resume" || self.before.limit == units && number(&self.call, 2) == units
    }

    /// I10: a second copy of a request is told what the first one got.
    fn again(&self) -> Option<String> {
        let asks = matches!(verb(&self.call), "acquire" | "drain") && self.word != "GRANTED";
        let id = subjects(&self.call).into_iter().find(|id| asks && self.held(id))?;
        Some(format!("I10 {id} holds, and was told {}", self.word))
    }

    /// I4: a hold gets another budget only if no ticket waits. So no ticket is passed by more than the budget that a
    /// hold had when its ticket came, and the one before. I2: the budget is of new tokens.
    fn ahead(&self, highest: u64) -> Option<String> {
        if verb(&self.call) != "ask_ahead" {
            return None;
        }
        let id = arg(&self.call, 0);
        let [before, after] = [self.before, self.after].map(|view| view.hold(id).map(|hold| hold.token));
        if before == after || after.is_none() {
            return None;
        }
        if after.is_some_and(|token| token <= highest) {
            return Some(format!("I2 {id} got a budget from {after:?} on, after {highest}"));
        }
        let first = self.before.queue.iter().find(|ticket| ticket.lives(self.now))?;
        Some(format!("I4 {id} got another budget, and {} waits", first.id))
    }

    /// I4: the same for a semaphore, whose holds have no tokens. The tickets of the caller's cohort do not count. I5: a
    /// cohort does not keep more than the limit.
    fn goes_on(&self) -> Option<String> {
        if (verb(&self.call), self.word) != ("go_on", "GRANTED") {
            return None;
        }
        let View { holds, queue, limit, .. } = self.before;
        let (id, own) = (arg(&self.call, 0), 3..self.call.args.len());
        let is_own = |ticket: &Ticket| own.clone().any(|n| id_of(arg(&self.call, n)) == ticket.id);
        if let Some(other) = queue.iter().find(|ticket| ticket.lives(self.now) && !is_own(ticket)) {
            return Some(format!("I4 {id} goes on, and {} waits", other.id));
        }
        let used: u64 = holds.iter().filter(|hold| hold.lives(self.now)).map(|hold| hold.units).sum();
        (used > *limit).then(|| format!("I5 {id} goes on, and {used} of {limit} are held"))
    }

    /// I10: a late copy finds that what it was to change is gone, and that what became of it stays.
    fn change(&self, granted: &[&Hold]) -> Option<String> {
        if verb(&self.call) != "change" {
            return None;
        }
        let (old, new) = (arg(&self.call, 0), arg(&self.call, 1));
        if granted.iter().any(|hold| hold.id == new) && !self.held(old) {
            return Some(format!("I10 {new} was changed from {old}, which holds nothing"));
        }
        let decided = self.before.hold(new).filter(|_| self.held(new))?;
        let same = self.after.hold(new).is_some_and(|hold| (hold.units, hold.token) == (decided.units, decided.token));
        (!same).then(|| format!("I10 {decided:?} was changed once more: {:?}", self.after.hold(new)))
    }

    /// Who is in the queue when the script looks for the next ones; the caller is behind all others.
    fn queue(&self) -> Vec<Ticket> {
        let mut queue = self.before.queue.clone();
        let ids = subjects(&self.call);
        match verb(&self.call) {
            "cancel" => queue.retain(|ticket| ticket.id != ids[0]),
            "release" if self.word != "NOT_HELD" => {
                let ticket = requeued(&self.call).map(|ticket| Ticket::new(self.call.keys[0], ticket, 0.0));
                queue.extend(ticket.filter(|new| queue.iter().all(|ticket| ticket.id != new.id)));
            }
            "acquire" if queue.iter().all(|ticket| ticket.id != ids[0]) => {
                let units = if self.call.script.name() == "lock_acquire" { 1 } else { number(&self.call, 3) };
                let lease = Duration::from_millis(number(&self.call, 2));
                let at = if arg(&self.call, 1) == "first" { 0 } else { queue.len() };
                queue.insert(at, Ticket { id: ids[0].to_owned(), units, lease, expires_ms: 0.0 });
            }
            // Whoever drains is behind all others, and takes what they leave.
            "drain" => {
                let units = self.after.hold(ids[0]).map_or(1, |hold| hold.units);
                let lease = Duration::from_millis(number(&self.call, 1));
                queue.push(Ticket { id: ids[0].to_owned(), units, lease, expires_ms: 0.0 });
            }
            _ => {}
        }
        queue
    }

    /// I4 and I3: the first ticket is granted what there is room for, then the next, and no other one.
    fn order(&self, granted: &[&Hold], listens: &impl Fn(&str) -> bool) -> Option<String> {
        let changed = (verb(&self.call) == "change").then(|| arg(&self.call, 1));
        let granted: Vec<&str> = granted.iter().map(|hold| &*hold.id).filter(|id| changed != Some(*id)).collect();
        let (after, queue) = (self.after.holds.iter(), self.queue());
        let kept = after.filter(|hold| hold.lives(self.now) && !granted.contains(&&*hold.id));
        let mut free = self.after.limit.saturating_sub(kept.map(|hold| hold.units).sum());
        // The caller reads the reply and needs no message. Its tickets are refreshed first.
        let own = match verb(&self.call) {
            "acquire" | "drain" | "heartbeat" => subjects(&self.call),
            "release" if self.word != "NOT_HELD" => requeued(&self.call).map(id_of).into_iter().collect(),
            _ => Vec::new(),
        };
        // A grant by a release to the same client is in the reply.
        let releases = verb(&self.call) == "release" && self.word != "NOT_HELD" && listens_to_reply(&self.call);
        let told = |id: &str| releases && client_of(id) == client_of(subjects(&self.call)[0]);
        let (mut silent, mut expected) = (BTreeSet::new(), Vec::new());
        for Ticket { id, units, .. } in
            queue.iter().filter(|ticket| own.contains(&&*ticket.id) || ticket.lives(self.now))
        {
            let hears = own.contains(&&**id) || told(id) || listens(id);
            if !hears && silent.contains(client_of(id)) {
                continue;
            }
            if *units > self.after.limit {
                continue;
            }
            if *units > free {
                break;
            }
            if hears {
                expected.push(&**id);
                free -= units;
            } else {
                silent.insert(client_of(id));
            }
        }
        if let Some(first) = granted.iter().find(|id| !expected.contains(id)) {
            return Some(format!("I4 {first} was granted before {expected:?}"));
        }
        let left = expected.iter().find(|id| !granted.contains(id))?;
        (self.promotes() && !may_be_long(self.before, self.now))
            .then(|| format!("I3 there is room left, and {left} waits"))
    }

    fn promotes(&self) -> bool {
        match (verb(&self.call), self.word) {
            ("renew" | "inspect" | "ask_ahead" | "go_on", _) | (_, "STALE" | "FULL" | "OVER") => false,
            // A caller that already holds gets the same answer again.
            ("acquire" | "drain", _) => !self.held(subjects(&self.call)[0]),
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests;
