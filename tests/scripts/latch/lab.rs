//! One latch on a server of its own. What is alike is that of the lock's lab.

use std::ops::{Deref, DerefMut};

use crate::lab::{Around, Attempt, INBOX, Lab};

pub const LATCH: usize = 0;
pub const TICKETS: usize = 1;
pub const TTL: u64 = 600_000;

pub struct Latch {
    lab: Lab,
    pub keys: [String; 2],
}

impl Deref for Latch {
    type Target = Lab;
    fn deref(&self) -> &Lab {
        &self.lab
    }
}

impl DerefMut for Latch {
    fn deref_mut(&mut self) -> &mut Lab {
        &mut self.lab
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    Set,
    Exists(u64),
    Stale,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    Count(u64),
    Stale,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    Open,
    Queued(i64),
    Stale,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Waiting,
    Open,
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deleted {
    Deleted,
    Gone,
    Stale,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inspected {
    pub count: u64,
    pub ttl: i64,
    pub waiters: u64,
}

pub const NONE: Inspected = Inspected { count: 0, ttl: -2, waiters: 0 };

impl Around for Latch {
    fn lab(&mut self) -> &mut Lab {
        &mut self.lab
    }
}

impl Latch {
    pub fn new() -> Self {
        Self::on(Lab::new())
    }

    pub fn on(lab: Lab) -> Self {
        Self { lab, keys: ["p:latch:{n}", "p:latch:{n}:tickets"].map(str::to_owned) }
    }

    /// A latch with that count.
    pub fn of(count: u64) -> Self {
        let mut lab = Self::new();
        assert_eq!(lab.set(&call(99), count), Set::Set);
        lab
    }

    pub fn set(&mut self, call: &Attempt, count: u64) -> Set {
        self.try_set(call, count, TTL).unwrap()
    }

    pub fn try_set(&mut self, call: &Attempt, count: u64, ttl: u64) -> Result<Set, String> {
        let args = [call.id.clone(), count.to_string(), ttl.to_string(), call.not_after.to_string()];
        let keys = self.keys.clone();
        self.lab.run("latch_set", &keys, &args, false, |words| match &*words.word() {
            "SET" => Set::Set,
            "EXISTS" => Set::Exists(words.next()),
            "STALE" => Set::Stale,
            other => panic!("{other}"),
        })
    }

    pub fn count_down(&mut self, call: &Attempt) -> Counted {
        self.try_count_down(call).unwrap()
    }

    pub fn try_count_down(&mut self, call: &Attempt) -> Result<Counted, String> {
        let args = [call.id.clone(), call.not_after.to_string(), INBOX.to_owned()];
        let keys = self.keys.clone();
        self.lab.run("latch_count_down", &keys, &args, false, |words| match &*words.word() {
            "COUNT" => Counted::Count(words.next()),
            "STALE" => Counted::Stale,
            other => panic!("{other}"),
        })
    }

    pub fn wait(&mut self, waiter: &Attempt) -> Waits {
        self.try_wait(waiter).unwrap()
    }

    pub fn try_wait(&mut self, waiter: &Attempt) -> Result<Waits, String> {
        let args = [waiter.id.clone(), waiter.ttl.to_string(), waiter.not_after.to_string()];
        let keys = self.keys.clone();
        self.lab.run("latch_wait", &keys, &args, false, |words| match &*words.word() {
            "OPEN" => Waits::Open,
            "QUEUED" => Waits::Queued(words.next()),
            "STALE" => Waits::Stale,
            other => panic!("{other}"),
        })
    }

    #[track_caller]
    pub fn queue(&mut self, waiters: &[&Attempt]) {
        for waiter in waiters {
            assert!(matches!(self.wait(waiter), Waits::Queued(_)), "{waiter:?}");
        }
    }

    pub fn touch(&mut self, waiters: &[&Attempt]) -> Vec<State> {
        self.try_touch(waiters).unwrap()
    }

    pub fn try_touch(&mut self, waiters: &[&Attempt]) -> Result<Vec<State>, String> {
        let args: Vec<_> = waiters.iter().flat_map(|waiter| [waiter.id.clone(), waiter.ttl.to_string()]).collect();
        let (keys, n) = (self.keys.clone(), waiters.len());
        self.lab.run("latch_touch", &keys, &args, true, |words| {
            let state = |word: String| match word.as_str() {
                "WAITING" => State::Waiting,
                "OPEN" => State::Open,
                "GONE" => State::Gone,
                other => panic!("{other}"),
            };
            (0..n).map(|_| state(words.next())).collect()
        })
    }

    /// Whether it waited.
    pub fn cancel(&mut self, waiter: &Attempt) -> bool {
        self.try_cancel(waiter).unwrap()
    }

    pub fn try_cancel(&mut self, waiter: &Attempt) -> Result<bool, String> {
        let (keys, args) = (self.keys.clone(), [waiter.id.clone()]);
        self.lab.run("latch_cancel", &keys, &args, false, |words| match &*words.word() {
            "CANCELLED" => true,
            "GONE" => false,
            other => panic!("{other}"),
        })
    }

    pub fn delete(&mut self, call: &Attempt) -> Deleted {
        self.try_delete(call).unwrap()
    }

    pub fn try_delete(&mut self, call: &Attempt) -> Result<Deleted, String> {
        let args = [call.id.clone(), call.not_after.to_string(), INBOX.to_owned()];
        let keys = self.keys.clone();
        self.lab.run("latch_delete", &keys, &args, false, |words| match &*words.word() {
            "DELETED" => Deleted::Deleted,
            "GONE" => Deleted::Gone,
            "STALE" => Deleted::Stale,
            other => panic!("{other}"),
        })
    }

    pub fn inspect(&mut self) -> Inspected {
        self.try_inspect().unwrap()
    }

    pub fn try_inspect(&mut self) -> Result<Inspected, String> {
        let keys = self.keys.clone();
        self.lab.run("latch_inspect", &keys, &[], false, |words| Inspected {
            count: words.next(),
            ttl: words.next(),
            waiters: words.next(),
        })
    }

    // Faults and short cuts.

    pub fn ttl(&self, key: usize) -> i64 {
        self.server.ttl_ms(&self.keys[key])
    }

    pub fn del(&mut self, key: usize) {
        let key = self.keys[key].clone();
        self.raw(&["DEL", &key]);
    }

    pub fn set_wrong(&mut self, key: usize) {
        let key = self.keys[key].clone();
        self.lab.set_wrong(&key);
    }

    pub fn expire_ticket(&mut self, waiter: &Attempt, ms_ago: u64) {
        let key = self.keys[TICKETS].clone();
        self.lapse(&key, &waiter.id, ms_ago);
    }

    /// How many calls the latch remembers.
    pub fn remembered(&mut self) -> usize {
        let key = self.keys[LATCH].clone();
        let fields: Vec<String> = redis::cmd("HKEYS").arg(key).query(&mut self.connection).unwrap();
        fields.iter().filter(|field| !matches!(&***field, "count" | "ends")).count()
    }
}

/// The n-th call of a client that counts, in time in the year 2128.
pub fn call(n: u64) -> Attempt {
    crate::lab::attempt(1, n).not_after(5_000_000_000_000)
}
