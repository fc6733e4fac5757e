//! Every kind of resource with its calls, and every script.

use std::sync::LazyLock;

use super::kind::Kind;
use super::latch::Latch;
use super::mutex::Mutex;
use super::permits::Permits;
use super::resource::Resource;
use super::script::Script;
use super::{client, latch, mutex, permits};

/// Sorted by their prefixes; each is sorted by its files.
static SCRIPTS: [&[&LazyLock<Script>]; 4] = [client::SCRIPTS, latch::SCRIPTS, mutex::SCRIPTS, permits::SCRIPTS];

impl Kind {
    /// One of each sort of scripts, for the check when a client connects.
    pub(crate) const CHECKED: [Self; 3] = [Self::Lock, Self::ReadWrite, Self::Latch];

    /// Calls `with` the calls of the kind.
    pub(crate) fn with<T>(self, with: impl FnOnce(&dyn Resource) -> T) -> T {
        match self {
            Self::Lock => with(&Mutex),
            Self::Semaphore { limit } => with(&Permits { limit }),
            Self::ReadWrite => with(&Permits::READ_WRITE),
            Self::Latch => with(&Latch),
        }
    }
}

impl Script {
    /// Every script, in the order of their names.
    pub fn all() -> impl Iterator<Item = &'static Script> {
        SCRIPTS.iter().flat_map(|scripts| scripts.iter().map(|script| LazyLock::force(script)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted() {
        let names: Vec<_> = Script::all().map(Script::name).collect();
        assert!(names.is_sorted(), "{names:?}");
    }
}
