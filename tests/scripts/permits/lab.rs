//! One semaphore or read-write lock on a server of its own. What is alike is that of the lock's lab.

use std::ops::{Deref, DerefMut};

use bowline::wire;

use crate::lab::{Acquired as Granted, Around, Attempt, Inbox, Lab, attempt};

mod calls;

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

/// A semaphore with that limit, or the read-write lock.
fn resource(name: &str, limit: u32) -> wire::Resource {
    let permits =
        if limit == ALL { wire::Resource::read_write("p", name) } else { wire::Resource::semaphore("p", name, limit) };
    permits.unwrap()
}

/// The n-th attempt of a client to read with the right to upgrade, and to take the rest of the units for that.
pub fn upgradable(client: u32, n: u64) -> Attempt {
    attempt(client, n).units(ALL / 2 + 1)
}

pub fn rest(client: u32, n: u64) -> Attempt {
    attempt(client, n).units(ALL / 2 - 1)
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
pub enum Drained {
    Granted(u32),
    Busy { more: bool },
    Stale,
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
    /// Attempt id, units, token, what is left of the lease.
    pub holds: Vec<(String, u32, u64, i64)>,
}

impl Around for Permits {
    fn lab(&mut self) -> &mut Lab {
        &mut self.lab
    }
}

impl Permits {
    pub fn semaphore(limit: u32) -> Self {
        Self::of(limit, Lab::new())
    }

    pub fn read_write() -> Self {
        Self::read_write_on(Lab::new())
    }

    pub fn read_write_on(lab: Lab) -> Self {
        Self::of(ALL, lab)
    }

    fn of(limit: u32, mut lab: Lab) -> Self {
        lab.keys = resource("n", limit).keys();
        Self { lab, limit }
    }

    /// The same limit for a name of its own on the same server.
    pub fn rename(&mut self, name: &str) {
        self.keys = resource(name, self.limit).keys();
    }

    pub fn limit_of(&self, attempt: &Attempt) -> u32 {
        attempt.limit.unwrap_or(self.limit)
    }

    pub fn ticket(&self, attempt: &Attempt) -> String {
        resource("n", self.limit_of(attempt)).ticket(attempt.wire())
    }

    // Faults and short cuts.

    pub fn set_wrong(&mut self, key: usize) {
        let key = self.keys[key].clone();
        self.lab.set_wrong(&key);
    }

    /// The lease is over, and no script has reaped the hold.
    pub fn expire_hold(&mut self, attempt: &Attempt) {
        self.store_in_full();
        let key = self.keys[LEASES].clone();
        self.lapse(&key, &attempt.id, 1);
    }

    pub fn expire_ticket(&mut self, attempt: &Attempt) {
        let (key, ticket) = (self.keys[TICKETS].clone(), self.ticket(attempt));
        self.lapse(&key, &ticket, 1);
    }

    /// A sole hold is stored short until a call needs the rest. This is one that changes nothing else.
    pub fn store_in_full(&mut self) {
        if self.ttl(LEASES) == -2 {
            self.heartbeat(&[]);
        }
    }

    /// When the key expires, or somewhat earlier.
    pub fn ends_at(&mut self, key: &str) -> u64 {
        let now = self.now();
        now + u64::try_from(self.server.ttl_ms(key)).unwrap()
    }

    /// As it is stored, in full.
    pub fn raw_used(&mut self) -> u64 {
        self.store_in_full();
        let key = self.keys[PERMITS].clone();
        redis::cmd("HGET").arg(key).arg("used").query(&mut self.connection).unwrap()
    }

    pub fn waiters(&mut self) -> Vec<String> {
        let key = self.keys[QUEUE].clone();
        self.list(&key)
    }

    #[track_caller]
    pub fn assert_queue(&mut self, expected: &[&Attempt]) {
        let expected: Vec<_> = expected.iter().map(|attempt| self.ticket(attempt)).collect();
        assert_eq!(self.waiters(), expected);
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
