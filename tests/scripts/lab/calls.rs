//! The scripts as typed calls.

use bowline::wire;

use super::{
    Acquired, Ahead, Attempt, Cancelled, Forced, HeartbeatReply, Inspected, Lab, Released, Renewed, State, Words,
    attempt, is_held, lock,
};

impl Lab {
    pub fn acquire(&mut self, attempt: &Attempt) -> Acquired {
        self.acquire_as("wait", attempt).unwrap()
    }

    pub fn try_acquire(&mut self, attempt: &Attempt) -> Acquired {
        self.acquire_as("try", attempt).unwrap()
    }

    pub fn acquire_as(&mut self, mode: &str, attempt: &Attempt) -> Result<Acquired, String> {
        let args = self.resource().acquire(attempt.wire(), mode == "wait").words();
        self.call("lock_acquire", &args, |words| Acquired::read(&words.word(), words, Words::token))
    }

    pub fn release(&mut self, attempt: &Attempt) -> Released {
        self.release_and_queue(attempt, None).unwrap()
    }

    pub fn release_for(&mut self, attempt: &Attempt, next: &Attempt) -> Released {
        self.release_and_queue(attempt, Some(next)).unwrap()
    }

    pub fn release_and_queue(&mut self, attempt: &Attempt, next: Option<&Attempt>) -> Result<Released, String> {
        let args = self.resource().release(attempt.wire(), next.map(Attempt::wire)).unwrap().words();
        self.call("lock_release", &args, |words| Released::read(words, Words::token))
    }

    /// Releases, and reads in the reply what its client is told.
    pub fn release_listening(&mut self, attempt: &Attempt) -> (String, Vec<String>) {
        let resource = self.resource().listens(true);
        let args = resource.release(attempt.wire(), None).unwrap().words();
        let read = |words: &mut Words| {
            let (word, _) = (words.word(), words.flag());
            (word, words.told())
        };
        self.call("lock_release", &args, read).unwrap()
    }

    /// Asks for the next hand-off budget of the holder, whose token the server knows.
    pub fn ask_ahead(&mut self, holder: &Attempt, known: u64, next: &Attempt) -> Ahead {
        self.try_ask_ahead(holder, known, next).unwrap()
    }

    pub fn try_ask_ahead(&mut self, holder: &Attempt, known: u64, next: &Attempt) -> Result<Ahead, String> {
        let args = self.resource().ask_ahead(holder.wire(), known, next.span, next.wire()).unwrap().words();
        self.call("lock_ask_ahead", &args, Ahead::read)
    }

    pub fn cancel(&mut self, attempt: &Attempt) -> Cancelled {
        self.cancel_ticket(&attempt.ticket(), false).unwrap()
    }

    pub fn cancel_ticket(&mut self, ticket: &str, from_tail: bool) -> Result<Cancelled, String> {
        let mut args = self.resource().cancel(attempt(1, 1).wire(), from_tail).words();
        args[0] = ticket.to_owned();
        self.call("lock_cancel", &args, Cancelled::read)
    }

    pub fn heartbeat(&mut self, attempts: &[&Attempt]) -> HeartbeatReply {
        self.try_heartbeat(attempts).unwrap()
    }

    /// What became of a single attempt.
    pub fn state(&mut self, attempt: &Attempt) -> State {
        self.heartbeat(&[attempt]).states[0]
    }

    pub fn try_heartbeat(&mut self, attempts: &[&Attempt]) -> Result<HeartbeatReply, String> {
        let attempts: Vec<_> = attempts.iter().map(|attempt| attempt.wire()).collect();
        let args = self.resource().heartbeat(&attempts).unwrap().words();
        let n = attempts.len();
        self.call_raw("lock_heartbeat", &args, true, |words| HeartbeatReply::read(words, n, Words::token))
    }

    /// The token that a renewal of the lab's lock reports.
    pub fn stored_token(&mut self, attempt: &Attempt) -> Renewed {
        let (keys, args) =
            ([self.keys[0].clone()], [attempt.id.clone(), attempt.lease.to_string(), "0".to_owned(), "0".to_owned()]);
        self.run("lock_renew", &keys, &args, true, Words::renewed).unwrap()
    }

    /// Key, attempt id and lease of each hold; 1 for each that is held. Shortens nothing.
    pub fn renew(&mut self, holds: &[(&str, &str, u64)]) -> Vec<i64> {
        self.try_renew(holds).unwrap()
    }

    pub fn try_renew(&mut self, holds: &[(&str, &str, u64)]) -> Result<Vec<i64>, String> {
        let keys: Vec<String> = holds.iter().map(|(key, ..)| (*key).to_owned()).collect();
        let args: Vec<String> =
            holds.iter().flat_map(|(_, id, lease)| [id, &*lease.to_string(), "0", "0"].map(str::to_owned)).collect();
        let n = holds.len();
        self.run("lock_renew", &keys, &args, true, |words| (0..n).map(|_| is_held(&words.renewed())).collect())
    }

    /// Renews the lab's lock, and shortens a lease that is longer than `longest`.
    pub fn renew_within(&mut self, attempt: &Attempt, longest: u64) -> i64 {
        self.renew_at_most(attempt, longest, "0")
    }

    /// Extends the lease of the lab's lock. No call before has asked for more than `longest`.
    pub fn extend(&mut self, attempt: &Attempt, longest: u64) -> i64 {
        self.renew_at_most(attempt, longest, "1")
    }

    fn renew_at_most(&mut self, attempt: &Attempt, longest: u64, extended: &str) -> i64 {
        let keys = [self.keys[0].clone()];
        let args = [attempt.id.clone(), attempt.lease.to_string(), longest.to_string(), extended.to_owned()];
        is_held(&self.run("lock_renew", &keys, &args, true, Words::renewed).unwrap())
    }

    /// Renews the lab's lock.
    pub fn renew_one(&mut self, attempt: &Attempt) -> i64 {
        let key = self.keys[0].clone();
        self.renew(&[(&key, &attempt.id, attempt.lease)])[0]
    }

    /// Gives the hold of one attempt to another one: the new token, or why not.
    pub fn resume(&mut self, old: &Attempt, new: &Attempt) -> Result<u64, String> {
        let args = self.resource().resume(old.wire(), new.wire()).words();
        self.call("lock_resume", &args, |words| match &*words.word() {
            "CHANGED" => {
                let token = words.token();
                assert!(!words.flag());
                Ok(token)
            }
            "STALE" => Err("STALE".to_owned()),
            other => {
                assert!(!words.flag());
                Err(other.to_owned())
            }
        })?
    }

    pub fn force_release(&mut self, holder: &Attempt) -> Forced {
        self.try_force_release(holder).unwrap()
    }

    pub fn try_force_release(&mut self, holder: &Attempt) -> Result<Forced, String> {
        let args = self.resource().force_release(&holder.id).words();
        self.call("lock_force_release", &args, |words| match &*words.word() {
            "RELEASED" => Forced::Released { token: words.token(), more: words.flag() },
            "NOT_HELD" => Forced::NotHeld { more: words.flag() },
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
        let args = self.resource().inspect_lock(listed).words();
        self.call_raw("lock_inspect", &args, true, |words| {
            let (holder, token, ttl, waiters) = (words.next(), words.next(), words.next(), words.next());
            (Inspected { holder, token, ttl, waiters }, words.tickets())
        })
    }

    fn resource(&self) -> wire::Resource {
        lock("n").counts_everyone(self.counts_everyone).sharded(self.sharded)
    }
}
