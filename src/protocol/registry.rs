//! Every kind of resource with its calls, and every script.

use std::sync::LazyLock;
use std::time::Duration;

use super::barrier::Parties;
use super::election::{Leading, Watch};
use super::kind::Kind;
use super::latch::Latch;
use super::mutex::MUTEX;
use super::once::Runs;
use super::permits::Permits;
use super::redisson::Shared;
use super::resource::Resource;
use super::script::Script;
use super::timed_permits::TimedPermit;
use super::{
    barrier, client, election, latch, mutex, names, once, permits, rate, redisson, shared_counter, timed_permits, vote,
};

/// Sorted by prefix, and within each folder by file.
static SCRIPTS: [&[&LazyLock<Script>]; 13] = [
    barrier::SCRIPTS,
    client::SCRIPTS,
    election::SCRIPTS,
    latch::SCRIPTS,
    mutex::SCRIPTS,
    vote::SCRIPTS,
    names::SCRIPTS,
    once::SCRIPTS,
    permits::SCRIPTS,
    rate::SCRIPTS,
    redisson::SCRIPTS,
    shared_counter::SCRIPTS,
    timed_permits::SCRIPTS,
];

impl Kind {
    /// One kind for each group of scripts. A connecting client checks its rights on these.
    pub(crate) const CHECKED: [Self; 3] = [Self::Lock, Self::ReadWrite, Self::Latch];

    /// Passes the calls of the kind to `with`.
    pub(crate) fn with<T>(self, with: impl FnOnce(&dyn Resource) -> T) -> T {
        match self {
            Self::Lock | Self::Turn | Self::Vote => with(&MUTEX),
            Self::Semaphore { limit } => with(&Permits { limit }.leased()),
            Self::ReadWrite => with(&Permits::READ_WRITE.leased()),
            Self::Latch => with(&Latch),
            Self::Barrier { parties, keep } => with(&Parties { parties, keep, stay: false, of: None }),
            Self::Entry { parties, keep, of } => with(&Parties { parties, keep, stay: false, of: Some(of) }),
            Self::Inside { parties, keep } => with(&Parties { parties, keep, stay: true, of: None }),
            Self::Once { first, period, retries } => with(&Runs { first, period, retries }),
            Self::Election => with(&Leading),
            Self::Watch { known, leads } => with(&Watch { known, leads }),
            Self::Redisson { fenced } => with(&Shared { fenced }),
            Self::TimedPermit { keep } => with(&TimedPermit { keep: Duration::from_millis(keep) }),
        }
    }
}

impl Script {
    /// All scripts, sorted by name.
    pub fn all() -> impl Iterator<Item = &'static Script> {
        SCRIPTS.iter().flat_map(|scripts| scripts.iter().map(|script| LazyLock::force(script)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_checked() {
        let rights = Script::all().find(|script| script.name() == "client_rights").unwrap();
        let checked: Vec<_> = rights.commands().collect();
        // Only votes, lists of names, Redisson's counters and shard channels need these, and connecting reads the
        // types.
        let others = ["INCRBY", "INFO", "LASTSAVE", "SCAN", "SPUBLISH", "TYPE"];
        for script in Script::all() {
            for command in script.commands().filter(|command| !others.contains(command)) {
                assert!(checked.contains(&command), "{} calls {command}", script.name());
            }
        }
    }

    #[test]
    fn names_are_sorted() {
        let names: Vec<_> = Script::all().map(Script::name).collect();
        assert!(names.is_sorted(), "{names:?}");
    }
}
