//! One node, and the task that keeps its link up.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt;

use super::super::dial::handshake::{self, Fresh};
use super::super::failure::Failure;
use super::super::link::Link;
use super::super::link::acknowledging::Acknowledging;
use super::super::link::beside::beside;
use super::host::Host;
use super::signals::Signals;
use crate::backoff::Backoff;
use crate::observe;
use crate::on_drop::OnDrop;
use crate::tuning::RECONNECT;

/// A node that receives calls, or did.
pub(super) struct Node {
    pub(super) host: Host,
    pub(super) link: Arc<Link>,
    /// The links to the same node for calls that wait for its replicas.
    pub(super) acknowledging: Acknowledging,
    /// The number of answers that count only once another node has confirmed that this one is still a master.
    doubts: AtomicUsize,
}

impl Node {
    pub(super) fn new(host: Host, link: Arc<Link>) -> Self {
        Self { host, link, acknowledging: Acknowledging::default(), doubts: AtomicUsize::new(0) }
    }

    /// Puts the node in doubt for as long as the returned guard exists.
    pub(super) fn doubt(&self) -> impl Drop {
        self.doubts.fetch_add(1, Ordering::SeqCst);
        Doubt(self)
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

/// Spawns the task of a new link.
pub(super) fn start(node: &Node, signals: Arc<Signals>) {
    // Created before the task runs, because the runtime may drop the task before its first poll.
    let close = OnDrop(Arc::clone(&node.link), |link| link.close());
    node.link.executor.spawn(Box::pin(async move {
        let link = Arc::clone(&close.0);
        // Declared first, and therefore dropped last: the link is closed before its driver is dropped, so the calls
        // that fail then report that it is closed.
        let mut work = pin!(keep_up(&link, &signals));
        let _close = close;
        beside(work.as_mut(), [link.closed().boxed(), link.under_way.keep_time(&*link.executor).boxed()]).await;
    }));
}

/// Keeps the link up. A lost link is also a sign that the map may be old: the node may have been replaced.
async fn keep_up(link: &Link, signals: &Signals) {
    let mut backoff = Backoff::new(RECONNECT, link.seed);
    let mut limit = link.upkeep;
    let mut generation = 0;
    loop {
        let Fresh { target, connection, driver } = loop {
            match open(link, &mut limit).await {
                Ok(fresh) => break fresh,
                Err(failure) => link.failed(failure),
            }
            signals.suspect_map();
            link.executor.sleep(backoff.pause()).await;
        };
        generation += 1;
        link.take_up(target, connection, generation);
        if generation > 1 {
            link.reconnected(observe::COMMANDS);
            signals.gap();
        }
        let since = link.executor.now();
        beside(driver, [link.gone(generation).boxed()]).await;
        link.suspect(generation, Failure::Io("the connection was lost".to_owned()));
        signals.suspect_map();
        backoff.lasted(link.executor.now().saturating_duration_since(since));
        link.executor.sleep(backoff.pause()).await;
    }
}

async fn open(link: &Link, limit: &mut Duration) -> Result<Fresh, Failure> {
    let progress = Arc::default();
    let attempt = async {
        let mut fresh = link.dial(None, None, &progress).await?;
        let sent = link.executor.now();
        handshake::prepare(&mut fresh, false).await?;
        link.measured(link.executor.now().saturating_duration_since(sent));
        Ok(fresh)
    };
    link.attempt(limit, &progress, attempt).await
}
