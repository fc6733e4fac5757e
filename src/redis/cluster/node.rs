//! One node, whose link is kept up.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::super::link::Link;
use super::super::link::acknowledging::Acknowledging;
use super::super::link::supervisor::{Change, supervise_again};
use super::host::Host;
use super::signals::Signals;
use crate::mutex::lock;

/// A node that receives calls, or did.
pub(super) struct Node {
    pub(super) host: Host,
    pub(super) link: Arc<Link>,
    /// The links to the same node for calls that wait for its replicas.
    pub(super) acknowledging: Acknowledging,
    /// The number of answers that count only once another node has confirmed that this one is still a master.
    doubts: AtomicUsize,
    /// When a slow answer to a call was recorded last.
    slow: Mutex<Option<Instant>>,
}

/// How calls are sent to a node.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    /// Over the link for commands.
    Plain,
    /// Over the link for calls that wait for this number of replicas of the node.
    Acknowledged(u32),
}

/// How often a slow answer to a call says something about the round trip: many calls wait for the same standstill.
const SLOW_PAUSE: Duration = Duration::from_secs(1);

impl Node {
    pub(super) fn new(host: Host, link: Arc<Link>) -> Self {
        Self {
            host,
            link,
            acknowledging: Acknowledging::default(),
            doubts: AtomicUsize::new(0),
            slow: Mutex::default(),
        }
    }

    /// Puts the node in doubt for as long as the returned guard exists.
    pub(super) fn doubt(&self) -> impl Drop {
        self.doubts.fetch_add(1, Ordering::SeqCst);
        Doubt(self)
    }

    /// Records that an answer took that long which another node has confirmed: the network may be slower now.
    pub(super) fn was_slow(&self, took: Duration, now: Instant) {
        let mut last = lock(&self.slow);
        if last.is_none_or(|last| now.saturating_duration_since(last) >= SLOW_PAUSE) {
            *last = Some(now);
            self.link.answered(took);
        }
    }

    pub(super) fn is_in_doubt(&self) -> bool {
        self.doubts.load(Ordering::SeqCst) > 0
    }
}

struct Doubt<'a>(&'a Node);

impl Drop for Doubt<'_> {
    fn drop(&mut self) {
        self.0.doubts.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Spawns the task of a new link. A lost link is also a sign that the map may be old: the node may have been replaced.
pub(super) fn start(node: &Node, signals: Arc<Signals>) {
    let tell = move |change| match change {
        Change::Down => signals.suspect_map(),
        Change::Back => signals.gap(),
    };
    node.link.executor.spawn(Box::pin(supervise_again(Arc::clone(&node.link), tell)));
}
