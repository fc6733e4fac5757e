//! Updates the router after a reading of the map.

use std::sync::Arc;
use std::time::Instant;

use super::super::host::Host;
use super::super::reading::Reading;
use super::super::refresh::Found;
use super::{Router, RouterState};
use crate::mutant::{self, Mutant};
use crate::mutex::lock;

impl Router {
    /// Takes over what is newer in a map that was read. The link to a master that was replaced is cut at once: when the
    /// old master resumes, it may execute and answer the calls that wait in its socket, although these writes are lost.
    pub(in super::super) fn learn(&self, reading: Reading) -> Found {
        let Reading { began, map, anew, up, .. } = reading;
        let (now, mut cut, is_down) = (self.executor.now(), Vec::new(), up.is_empty());
        let mut state = lock(&self.state);
        let RouterState { links, map: old, .. } = &mut *state;
        // A `MOVED` may have come since the reading began.
        let map = if anew { map } else { old.merged(&map).map };
        links.retain(|host, link| {
            if map.masters().contains(host) {
                link.out = None;
            } else if old.masters().contains(host) {
                // Disowned before any call can see the new map. The link is closed after that.
                link.node.link.disown(u64::MAX);
                cut.push(Arc::clone(&link.node));
                return false;
            } else {
                link.out.get_or_insert(now);
            }
            true
        });
        let (news, replaced) = (old.differs(&map), old.lost_a_master(&map));
        // `MOVED`s may have named the new owners of all its slots, so that no slot has another owner now.
        let is_without = old.masters().iter().any(|host| !map.masters().contains(host));
        state.map = Arc::new(map);
        state.version += u64::from(news);
        state.read = Some((began, up));
        drop(state);
        self.cut(cut);
        if replaced && !mutant::on(Mutant::ReplacementWithoutGap) {
            self.signals.gap();
        } else if news || is_without {
            self.signals.change();
        }
        match news {
            true => Found::News,
            false if is_down => Found::Down,
            false => Found::Same,
        }
    }

    /// Whether another node that accepts calls has answered a reading that began at this time or later.
    pub(in super::super) fn has_read_since(&self, time: Instant, except: &Host) -> bool {
        let state = lock(&self.state);
        state.read.as_ref().is_some_and(|(began, up)| *began >= time && up.iter().any(|host| host != except))
    }

    /// Whether the map names another node, which could take the place of this one.
    pub(in super::super) fn has_others(&self, host: &Host) -> bool {
        let state = lock(&self.state);
        state.map.masters().iter().chain(state.map.replicas()).any(|other| other != host)
    }
}
