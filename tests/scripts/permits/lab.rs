//! One semaphore or read-write lock on a server of its own. What is alike is that of the lock's lab.

use std::ops::{Deref, DerefMut};

use crate::lab::{
    Acquired as Granted, Around, Attempt, Cancelled, INBOX, Inbox, Lab, Released, State, Touched, Words, attempt,
    permit_keys, tickets,
};

/// What a writer takes, and the limit of a read-write lock.
pub const ALL: u32 = 1 << 20;

/// So many tokens a writer reserves.
pub const SPAN: u64 = 32;

pub const PERMITS: usize = 0;
pub const LEASES: usize = 1;
pub const QUEUE: usize = 2;
pub const TICKETS: usize = 3;
pub const FENCE: usize = 4;

pub struct Permits {
    lab: Lab,
    pub keys: [String; 5],
    /// That of the call site.
    pub limit: u32,
}

impl Deref for Permits {
    type Target = Lab;
    fn deref(&self) -> &Lab {
        &self.lab
    }
}

impl DerefMut for Permits {
    fn deref_mut(&mut self) -> &mut Lab {
        &mut self.lab
    }
}

/// The n-th attempt of a client to write.
pub fn writer(client: u32, n: u64) -> Attempt {
    attempt(client, n).units(ALL)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acquired {
    As(Granted),
    Over(u32),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    Changed { token: u64, more: bool },
    NotHeld { more: bool },
    Busy { more: bool },
    Stale,
}

impl Changed {
    #[track_caller]
    pub fn token(self) -> u64 {
        match self {
            Self::Changed { token, more: false } => token,
            other => panic!("not changed: {other:?}"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Limited {
    Limit { more: bool },
    Stale,
}

pub const LIMIT: Limited = Limited::Limit { more: false };

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspected {
    pub used: u32,
    pub limit: u32,
    pub waiters: u64,
    /// Wire id, units, token, what is left of the lease.
    pub holds: Vec<(String, u32, u64, i64)>,
}

impl Around for Permits {
    fn lab(&mut self) -> &mut Lab {
        &mut self.lab
    }
}

impl Permits {
    pub fn semaphore(limit: u32) -> Self {
        Self { lab: Lab::new(), keys: permit_keys("sem", "n"), limit }
    }

    pub fn read_write() -> Self {
        Self::read_write_on(Lab::new())
    }

    pub fn read_write_on(lab: Lab) -> Self {
        Self { lab, keys: permit_keys("rw", "n"), limit: ALL }
    }

    /// The same limit for a name of its own on the same server.
    pub fn rename(&mut self, name: &str) {
        let kind = if self.limit == ALL { "rw" } else { "sem" };
        self.keys = permit_keys(kind, name);
    }

    // The scripts.

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

    pub fn acquire_as(&mut self, mode: &str, a: &Attempt) -> Result<Acquired, String> {
        let args = [
            a.id.clone(),
            mode.to_owned(),
            a.lease.to_string(),
            a.span.to_string(),
            self.limit.to_string(),
            a.ttl.to_string(),
            a.max_waiters.to_string(),
            a.not_after.to_string(),
            INBOX.to_owned(),
            self.counts(),
        ];
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
        let (ticket, ttl) = next.map_or_else(|| (String::new(), 0), |next| (next.ticket(), next.ttl));
        let site = self.site();
        let args = [vec![attempt.id.clone()], site, vec![ticket, ttl.to_string(), "0".to_owned()]].concat();
        self.call("permit_release", &args, |words| Released::read(words, Words::any_token))
    }

    /// Releases and queues up, and reads in the reply what its client is told.
    pub fn release_listening_for(&mut self, attempt: &Attempt, next: &Attempt) -> (String, Vec<String>) {
        let (ticket, ttl) = (next.ticket(), next.ttl.to_string());
        let args = [vec![attempt.id.clone()], self.site(), vec![ticket, ttl, "1".to_owned()]].concat();
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

    pub fn cancel(&mut self, attempt: &Attempt) -> Cancelled {
        self.cancel_ticket(&attempt.ticket(), false).unwrap()
    }

    pub fn cancel_ticket(&mut self, ticket: &str, from_tail: bool) -> Result<Cancelled, String> {
        let from = if from_tail { "-1" } else { "1" };
        let args = [vec![ticket.to_owned(), from.to_owned()], self.site()].concat();
        self.call("permit_cancel", &args, Cancelled::read)
    }

    pub fn touch(&mut self, attempts: &[&Attempt]) -> Touched {
        self.try_touch(attempts).unwrap()
    }

    pub fn state(&mut self, attempt: &Attempt) -> State {
        self.touch(&[attempt]).states[0]
    }

    pub fn try_touch(&mut self, attempts: &[&Attempt]) -> Result<Touched, String> {
        let mut args = self.site();
        for attempt in attempts {
            args.extend([attempt.ticket(), attempt.ttl.to_string()]);
        }
        let n = attempts.len();
        let keys = self.keys.clone();
        self.lab.run("permit_touch", &keys, &args, true, |words| Touched::read(words, n, Words::any_token))
    }

    /// Keys, wire id and lease of each hold.
    pub fn renew(&mut self, holds: &[(&[String; 5], &str, u64)]) -> Vec<i64> {
        let keys: Vec<String> = holds.iter().flat_map(|(keys, ..)| keys[..2].to_vec()).collect();
        let args: Vec<String> = holds.iter().flat_map(|(_, id, lease)| [(*id).to_owned(), lease.to_string()]).collect();
        let n = holds.len();
        self.lab.run("permit_renew", &keys, &args, true, |words| (0..n).map(|_| words.next()).collect()).unwrap()
    }

    pub fn renew_one(&mut self, attempt: &Attempt) -> i64 {
        let keys = self.keys.clone();
        self.renew(&[(&keys, &attempt.id, attempt.lease)])[0]
    }

    pub fn change(&mut self, old: &Attempt, new: &Attempt) -> Changed {
        self.try_change(old, new).unwrap()
    }

    pub fn try_change(&mut self, old: &Attempt, new: &Attempt) -> Result<Changed, String> {
        let [limit, prefix, counts] = self.site().try_into().unwrap();
        let (units, lease, not_after) = (new.span.to_string(), new.lease.to_string(), new.not_after.to_string());
        let args = [old.id.clone(), new.id.clone(), units, lease, limit, not_after, prefix, counts];
        self.call("permit_change", &args, |words| match &*words.word() {
            "CHANGED" => Changed::Changed { token: words.any_token(), more: words.flag() },
            "NOT_HELD" => Changed::NotHeld { more: words.flag() },
            "BUSY" => Changed::Busy { more: words.flag() },
            "STALE" => Changed::Stale,
            other => panic!("{other}"),
        })
    }

    pub fn set_limit(&mut self, limit: u32) -> Limited {
        self.try_set_limit(limit, 0).unwrap()
    }

    pub fn try_set_limit(&mut self, limit: u32, not_after: u64) -> Result<Limited, String> {
        let args = [limit.to_string(), not_after.to_string(), INBOX.to_owned(), self.counts()];
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
        let (keys, args) = (self.keys.clone(), [self.limit.to_string()]);
        let start = self.now();
        self.lab.run("permit_inspect", &keys, &args, false, |words| {
            let (used, limit, waiters) = (words.next(), words.next(), words.next());
            let now: u64 = words.next();
            assert!(now >= start);
            let mut holds = Vec::new();
            while words.rest() > 0 {
                holds.push((words.next(), words.next(), words.any_token(), words.next()));
            }
            // The lab expects the clock at the end.
            words.put_back(now);
            Inspected { used, limit, waiters, holds }
        })
    }

    fn site(&self) -> Vec<String> {
        vec![self.limit.to_string(), INBOX.to_owned(), self.counts()]
    }

    fn call<T>(&mut self, script: &str, args: &[String], read: impl FnOnce(&mut Words) -> T) -> Result<T, String> {
        let keys = self.keys.clone();
        self.lab.run(script, &keys, args, false, read)
    }

    // Faults and short cuts.

    pub fn del(&mut self, key: usize) {
        let key = self.keys[key].clone();
        self.raw(&["DEL", &key]);
    }

    pub fn set_wrong(&mut self, key: usize) {
        let key = self.keys[key].clone();
        self.lab.set_wrong(&key);
    }

    /// The lease is over, and nobody has noticed.
    pub fn expire_hold(&mut self, attempt: &Attempt) {
        let key = self.keys[LEASES].clone();
        self.lapse(&key, &attempt.id, 1);
    }

    pub fn expire_ticket(&mut self, attempt: &Attempt) {
        let key = self.keys[TICKETS].clone();
        self.lapse(&key, &attempt.ticket(), 1);
    }

    /// As it is stored.
    pub fn raw_used(&mut self) -> u64 {
        let key = self.keys[PERMITS].clone();
        redis::cmd("HGET").arg(key).arg("used").query(&mut self.connection).unwrap()
    }

    pub fn ttl(&self, key: usize) -> i64 {
        self.server.ttl_ms(&self.keys[key])
    }

    pub fn waiters(&mut self) -> Vec<String> {
        let key = self.keys[QUEUE].clone();
        self.list(&key)
    }

    #[track_caller]
    pub fn assert_queue(&mut self, expected: &[&Attempt]) {
        assert_eq!(self.waiters(), tickets(expected));
    }

    /// Exactly these hold, in any order.
    #[track_caller]
    pub fn assert_held(&mut self, expected: &[&Attempt]) {
        let inspected = self.inspect();
        let mut holds: Vec<_> = inspected.holds.into_iter().map(|(id, units, ..)| (id, units)).collect();
        let mut expected: Vec<_> = expected.iter().map(|attempt| (attempt.id.clone(), attempt.span)).collect();
        holds.sort();
        expected.sort();
        assert_eq!(holds, expected);
        assert_eq!(inspected.used, expected.iter().map(|(_, units)| units).sum::<u32>());
    }

    pub fn token_of(&mut self, attempt: &Attempt) -> u64 {
        self.inspect().holds.into_iter().find(|(id, ..)| *id == attempt.id).unwrap().2
    }

    #[track_caller]
    pub fn assert_messages(&mut self, inbox: &Inbox, expected: &[String]) {
        assert_eq!(self.read(inbox), expected);
    }
}
