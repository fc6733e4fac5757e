//! One barrier on a server of its own. What is alike is that of the lock's lab.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use bowline::wire;

use crate::lab::{Around, Attempt, Lab};
use crate::latch::lab::Call;

pub const BARRIER: usize = 0;
pub const TICKETS: usize = 1;
pub const ENDED: usize = 2;

/// For how long ends are remembered, in ms.
pub const KEEP: u64 = 60_000;

pub const LEFT: u64 = 1001;
pub const EXPIRED: u64 = 1002;
pub const RESET: u64 = 1003;
pub const FORGOTTEN: u64 = 1004;

pub struct Barrier {
    lab: Lab,
    parties: u32,
    pub keep: u64,
    kind: Kind,
    /// The generation that had ended last when the last party came to wait.
    pub after: u64,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Cyclic,
    /// The parties inside a double barrier.
    Inside,
    /// Those that wait to enter, and came inside after that generation.
    Entry(u64),
}

/// How a generation has ended for a party: its place, or why it is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    pub generation: u64,
    pub place: u64,
}

impl End {
    pub fn of(number: u64) -> Self {
        Self { generation: number / 1024, place: number % 1024 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    Ended(End),
    Queued(i64),
    Other(u32),
    Stale,
}

impl Arrived {
    #[track_caller]
    pub fn end(self) -> End {
        if let Self::Ended(end) = self { end } else { panic!("{self:?}") }
    }
    /// What is left of the first lease.
    #[track_caller]
    pub fn queued(self) -> i64 {
        if let Self::Queued(left) = self { left } else { panic!("{self:?}") }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    Ended(End),
    Waits,
    Gone,
}

impl Ready {
    #[track_caller]
    pub fn end(self) -> End {
        if let Self::Ended(end) = self { end } else { panic!("{self:?}") }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Waiting,
    Ended(End),
    Gone,
}

impl State {
    #[track_caller]
    pub fn end(self) -> End {
        if let Self::Ended(end) = self { end } else { panic!("{self:?}") }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    Reset,
    Gone,
    Stale,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspected {
    pub generation: u64,
    pub parties: u32,
    pub waiters: u64,
}

impl Deref for Barrier {
    type Target = Lab;
    fn deref(&self) -> &Lab {
        &self.lab
    }
}

impl DerefMut for Barrier {
    fn deref_mut(&mut self) -> &mut Lab {
        &mut self.lab
    }
}

impl Around for Barrier {
    fn lab(&mut self) -> &mut Lab {
        &mut self.lab
    }
}

impl Barrier {
    /// Of so many parties.
    pub fn of(parties: u32) -> Self {
        Self::on(Lab::new(), parties)
    }

    pub fn on(mut lab: Lab, parties: u32) -> Self {
        lab.keys = resource(Kind::Cyclic, parties, KEEP).keys();
        Self { lab, parties, keep: KEEP, kind: Kind::Cyclic, after: 0 }
    }

    /// What a double barrier has of the parties inside.
    pub fn inside(parties: u32) -> Self {
        Self::of_kind(Kind::Inside, parties)
    }

    /// Where they wait to enter.
    pub fn entry(parties: u32) -> Self {
        Self::of_kind(Kind::Entry(0), parties)
    }

    fn of_kind(kind: Kind, parties: u32) -> Self {
        let mut barrier = Self::of(parties);
        barrier.lab.keys = resource(kind, parties, KEEP).keys();
        Self { kind, ..barrier }
    }

    /// Arrives at the entry, having come inside after that generation.
    pub fn arrive_of(&mut self, of: u64, party: &Attempt) -> Arrived {
        self.try_arrive_of(of, party).unwrap()
    }

    pub fn try_arrive_of(&mut self, of: u64, party: &Attempt) -> Result<Arrived, String> {
        self.kind = Kind::Entry(of);
        self.try_arrive(party)
    }

    fn resource(&self) -> wire::Resource {
        resource(self.kind, self.parties, self.keep)
    }

    /// The call site has another number of parties.
    pub fn with_parties<T>(&mut self, parties: u32, call: impl FnOnce(&mut Self) -> T) -> T {
        let own = std::mem::replace(&mut self.parties, parties);
        let result = call(self);
        self.parties = own;
        result
    }

    pub fn arrive(&mut self, party: &Attempt) -> Arrived {
        self.try_arrive(party).unwrap()
    }

    pub fn try_arrive(&mut self, party: &Attempt) -> Result<Arrived, String> {
        let args = self.resource().acquire(party.wire(), true).words();
        let keys = self.keys.clone();
        let after = &mut self.after;
        self.lab.run("barrier_arrive", &keys, &args, false, |words| match &*words.word() {
            "ENDED" => Arrived::Ended(End::of(number(&words.word()))),
            "QUEUED" => {
                let left = words.next();
                *after = words.next();
                Arrived::Queued(left)
            }
            "OTHER" => Arrived::Other(words.next()),
            "STALE" => Arrived::Stale,
            other => panic!("{other}"),
        })
    }

    /// They arrive, and wait.
    #[track_caller]
    pub fn queue(&mut self, parties: &[&Attempt]) {
        for party in parties {
            self.arrive(party).queued();
        }
    }

    pub fn heartbeat(&mut self, parties: &[&Attempt]) -> Vec<State> {
        self.try_heartbeat(parties).unwrap().1
    }

    /// And what is left of the first lease.
    pub fn try_heartbeat(&mut self, parties: &[&Attempt]) -> Result<(i64, Vec<State>), String> {
        let args =
            self.resource().heartbeat(&parties.iter().map(|party| party.wire()).collect::<Vec<_>>()).unwrap().words();
        let (keys, n) = (self.keys.clone(), parties.len());
        self.lab.run("barrier_heartbeat", &keys, &args, true, |words| {
            let left = words.next();
            let state = |_| match (&*words.word(), words.word()) {
                ("WAITING", _) => State::Waiting,
                ("ENDED", end) => State::Ended(End::of(number(&end))),
                ("GONE", _) => State::Gone,
                other => panic!("{other:?}"),
            };
            (left, (0..n).map(state).collect())
        })
    }

    /// Whether it waited.
    pub fn leave(&mut self, party: &Attempt) -> bool {
        self.try_leave(party).unwrap()
    }

    pub fn try_leave(&mut self, party: &Attempt) -> Result<bool, String> {
        let (keys, args) = (self.keys.clone(), self.resource().cancel(party.wire(), false).words());
        self.lab.run("barrier_cancel", &keys, &args, false, |words| match &*words.word() {
            "CANCELLED" => true,
            "GONE" => false,
            other => panic!("{other}"),
        })
    }

    /// The party is ready to leave.
    pub fn ready(&mut self, party: &Attempt) -> Ready {
        self.try_ready(party).unwrap()
    }

    pub fn try_ready(&mut self, party: &Attempt) -> Result<Ready, String> {
        let args = self.resource().leave_barrier(party.wire(), Duration::from_millis(self.keep)).words();
        let keys = self.keys.clone();
        self.lab.run("barrier_leave", &keys, &args, false, |words| match &*words.word() {
            "ENDED" => Ready::Ended(End::of(number(&words.word()))),
            "QUEUED" => {
                let _left: i64 = words.next();
                Ready::Waits
            }
            "GONE" => Ready::Gone,
            other => panic!("{other}"),
        })
    }

    pub fn reset(&mut self, call: &Call) -> Reset {
        self.try_reset(call).unwrap()
    }

    pub fn try_reset(&mut self, call: &Call) -> Result<Reset, String> {
        let (keys, args) = (self.keys.clone(), self.resource().reset(call.wire()).words());
        self.lab.run("barrier_reset", &keys, &args, false, |words| match &*words.word() {
            "RESET" => Reset::Reset,
            "GONE" => Reset::Gone,
            "STALE" => Reset::Stale,
            other => panic!("{other}"),
        })
    }

    pub fn inspect(&mut self) -> Inspected {
        self.try_inspect(0).unwrap().0
    }

    /// And the attempt ids of so many who wait.
    pub fn try_inspect(&mut self, listed: u32) -> Result<(Inspected, Vec<String>), String> {
        let args = self.resource().inspect_barrier(listed).words();
        let keys = self.keys[..2].to_vec();
        self.lab.run("barrier_inspect", &keys, &args, true, |words| {
            let (generation, parties, waiters) = (words.next(), words.next(), words.next());
            (Inspected { generation, parties, waiters }, words.tickets())
        })
    }

    // Faults and short cuts.

    pub fn set_wrong(&mut self, key: usize) {
        let key = self.keys[key].clone();
        self.lab.set_wrong(&key);
    }

    /// The lease of the party has ended.
    pub fn expire(&mut self, party: &Attempt) {
        let key = self.keys[TICKETS].clone();
        self.lapse(&key, &party.id, 1);
    }

    /// How many parties and calls are remembered. Each has a number, and a time until which that is so.
    pub fn remembered(&mut self) -> usize {
        let (barrier, ended) = (self.keys[BARRIER].clone(), self.keys[ENDED].clone());
        let fields: Vec<String> = redis::cmd("HKEYS").arg(barrier).query(&mut self.connection).unwrap();
        let timed: usize = redis::cmd("ZCARD").arg(ended).query(&mut self.connection).unwrap();
        assert_eq!(fields.iter().filter(|field| field.contains(':')).count(), timed);
        timed
    }

    /// For how many ms more the end of the party is remembered.
    pub fn remembered_for(&mut self, party: &Attempt) -> i64 {
        let key = self.keys[ENDED].clone();
        let until: i64 = redis::cmd("ZSCORE").arg(key).arg(&party.id).query(&mut self.connection).unwrap();
        until - self.now() as i64
    }

    /// The time is over for which all that has ended until now is remembered.
    pub fn outdate(&mut self) {
        let key = self.keys[ENDED].clone();
        let members: Vec<String> = redis::cmd("ZRANGE").arg(&key).arg(0).arg(-1).query(&mut self.connection).unwrap();
        for member in members {
            self.lapse(&key, &member, 1);
        }
    }
}

fn resource(kind: Kind, parties: u32, keep: u64) -> wire::Resource {
    let keep = Duration::from_millis(keep);
    match kind {
        Kind::Cyclic => wire::Resource::barrier("p", "n", parties, keep),
        Kind::Inside => wire::Resource::inside("p", "n", parties, keep),
        Kind::Entry(of) => wire::Resource::entry("p", "n", parties, keep, of),
    }
    .unwrap()
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("no number: {text:?}"))
}
