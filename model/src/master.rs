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
    /// For which set of masters the last vote was.
    pub(crate) voted: Option<Voted>,
    pub(crate) links: [Link; CLIENTS],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Lock {
    pub(crate) by: Attempt,
    /// What is left of the lease. The lock may last longer: clocks differ.
    pub(crate) left: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Voted {
    pub(crate) version: u8,
    /// What is left of the lease of that vote, by the clock of the master.
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
    /// The version of the set of masters that the client knows, if it says so.
    pub(crate) version: Option<u8>,
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

/// What the script replies.
pub(crate) enum Vote {
    Answer(Answer),
    /// The lock of another attempt is in the way.
    Busy,
    /// The last vote was for another set of masters, with which a majority of this one need not share a master.
    Other,
}

impl Master {
    /// The script.
    pub(crate) fn vote(&mut self, by: Attempt, request: Request, lease: u8, flaw: Option<Flaw>) -> Vote {
        let Request { token, left, granted, version, .. } = request;
        let holder = self.lock.map(|lock| lock.by);
        let is_busy = holder.is_some_and(|holder| holder != by);
        if let (Some(version), Some(voted)) = (version, self.voted)
            && version.abs_diff(voted.version) > 1
            && holder != Some(by)
            && (is_busy || voted.left > 0)
            && flaw != Some(Flaw::SetNotChecked)
        {
            return Vote::Other;
        }
        if is_busy {
            return Vote::Busy;
        }
        let is_its_own = self.counter_by == Some(by) || flaw == Some(Flaw::EqualAccepted);
        let accepted = self.counter < token || (self.counter == token && is_its_own);
        if accepted || (granted && flaw == Some(Flaw::CounterLowered)) {
            self.counter = token;
            self.counter_by = Some(by);
        }
        let accepted = accepted || granted;
        self.lock = Some(Lock { by, left: lease });
        self.voted = version.map(|version| Voted { version, left: lease });
        let young = if flaw == Some(Flaw::YoungCounts) { 0 } else { self.young };
        Vote::Answer(Answer { left, young, refused: (!accepted).then_some(self.counter) })
    }

    /// Loses everything. All leases that it granted have ended when it is no longer young.
    pub(crate) fn restart(&mut self, longest_lease: u8) {
        let links = std::mem::take(&mut self.links);
        *self = Self { young: longest_lease, links, ..Self::default() };
    }

    /// The lock ends.
    pub(crate) fn free(&mut self) -> Option<Lock> {
        let lock = self.lock.take();
        self.forget();
        lock
    }

    /// What says nothing any more is no part of the state.
    fn forget(&mut self) {
        let is_free = self.lock.is_none();
        self.voted.take_if(|voted| is_free && voted.left == 0);
    }

    pub(crate) fn tick(&mut self) {
        let pass = |time: &mut u8| *time = time.saturating_sub(1);
        pass(&mut self.young);
        if let Some(lock) = &mut self.lock {
            pass(&mut lock.left);
        }
        if let Some(voted) = &mut self.voted {
            pass(&mut voted.left);
        }
        self.forget();
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
