//! What the sentinels have said, and which server follows from it. Pure: no clock, no sockets.
//!
//! | a sentinel that is | in a round | its last answer |
//! |---|---|---|
//! | new | is waited for | |
//! | up | is waited for until it has answered the round | counts |
//! | down | is not waited for | does not count |
//!
//! The answer with the highest configuration epoch wins: each failover has an epoch of its own, and a sentinel that was
//! cut off still names the old master with an old epoch. An answer below the highest epoch that was ever seen counts
//! only if more than half of the known sentinels give such answers: an operator has reset them then.

use std::sync::Arc;

use super::super::failure::Failure;
use super::super::url::address::Address;
use super::super::url::target::Target;

/// The master, as a sentinel names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) address: Address,
    pub(super) epoch: u64,
}

/// The answer of a sentinel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SentinelAnswer {
    Master(Named),
    /// The sentinel watches no master of that name.
    Unknown,
}

/// Another sentinel, as described by the one that named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Other {
    pub(super) id: String,
    pub(super) host: String,
    pub(super) port: u16,
}

/// Connections are kept to at most this number of sentinels.
const MOST: usize = 16;

pub(super) struct Board {
    entries: Vec<Entry>,
    /// The number of the next entry.
    next: u64,
    /// The number of the current round of questions.
    wanted: u64,
    /// The last accepted answer, with the highest epoch so far.
    master: Option<Named>,
}

struct Entry {
    number: u64,
    target: Arc<Target>,
    /// The sentinel's own id.
    id: Option<String>,
    /// Whether the sentinel was named by another one and is not in the URL.
    discovered: bool,
    state: SentinelState,
}

enum SentinelState {
    New,
    /// Connected, with the last round that the sentinel has answered.
    Up(u64, SentinelAnswer),
    Down(Failure),
}

impl Board {
    pub(super) fn new(sentinels: Vec<Target>) -> Self {
        let mut board = Self { entries: Vec::new(), next: 0, wanted: 0, master: None };
        for target in sentinels {
            board.add(target, None, false);
        }
        board
    }

    fn add(&mut self, target: Target, id: Option<String>, discovered: bool) {
        let number = self.next;
        self.next += 1;
        self.entries.push(Entry { number, target: Arc::new(target), id, discovered, state: SentinelState::New });
    }

    /// All sentinels by number, with those that have answered first.
    pub(super) fn sentinels(&self) -> Vec<(u64, Arc<Target>)> {
        let mut entries: Vec<&Entry> = self.entries.iter().collect();
        entries.sort_by_key(|entry| !matches!(entry.state, SentinelState::Up(..)));
        entries.into_iter().map(|entry| (entry.number, Arc::clone(&entry.target))).collect()
    }

    pub(super) fn knows(&self, number: u64) -> bool {
        self.entries.iter().any(|entry| entry.number == number)
    }

    /// Begins a round, because a connection is about to dial. Only answers to questions from now on count.
    pub(super) fn ask(&mut self) -> u64 {
        self.wanted += 1;
        self.wanted
    }

    /// The round to which the next answer belongs.
    pub(super) fn round(&self) -> u64 {
        self.wanted
    }

