//! The clients' side: what they call, and what they are answered.

use std::time::Duration;

use bowline::{Call, Reply};

use super::grants::{number, requeued, subjects, verb};
use super::view::{amount_of, id_of, is_latch, is_used, lease_of, span};
use super::{Judge, twice};

impl Judge {
    /// I8: what a client has begun to release or cancel, it never asks about again.
    pub fn called(&self, call: Call<'_>) {
        if !is_used(call.keys[0]) {
            return;
        }
        let now = self.machine.now();
        self.machine.log_detail(|| format!("    {} {:?} begins", call.script.name(), subjects(&call)));
        let mut state = self.lock();
        if is_latch(call.keys[0]) {
            let found = state.latches.called(call, now);
            drop(state);
            return self.found(found);
        }
        for id in subjects(&call) {
            let attempt = state.attempts.entry(id.to_owned()).or_default();
            match verb(&call) {
                "release" | "cancel" => {
                    attempt.decided.get_or_insert(now);
                }
                "force_release" => {}
                verb => {
                    if verb == "acquire" {
                        attempt.span = span(call.keys[0], id, number(&call, 3));
                    }
                    if verb == "ask_ahead" {
                        attempt.span = attempt.span.max(number(&call, 3));
                    }
                    let lease = match verb {
                        "acquire" => Some(2),
                        "change" => Some(if call.script.name() == "lock_resume" { 2 } else { 3 }),
                        "drain" => Some(1),
                        _ => None,
                    };
                    if let Some(lease) = lease {
                        attempt.first_asking.get_or_insert(now);
                        attempt.asking = now;
                        attempt.lease = Duration::from_millis(number(&call, lease));
                    }
                    // A client that renews has learned of its grant, even while it waits for the replicas.
                    attempt.delivered |= verb == "renew";
                    if verb == "renew" && attempt.changing {
                        state.violation.get_or_insert(format!("I8 renew of {id}, which is being changed"));
                    } else if let Some(decided) = attempt.decided {
                        let ago = now - decided;
                        state.violation.get_or_insert(format!("I8 {verb} of {id}, given up {ago:?} ago"));
                    } else {
                        attempt.changing = verb == "change" && id != subjects(&call)[1];
                    }
                }
            }
        }
        // A reader has the token that is stored, whatever it was before.
        if let ("change", [_, new, ..]) = (verb(&call), &subjects(&call)[..]) {
            let units = if call.script.name() == "lock_resume" { 1 } else { number(&call, 2) };
            let span = span(call.keys[0], new, units);
            state.attempts.entry((*new).to_owned()).or_default().span = span;
        }
        if let Some(ticket) = requeued(&call) {
            let attempt = state.attempts.entry(id_of(ticket).to_owned()).or_default();
            attempt.first_asking.get_or_insert(now);
            (attempt.asking, attempt.lease) = (now, lease_of(ticket));
            attempt.span = span(call.keys[0], id_of(ticket), amount_of(ticket));
            if attempt.decided.is_some() {
                state.violation.get_or_insert(format!("I8 {ticket} is queued, and was given up"));
            }
        }
    }

    /// The client has the answer.
    pub fn answered(&self, call: Call<'_>, reply: &Reply) {
        let Reply::Array(items) = reply else { return };
        let now = self.machine.now();
        self.machine.log_detail(|| format!("    {} {:?} answered", call.script.name(), subjects(&call)));
        let mut state = self.lock();
        if is_latch(call.keys[0]) {
            if twice::word(reply) == "QUEUED" {
                state.latches.told_to_wait(subjects(&call)[0]);
            }
            return;
        }
        let mut told = |id: &str| {
            if let Some(attempt) = state.attempts.get_mut(id) {
                attempt.told = Some(now);
                attempt.learned = attempt.asked;
            }
        };
        match (verb(&call), twice::word(reply)) {
            ("acquire", "QUEUED") => told(subjects(&call)[0]),
            // This ticket gets no message about the end of the lease that blocks it.
            ("release", "RELEASED") | ("ask_ahead", "QUEUED") => {
                if let Some(attempt) = requeued(&call).and_then(|ticket| state.attempts.get_mut(id_of(ticket))) {
                    attempt.told = Some(now);
                }
            }
            ("change", word) => {
                let subjects = subjects(&call);
                for old in subjects.iter().filter(|id| **id != subjects[1]) {
                    let old = state.attempts.entry((*old).to_owned()).or_default();
                    old.changing = false;
                    // A request without a final answer is sent again.
                    let more = word == "BUSY" && items[1] == Reply::Integer(1);
                    if word != "STALE" && !more {
                        old.decided.get_or_insert(now);
                    }
                }
            }
            ("heartbeat", _) => {
                let states = items[3..].iter().step_by(2);
                subjects(&call)
                    .into_iter()
                    .zip(states)
                    .filter(|(_, state)| twice::word(state) == "WAITING")
                    .for_each(|(id, _)| told(id));
            }
            _ => {}
        }
    }
}
