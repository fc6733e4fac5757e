//! One master: what `vote.lua` does, and what a client and the master know of each other.

use crate::flaw::Flaw;
use crate::state::{Attempt, CLIENTS};

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Master {
    pub(crate) lock: Option<Lock>,
    /// The largest token that was accepted.
    pub(crate) counter: u8,
    pub(crate) counter_by: Option<Attempt>,
    /// For how long the master is young.
    pub(crate) young: u8,
    pub(crate) links: [Link; CLIENTS],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Lock {
    pub(crate) by: Attempt,
    /// What is left of the lease. The lock may last longer: clocks differ.
    pub(crate) left: u8,
}

/// What one client has asked the master, and what it was answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Link {
    pub(crate) asked: Option<Request>,
    pub(crate) answer: Option<Answer>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Request {
    pub(crate) n: u8,
    pub(crate) token: u8,
    /// What the client would count of the lease: it counts from before the request was sent.
    pub(crate) left: u8,
    /// Whether the token has a majority already, and the hold asks for its votes again.
    pub(crate) granted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Answer {
    /// What the client counts of the lease.
    pub(crate) left: u8,
    /// For how long the vote does not count, because the master was young.
    pub(crate) young: u8,
    /// `None`: accepted. Otherwise the token that the master has seen.
    pub(crate) refused: Option<u8>,
}

impl Answer {
    /// Whether the client counts the lock of this master.
    pub(crate) fn counts(self) -> bool {
        self.left > 0 && self.young == 0
    }
}

impl Master {
    /// The script: `None` if the lock of another attempt is in the way.
    pub(crate) fn vote(&mut self, by: Attempt, request: Request, lease: u8, flaw: Option<Flaw>) -> Option<Answer> {
        if self.lock.is_some_and(|lock| lock.by != by) {
            return None;
        }
        let Request { token, left, granted, .. } = request;
        let is_its_own = self.counter_by == Some(by) || flaw == Some(Flaw::EqualAccepted);
        let accepted = self.counter < token || (self.counter == token && is_its_own);
        if accepted || (granted && flaw == Some(Flaw::CounterLowered)) {
            self.counter = token;
            self.counter_by = Some(by);
        }
        let accepted = accepted || granted;
        self.lock = Some(Lock { by, left: lease });
        let young = if flaw == Some(Flaw::YoungCounts) { 0 } else { self.young };
        Some(Answer { left, young, refused: (!accepted).then_some(self.counter) })
    }

    /// Loses everything. All leases that it granted have ended when it is no longer young.
    pub(crate) fn restart(&mut self, longest_lease: u8) {
        let links = std::mem::take(&mut self.links);
        *self = Self { young: longest_lease, links, ..Self::default() };
    }

    pub(crate) fn tick(&mut self) {
        let pass = |time: &mut u8| *time = time.saturating_sub(1);
        pass(&mut self.young);
        if let Some(lock) = &mut self.lock {
            pass(&mut lock.left);
        }
        for link in &mut self.links {
            if let Some(asked) = &mut link.asked {
                pass(&mut asked.left);
            }
            if let Some(answer) = &mut link.answer {
                pass(&mut answer.left);
                pass(&mut answer.young);
            }
        }
    }

    pub(crate) fn swap_clients(&mut self) {
        self.links.swap(0, 1);
        if let Some(lock) = &mut self.lock {
            lock.by.swap_clients();
        }
        if let Some(by) = &mut self.counter_by {
            by.swap_clients();
        }
    }
}