    /// Records the answer of a sentinel that was asked after this round had begun.
    pub(super) fn answered(&mut self, number: u64, round: u64, answer: SentinelAnswer) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.number == number) {
            entry.state = SentinelState::Up(round, answer);
            self.master = self.choose();
        }
    }

    pub(super) fn failed(&mut self, number: u64, failure: Failure) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.number == number) {
            entry.state = SentinelState::Down(failure);
        }
    }

    /// Records the id of a sentinel. An entry with the same id that was discovered earlier is the same sentinel at
    /// another address.
    pub(super) fn is_called(&mut self, number: u64, id: String) {
        self.entries.retain(|entry| !(entry.discovered && entry.number != number && entry.id.as_ref() == Some(&id)));
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.number == number) {
            entry.id = Some(id);
        }
    }

    /// Records the others that a sentinel named. Unknown ones are added. Sentinels that were discovered, are down and
    /// are no longer named are removed.
    pub(super) fn discovered(&mut self, others: &[Other]) {
        self.entries.retain(|entry| {
            let down = entry.discovered && matches!(entry.state, SentinelState::Down(_));
            !down || others.iter().any(|other| entry.is(other))
        });
        for other in others {
            let known = self.entries.iter().any(|entry| entry.is(other));
            let Some(first) = self.entries.first().filter(|_| !known && self.entries.len() < MOST) else { continue };
            // A sentinel whose host TLS cannot verify is left out.
            if let Ok(target) = first.target.at(&other.host, other.port) {
                self.add(target, Some(other.id.clone()), true);
            }
        }
    }

    /// Whether all sentinels that can still answer this round have done so.
    pub(super) fn is_complete(&self, round: u64) -> bool {
        self.entries.iter().all(|entry| match &entry.state {
            SentinelState::New => false,
            SentinelState::Up(answered, _) => *answered >= round,
            SentinelState::Down(_) => true,
        })
    }

    /// Whether a sentinel has named a master in this round.
    pub(super) fn has_begun(&self, round: u64) -> bool {
        self.entries
            .iter()
            .any(|entry| matches!(&entry.state, SentinelState::Up(at, SentinelAnswer::Master(_)) if *at >= round))
    }

    /// Whether it is known that another server is the master.
    pub(super) fn is_elsewhere(&self, address: &Address) -> bool {
        self.named().is_some_and(|master| master != address)
    }

    /// The last known address of the master, even if no sentinel can be asked any more.
    pub(super) fn named(&self) -> Option<&Address> {
        self.master.as_ref().map(|master| &master.address)
    }

    /// The master that the sentinels name now.
    pub(super) fn master(&self, name: &str) -> Result<Named, Failure> {
        let answers = || self.answers();
        match &self.master {
            Some(master) if answers().any(|answer| matches!(answer, SentinelAnswer::Master(_))) => Ok(master.clone()),
            _ if answers().next().is_some() => Err(Failure::Invalid(format!(
                "the sentinels know no master of the name {name:?}; master= in the URL must be the name in their \
                 `sentinel monitor <name>`"
            ))),
            _ => Err(self.unreachable()),
        }
    }

    /// The failure to report. A refusal says more than a sentinel that cannot be reached.
    fn unreachable(&self) -> Failure {
        let failures = || {
            self.entries.iter().filter_map(|entry| match &entry.state {
                SentinelState::Down(failure) => Some((&entry.target.address, failure)),
                _ => None,
            })
        };
        if let Some((_, failure)) = failures().find(|(_, failure)| !matches!(failure, Failure::Io(_))) {
            return failure.clone();
        }
        let each: Vec<String> = failures().map(|(address, failure)| format!("{address}: {failure}")).collect();
        Failure::Io(format!("no sentinel answers ({})", each.join("; ")))
    }

    fn answers(&self) -> impl Iterator<Item = &SentinelAnswer> {
        self.entries.iter().filter_map(|entry| match &entry.state {
            SentinelState::Up(_, answer) => Some(answer),
            _ => None,
        })
    }

    fn choose(&self) -> Option<Named> {
        let named = || {
            self.answers().filter_map(|answer| match answer {
                SentinelAnswer::Master(named) => Some(named),
                SentinelAnswer::Unknown => None,
            })
        };
        let Some(highest) = named().map(|named| named.epoch).max() else { return self.master.clone() };
        if let Some(master) = self.master.as_ref().filter(|master| highest < master.epoch) {
            let set_up_anew = named().count() * 2 > self.entries.len();
            if !set_up_anew {
                return Some(master.clone());
            }
        }
        let votes =
            |address: &Address| named().filter(|named| named.epoch == highest && named.address == *address).count();
        let is_current = |address: &Address| self.named() == Some(address);
        let candidates = named().filter(|named| named.epoch == highest);
        candidates.max_by_key(|named| (votes(&named.address), is_current(&named.address))).cloned()
    }
}

impl Entry {
    fn is(&self, other: &Other) -> bool {
        self.id.as_ref() == Some(&other.id) || self.target.address == Address::Tcp(other.host.clone(), other.port)
    }
}

#[cfg(test)]
mod tests;
