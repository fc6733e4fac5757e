//! Answers that came late count only once another node has confirmed that their node is still a master.
//!
//! A master that was frozen may have been replaced meanwhile. When it thaws, it executes the calls that wait in its
//! sockets before it hears of that, and answers although its writes are lost. The client may read these answers before
//! it reads the new map. Such a call was sent during the freeze, so its answer is late, and the other nodes know of the
//! new master by then.

use std::time::{Duration, Instant};

use super::node::{Node, Way};
use super::router::Router;
use crate::connection::ConnectionError;
use crate::mutant::{self, Mutant};

/// An answer that took longer is late. The limit is a fraction of the node timeout, after which a master is replaced,
/// and answers on a healthy network seldom take as long. On a slow network, the limit is some round trips.
const LATE: Duration = Duration::from_millis(100);
const ROUND_TRIPS: u32 = 2;

/// Returns at once if the answer to a call that was handed over at `handed` came soon. Otherwise waits for a reading of
/// the map that began after the answer. The error: the node was replaced, and the outcome of the call is unknown, or
/// the connection was closed.
pub(super) async fn sure(router: &Router, node: &Node, handed: Instant, way: Way) -> Result<(), ConnectionError> {
    let answered = router.executor.now();
    // `patient` is twice the round trip of the link.
    let late = LATE.max(node.link.patient() * ROUND_TRIPS);
    let took = answered.saturating_duration_since(handed);
    node.link.called(took);
    let is_soon = took < late || mutant::on(Mutant::LateAnswerBelieved);
    if is_soon || !router.has_others(&node.host) {
        return Ok(());
    }
    let _doubt = node.doubt();
    loop {
        let read = router.signals.read.listen();
        if router.is_closed() {
            return Err(ConnectionError::Closed);
        }
        let is_sure = router.has_read_since(answered, &node.host);
        // Checked last: a reading disowns all connections to a replaced node before the reading counts.
        if node.link.is_disowned(u64::MAX) {
            return Err(ConnectionError::Unknown("the node was replaced".to_owned()));
        }
        if is_sure {
            // Waiting for replicas says nothing about the network.
            if let Way::Plain = way {
                node.was_slow(took, answered);
            }
            return Ok(());
        }
        router.signals.suspect_map();
        read.await;
    }
}
