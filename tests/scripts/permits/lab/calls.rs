//! The scripts as typed calls.

use bowline::wire;

use super::{Acquired, Changed, Drained, Inspected, Limited, Permits};
use crate::lab::{
    Acquired as Granted, Ahead, Attempt, Cancelled, HeartbeatReply, Released, Renewed, State, Words, attempt, is_held,
};

/// A script that renews, and how many keys of each hold it needs.
type Renewal = (&'static str, usize);

const IN_FULL: Renewal = ("permit_renew", 2);
const SHORT: Renewal = ("permit_renew_short", 1);

impl Permits {
    pub fn acquire(&mut self, attempt: &Attempt) -> Granted {
        self.acquired("wait", attempt)
    }

    pub fn try_acquire(&mut self, attempt: &Attempt) -> Granted {
        self.acquired("try", attempt)
    }

    fn acquired(&mut self, mode: &str, attempt: &Attempt) -> Granted {
        match self.acquire_as(mode, attempt).unwrap() {
            Acquired::As(acquired) => acquired,
            Acquired::Over(limit) => panic!("more than {limit}"),
        }
    }

    pub fn acquire_as(&mut self, mode: &str, attempt: &Attempt) -> Result<Acquired, String> {
        let args = self.site_of(attempt).acquire(attempt.wire(), mode == "wait").words();
        self.call("permit_acquire", &args, |words| match &*words.word() {
            "OVER" => Acquired::Over(words.next()),
            word => Acquired::As(Granted::read(word, words, Words::any_token)),
        })
    }

    /// All of them at once, each granted.
    #[track_caller]
    pub fn hold(&mut self, attempts: &[&Attempt]) {
        for attempt in attempts {
            self.acquire(attempt).granted();
        }
    }

    /// All of them, each behind something.
    #[track_caller]
    pub fn queue(&mut self, attempts: &[&Attempt]) {
        for attempt in attempts {
            assert!(matches!(self.acquire(attempt), Granted::Queued { .. }), "{attempt:?}");
        }
    }

    pub fn release(&mut self, attempt: &Attempt) -> Released {
        self.release_and_queue(attempt, None).unwrap()
    }

    pub fn release_and_queue(&mut self, attempt: &Attempt, next: Option<&Attempt>) -> Result<Released, String> {
        let args = self.release_args(attempt, next, false);
        self.call("permit_release", &args, |words| Released::read(words, Words::any_token))
    }

    /// Releases and queues up, and reads in the reply what its client is told.
    pub fn release_listening_for(&mut self, attempt: &Attempt, next: &Attempt) -> (String, Vec<String>) {
        let args = self.release_args(attempt, Some(next), true);
        let read = |words: &mut Words| {
            let word = words.word();
            if word == "GRANTED" {
                words.any_token();
            }
            words.flag();
            (word, words.told())
        };
        self.call("permit_release", &args, read).unwrap()
    }

    /// Asks for the next hand-off budget of the holder, whose token the server knows.
    pub fn ask_ahead(&mut self, holder: &Attempt, known: u64, budget: u32, next: &Attempt) -> Ahead {
        self.try_ask_ahead(holder, known, budget, next).unwrap()
    }

    pub fn try_ask_ahead(
        &mut self,
        holder: &Attempt,
        known: u64,
        budget: u32,
        next: &Attempt,
    ) -> Result<Ahead, String> {
        let args = self.site_of(next).ask_ahead(holder.wire(), known, budget, next.wire()).unwrap().words();
        self.call("permit_ask_ahead", &args, Ahead::read)
    }

    /// The same for a cohort with these tickets.
    pub fn go_on(&mut self, holder: &Attempt, own: &[&Attempt]) -> Ahead {
        self.try_go_on(holder, own).unwrap()
    }

    pub fn try_go_on(&mut self, holder: &Attempt, own: &[&Attempt]) -> Result<Ahead, String> {
        let own: Vec<_> = own.iter().map(|own| own.wire()).collect();
        let args = self.site_of(holder).go_on(holder.wire(), &own).unwrap().words();
        self.call("permit_go_on", &args, |words| match &*words.word() {
            "GRANTED" => Ahead::Granted(words.any_token()),
            "WANTED" => Ahead::Wanted,
            "NOT_HELD" => Ahead::NotHeld,
            other => panic!("{other}"),
        })
    }

    pub fn cancel(&mut self, attempt: &Attempt) -> Cancelled {
        self.cancel_ticket(&self.ticket(attempt), false).unwrap()
    }

    pub fn cancel_ticket(&mut self, ticket: &str, from_tail: bool) -> Result<Cancelled, String> {
        let mut args = self.site().cancel(attempt(1, 1).wire(), from_tail).words();
        args[0] = ticket.to_owned();
        self.call("permit_cancel", &args, Cancelled::read)
    }

    pub fn heartbeat(&mut self, attempts: &[&Attempt]) -> HeartbeatReply {
        self.try_heartbeat(attempts).unwrap()
    }

    pub fn state(&mut self, attempt: &Attempt) -> State {
        self.heartbeat(&[attempt]).states[0]
    }

    pub fn try_heartbeat(&mut self, attempts: &[&Attempt]) -> Result<HeartbeatReply, String> {
        let mut args =
            self.site().heartbeat(&attempts.iter().map(|attempt| attempt.wire()).collect::<Vec<_>>()).unwrap().words();
        // Each ticket has the limit of its own call site.
        let (first, tickets) = (args.len() - 2 * attempts.len(), attempts.iter().map(|attempt| self.ticket(attempt)));
        args[first..].iter_mut().step_by(2).zip(tickets).for_each(|(arg, ticket)| *arg = ticket);
        let n = attempts.len();
        let keys = self.keys.clone();
        self.lab.run("permit_heartbeat", &keys, &args, true, |words| HeartbeatReply::read(words, n, Words::any_token))
    }

    /// The token that a renewal reports.
    pub fn stored_token(&mut self, attempt: &Attempt) -> Renewed {
        let (keys, args) =
            (self.keys[..2].to_vec(), [attempt.id.clone(), attempt.lease.to_string(), "0".to_owned(), "0".to_owned()]);
        self.lab.run("permit_renew", &keys, &args, true, Words::renewed).unwrap()
    }

    /// Keys, attempt id and lease of each hold; 1 for each that is held. Shortens nothing.
    pub fn renew(&mut self, holds: &[(&[String], &str, u64)]) -> Vec<i64> {
        self.try_renew(holds).unwrap()
    }

    pub fn try_renew(&mut self, holds: &[(&[String], &str, u64)]) -> Result<Vec<i64>, String> {
        self.renew_by(IN_FULL, holds)
    }

    /// By the main keys alone. -2 for a hold that is stored in full.
    pub fn try_renew_short(&mut self, holds: &[(&[String], &str, u64)]) -> Result<Vec<i64>, String> {
        self.renew_by(SHORT, holds)
    }

    fn renew_by(&mut self, (script, of_each): Renewal, holds: &[(&[String], &str, u64)]) -> Result<Vec<i64>, String> {
        let keys: Vec<String> = holds.iter().flat_map(|(keys, ..)| keys[..of_each].to_vec()).collect();
        let args: Vec<String> =
            holds.iter().flat_map(|(_, id, lease)| [id, &*lease.to_string(), "0", "0"].map(str::to_owned)).collect();
        let n = holds.len();
        self.lab.run(script, &keys, &args, true, |words| (0..n).map(|_| is_held(&words.renewed())).collect())
    }

    /// Renews the lab's hold, and shortens a lease that is longer than `longest`.
    pub fn renew_within(&mut self, attempt: &Attempt, longest: u64) -> i64 {
        self.renew_at_most(attempt, longest, "0")
    }

    /// Extends the lease of the lab's hold. No call before has asked for more than `longest`.
    pub fn extend(&mut self, attempt: &Attempt, longest: u64) -> i64 {
        self.renew_at_most(attempt, longest, "1")
    }

    /// The same by the main key alone.
    pub fn extend_short(&mut self, attempt: &Attempt, longest: u64) -> i64 {
        self.renew_at_most_by(SHORT, attempt, longest, "1")
    }

    pub fn renew_within_short(&mut self, attempt: &Attempt, longest: u64) -> i64 {
        self.renew_at_most_by(SHORT, attempt, longest, "0")
    }

    fn renew_at_most(&mut self, attempt: &Attempt, longest: u64, extended: &str) -> i64 {
        self.renew_at_most_by(IN_FULL, attempt, longest, extended)
    }

    fn renew_at_most_by(&mut self, (script, of_each): Renewal, attempt: &Attempt, longest: u64, extended: &str) -> i64 {
        let keys = self.keys[..of_each].to_vec();
        let args = [attempt.id.clone(), attempt.lease.to_string(), longest.to_string(), extended.to_owned()];
        is_held(&self.lab.run(script, &keys, &args, true, Words::renewed).unwrap())
    }

    pub fn renew_one(&mut self, attempt: &Attempt) -> i64 {
        let keys = self.keys.clone();
        self.renew(&[(&keys, &attempt.id, attempt.lease)])[0]
    }

    pub fn change(&mut self, old: &Attempt, new: &Attempt) -> Changed {
        self.try_change(old, new).unwrap()
    }

    pub fn try_change(&mut self, old: &Attempt, new: &Attempt) -> Result<Changed, String> {
        self.try_change_both(old, None, new)
    }

    /// Gives up two holds.
    pub fn change_both(&mut self, old: &Attempt, rest: &Attempt, new: &Attempt) -> Changed {
        self.try_change_both(old, Some(rest), new).unwrap()
    }

    pub fn try_change_both(&mut self, old: &Attempt, rest: Option<&Attempt>, new: &Attempt) -> Result<Changed, String> {
        self.try_change_keeping(old, rest, new, None)
    }

    /// The guard of the old hold has this token.
    pub fn change_keeping(&mut self, old: &Attempt, new: &Attempt, token: u64) -> Changed {
        self.try_change_keeping(old, None, new, Some(token)).unwrap()
    }

    fn try_change_keeping(
        &mut self,
        old: &Attempt,
        rest: Option<&Attempt>,
        new: &Attempt,
        token: Option<u64>,
    ) -> Result<Changed, String> {
        let args = self.site().change_both(old.wire(), rest.map(Attempt::wire), new.wire(), token).words();
        self.call("permit_change", &args, |words| match &*words.word() {
            "CHANGED" => Changed::Changed { token: words.any_token(), more: words.flag() },
            "NOT_HELD" => Changed::NotHeld { more: words.flag() },
            "BUSY" => Changed::Busy { more: words.flag() },
            "STALE" => Changed::Stale,
            other => panic!("{other}"),
        })
    }

    pub fn drain(&mut self, attempt: &Attempt) -> Drained {
        self.try_drain(attempt).unwrap()
    }

    pub fn try_drain(&mut self, attempt: &Attempt) -> Result<Drained, String> {
        let args = self.site().drain(attempt.wire()).words();
        self.call("permit_drain", &args, |words| match &*words.word() {
            "GRANTED" => Drained::Granted(words.next()),
            "BUSY" => Drained::Busy { more: words.flag() },
            "STALE" => Drained::Stale,
            other => panic!("{other}"),
        })
    }

    /// Leaves `rest` units.
    pub fn give_back(&mut self, attempt: &Attempt, rest: u32) -> Cancelled {
        self.try_give_back(attempt, rest).unwrap()
    }

    pub fn try_give_back(&mut self, attempt: &Attempt, rest: u32) -> Result<Cancelled, String> {
        let args = self.site_of(attempt).give_back(attempt.wire(), rest).words();
        self.call("permit_give_back", &args, Cancelled::read)
    }

    /// How many were taken, and the token.
    pub fn force_release(&mut self, holders: &[&Attempt]) -> (u64, u64) {
        let (taken, token, more) = self.try_force_release(holders).unwrap();
        assert!(!more);
        (taken, token)
    }

    pub fn try_force_release(&mut self, holders: &[&Attempt]) -> Result<(u64, u64, bool), String> {
        let ids: Vec<String> = holders.iter().map(|holder| holder.id.clone()).collect();
        let args = self.site().force_release_permits(&ids).words();
        self.call("permit_force_release", &args, |words| (words.next(), words.any_token(), words.flag()))
    }

    pub fn set_limit(&mut self, limit: u32) -> Limited {
        self.try_set_limit(limit, 0).unwrap()
    }

    pub fn try_set_limit(&mut self, limit: u32, not_after: u64) -> Result<Limited, String> {
        let args = self.site_with(limit).store_limit(not_after).words();
        self.call("permit_limit", &args, |words| match &*words.word() {
            "LIMIT" => Limited::Limit { more: words.flag() },
            "STALE" => Limited::Stale,
            other => panic!("{other}"),
        })
    }

    pub fn inspect(&mut self) -> Inspected {
        self.try_inspect().unwrap()
    }

    pub fn try_inspect(&mut self) -> Result<Inspected, String> {
        self.look(0).map(|(inspected, _)| inspected)
    }

    /// The first tickets of the queue, of which so many are looked at.
    pub fn listed(&mut self, listed: u32) -> Vec<String> {
        self.look(listed).unwrap().1
    }

    fn look(&mut self, listed: u32) -> Result<(Inspected, Vec<String>), String> {
        let (keys, args) = (self.keys.clone(), self.site().inspect_permits(listed).words());
        self.lab.run("permit_inspect", &keys, &args, true, |words| {
            let (used, limit, waiters) = (words.next(), words.next(), words.next());
            let held: usize = words.next();
            let hold = |words: &mut Words| (words.next(), words.next(), words.any_token(), words.next());
            let holds = (0..held).map(|_| hold(words)).collect();
            (Inspected { used, limit, waiters, holds }, words.tickets())
        })
    }

    fn release_args(&self, attempt: &Attempt, next: Option<&Attempt>, listens: bool) -> Vec<String> {
        let resource = self.site_of(attempt).listens(listens);
        // The id may be one that no client uses.
        let mut args = resource.release(crate::lab::attempt(1, 1).wire(), next.map(Attempt::wire)).unwrap().words();
        args[0] = attempt.id.clone();
        if let Some(next) = next {
            // The ticket has the limit of its own call site.
            let at = args.len() - 3;
            args[at] = self.ticket(next);
        }
        args
    }

    pub fn site(&self) -> wire::Resource {
        self.site_with(self.limit)
    }

    fn site_of(&self, attempt: &Attempt) -> wire::Resource {
        self.site_with(self.limit_of(attempt))
    }

    fn site_with(&self, limit: u32) -> wire::Resource {
        super::resource("n", limit).counts_everyone(self.counts_everyone).sharded(self.sharded)
    }

    fn call<T>(&mut self, script: &str, args: &[String], read: impl FnOnce(&mut Words) -> T) -> Result<T, String> {
        let keys = self.keys.clone();
        self.lab.run(script, &keys, args, false, read)
    }
}
