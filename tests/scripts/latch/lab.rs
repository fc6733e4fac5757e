//! One latch on a server of its own. What is alike is that of the lock's lab.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use bowline::wire;

use crate::lab::{Around, Attempt, Lab};

pub const LATCH: usize = 0;
pub const TICKETS: usize = 1;
pub const CALLS: usize = 2;
pub const TTL: u64 = 600_000;

pub struct Latch {
    lab: Lab,
}

fn resource() -> wire::Resource {
    wire::Resource::latch("p", "n").unwrap()
}

/// One copy of a call that changes the latch: what a client sends about it.
#[derive(Clone, Debug)]
pub struct Call {
    pub id: String,
    pub n: u64,
    pub not_after: u64,
    pub known_until: u64,
    pub resent: bool,
}

/// The n-th call of a client that counts, in time in the year 2128.
pub fn call(n: u64) -> Call {
    Call { id: crate::lab::attempt(1, n).id, n, not_after: FUTURE, known_until: FUTURE, resent: false }
}

const FUTURE: u64 = 5_000_000_000_000;

impl Call {
    /// This copy may not be executed later.
    pub fn not_after(self, not_after: u64) -> Self {
        Self { not_after, ..self }
    }
    /// No copy may.
    pub fn known_until(self, known_until: u64) -> Self {
        Self { not_after: self.not_after.min(known_until), known_until, ..self }
    }
    /// Its client does not know the server's clock yet.
    pub fn timeless(self) -> Self {
        Self { not_after: 0, known_until: 0, ..self }
    }
    /// Not the first copy.
    pub fn resent(self) -> Self {
        Self { resent: true, ..self }
    }
    /// As the library sends it.
    pub fn wire(&self) -> wire::Copy {
        let wire::Attempt { client, n, .. } = crate::lab::attempt(1, self.n).wire();
        let Self { not_after, known_until, resent, .. } = *self;
        wire::Copy { client, n, not_after, known_until, resent }
    }
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
    More,
    Stale,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    Count(u64),
    /// As `Count`, and some who wait are to be told still.
    More(u64),
    Stale,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    Open,
    None,
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
    More,
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

    pub fn on(mut lab: Lab) -> Self {
        lab.keys = resource().keys();
        Self { lab }
    }

    /// A latch with that count.
    pub fn of(count: u64) -> Self {
        let mut lab = Self::new();
        assert_eq!(lab.set(&call(99), count), Set::Set);
        lab
    }

    pub fn set(&mut self, call: &Call, count: u64) -> Set {
        self.try_set(call, count, TTL).unwrap()
    }

    pub fn try_set(&mut self, call: &Call, count: u64, ttl: u64) -> Result<Set, String> {
        let args = resource().set(call.wire(), count.try_into().unwrap(), Duration::from_millis(ttl)).words();
        let keys = self.keys.clone();
        self.lab.run("latch_set", &keys, &args, false, |words| match &*words.word() {
            "SET" => Set::Set,
            "EXISTS" => Set::Exists(words.next()),
            "MORE" => Set::More,
            "STALE" => Set::Stale,
            other => panic!("{other}"),
        })
    }

    pub fn count_down(&mut self, call: &Call) -> Counted {
        self.try_count_down(call).unwrap()
    }

    pub fn try_count_down(&mut self, call: &Call) -> Result<Counted, String> {
        let args = resource().count_down(call.wire()).words();
        let keys = self.keys.clone();
        self.lab.run("latch_count_down", &keys, &args, false, |words| match &*words.word() {
            "COUNT" => match (words.next(), words.flag()) {
                (count, false) => Counted::Count(count),
                (count, true) => Counted::More(count),
            },
            "STALE" => Counted::Stale,
            other => panic!("{other}"),
        })
    }

    pub fn wait(&mut self, waiter: &Attempt) -> Waits {
        self.try_wait(waiter).unwrap()
    }

    pub fn try_wait(&mut self, waiter: &Attempt) -> Result<Waits, String> {
        let args = resource().acquire(waiter.wire(), true).words();
        let keys = self.keys.clone();
        self.lab.run("latch_wait", &keys, &args, false, |words| match &*words.word() {
            "OPEN" => Waits::Open,
            "NONE" => Waits::None,
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

    /// Expects that no waiter is left to be told.
    pub fn heartbeat(&mut self, waiters: &[&Attempt]) -> Vec<State> {
        let (states, more) = self.try_heartbeat(waiters).unwrap();
        assert!(!more);
        states
    }

    /// And whether some who wait are to be told still.
    pub fn try_heartbeat(&mut self, waiters: &[&Attempt]) -> Result<(Vec<State>, bool), String> {
        let args =
            resource().heartbeat(&waiters.iter().map(|waiter| waiter.wire()).collect::<Vec<_>>()).unwrap().words();
        let (keys, n) = (self.keys.clone(), waiters.len());
        self.lab.run("latch_heartbeat", &keys, &args, true, |words| {
            let state = |word: String| match word.as_str() {
                "WAITING" => State::Waiting,
                "OPEN" => State::Open,
                "GONE" => State::Gone,
                other => panic!("{other}"),
            };
            let more = words.flag();
            ((0..n).map(|_| state(words.next())).collect(), more)
        })
    }

    /// Whether it waited. Expects that no waiter is left to be told.
    pub fn cancel(&mut self, waiter: &Attempt) -> bool {
        let (waited, more) = self.try_cancel(waiter).unwrap();
        assert!(!more);
        waited
    }

    /// And whether some who wait are to be told still.
    pub fn try_cancel(&mut self, waiter: &Attempt) -> Result<(bool, bool), String> {
        let (keys, args) = (self.keys.clone(), resource().cancel(waiter.wire(), false).words());
        self.lab.run("latch_cancel", &keys, &args, false, |words| match &*words.word() {
            "CANCELLED" => (true, words.flag()),
            "GONE" => (false, words.flag()),
            other => panic!("{other}"),
        })
    }

    pub fn delete(&mut self, call: &Call) -> Deleted {
        self.try_delete(call).unwrap()
    }

    pub fn try_delete(&mut self, call: &Call) -> Result<Deleted, String> {
        let args = resource().delete(call.wire()).words();
        let keys = self.keys.clone();
        self.lab.run("latch_delete", &keys, &args, false, |words| match &*words.word() {
            "DELETED" if words.flag() => Deleted::More,
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
        self.look(0).map(|(inspected, _)| inspected)
    }

    /// The tickets of the waiters, so many at most.
    pub fn listed(&mut self, listed: u32) -> Vec<String> {
        self.look(listed).unwrap().1
    }

    fn look(&mut self, listed: u32) -> Result<(Inspected, Vec<String>), String> {
        let (keys, args) = (self.keys.clone(), resource().inspect_latch(listed).words());
        self.lab.run("latch_inspect", &keys, &args, true, |words| {
            let (count, ttl, waiters) = (words.next(), words.next(), words.next());
            (Inspected { count, ttl, waiters }, words.tickets())
        })
    }

    // Faults and short cuts.

    pub fn set_wrong(&mut self, key: usize) {
        let key = self.keys[key].clone();
        self.lab.set_wrong(&key);
    }

    pub fn expire_ticket(&mut self, waiter: &Attempt, ms_ago: u64) {
        let key = self.keys[TICKETS].clone();
        self.lapse(&key, &waiter.id, ms_ago);
    }

    /// The calls that the latch remembers.
    pub fn remembered(&mut self) -> Vec<String> {
        let key = self.keys[CALLS].clone();
        redis::cmd("ZRANGE").arg(key).arg(0).arg(-1).query(&mut self.connection).unwrap()
    }
}
