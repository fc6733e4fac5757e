//! Which calls wait for replicas now.
//!
//! Such a call holds up those behind it on its connection. So the first request of an attempt goes there only while no
//! other call waits, and as long as the replicas answer.

use std::collections::BTreeMap;

/// A set of calls that hold each other up: they go to the same server and wait for the same number of replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WaitsOn {
    pub(crate) node: u64,
    pub(crate) replicas: u32,
}

#[derive(Debug, Default)]
pub(super) struct ReplicaWaits(BTreeMap<WaitsOn, Waits>);

#[derive(Debug, Default)]
struct Waits {
    under_way: u32,
    /// Whether the last wait ended before enough replicas had acknowledged.
    is_slow: bool,
}

impl ReplicaWaits {
    pub(super) fn is_free(&self, link: WaitsOn) -> bool {
        !self.0.contains_key(&link)
    }

    pub(super) fn begin(&mut self, link: WaitsOn) {
        self.0.entry(link).or_default().under_way += 1;
    }

    /// Records the end of a call. `enough`: whether enough replicas have acknowledged, if that is known.
    pub(super) fn end(&mut self, link: WaitsOn, enough: Option<bool>) {
        let Some(waits) = self.0.get_mut(&link) else { return };
        waits.under_way -= 1;
        if let Some(enough) = enough {
            waits.is_slow = !enough;
        }
        if waits.under_way == 0 && !waits.is_slow {
            self.0.remove(&link);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_free_again_once_no_call_waits_and_the_last_one_was_acknowledged() {
        let mut waits = ReplicaWaits::default();
        let [link, other] = [1, 2].map(|replicas| WaitsOn { node: 0, replicas });
        waits.begin(link);
        assert!(!waits.is_free(link) && waits.is_free(other));
        waits.begin(link);
        waits.end(link, Some(true));
        assert!(!waits.is_free(link), "one is left");
        waits.end(link, None);
        assert!(waits.is_free(link));
        waits.begin(link);
        waits.end(link, Some(false));
        assert!(!waits.is_free(link), "the next first request would be held up");
        waits.begin(link);
        waits.end(link, None);
        assert!(!waits.is_free(link), "nothing is known of the replicas");
        waits.begin(link);
        waits.end(link, Some(true));
        assert!(waits.is_free(link));
    }
}
