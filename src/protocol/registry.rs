//! Every kind of resource with its calls, and every script.

use std::sync::LazyLock;

use super::kind::Kind;
use super::latch::Latch;
use super::mutex::MUTEX;
use super::once::Runs;
use super::permits::Permits;
use super::resource::Resource;
use super::script::Script;
use super::{client, latch, mutex, once, permits, rate, vote};

/// Sorted by prefix, and within each folder by file.
static SCRIPTS: [&[&LazyLock<Script>]; 7] =
    [client::SCRIPTS, latch::SCRIPTS, mutex::SCRIPTS, vote::SCRIPTS, once::SCRIPTS, permits::SCRIPTS, rate::SCRIPTS];

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
            Self::Once { period, retries } => with(&Runs { period, retries }),
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
    fn the_scripts_of_every_kind_are_checked() {
        let checked = Kind::CHECKED.map(Kind::renewal);
        for kind in Kind::ALL {
            assert!(checked.contains(&kind.renewal()), "{kind:?}");
        }
    }

    #[test]
    fn names_are_sorted() {
        let names: Vec<_> = Script::all().map(Script::name).collect();
        assert!(names.is_sorted(), "{names:?}");
    }
}
