//! The turn: the one queue of a RedLock, on the first master that serves the name.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::{Either, select};

use crate::acquire::request::Request;
use crate::acquire::wait::LastFailure;
use crate::acquire::{Acquisition, own};
use crate::error::Result;
use crate::hold::owner::HoldOwner;
use crate::protocol::key::Keys;
use crate::red_lock::count::majority;
use crate::red_lock::masters::Masters;
use crate::red_lock::patience::Patience;
use crate::tuning::MASTER_CHECK;

/// Acquires the turn. `None`: another acquisition has it, and the request does not wait. `turns` and `votes` are the
/// keys on each master.
pub(super) async fn take_turn(
    masters: &Arc<Masters>,
    request: &Request,
    (turns, votes): (&[Arc<Keys>], &[Arc<Keys>]),
    until: Option<Instant>,
    patience: &Patience,
) -> Result<Option<Arc<HoldOwner>>> {
    let limit = masters.node_timeout(request.lease);
    loop {
        masters.check_usable(request, votes, majority(masters.all.len()))?;
        for (n, master) in masters.all.iter().enumerate() {
            if !master.serves(&turns[n], masters.now()) {
                continue;
            }
            // The turn's lease is renewed even if the hold's is not, because the turn ends after the votes.
            let turn = Request {
                keys: turns[n].clone(),
                renewed: true,
                at_most: None,
                timeout: None,
                holder: None,
                ..request.clone()
            };
            let (asked, last) = (masters.now(), LastFailure::default());
            let acquisition = Acquisition { source: &master.source, request: &turn, until, last: &last };
            let acquiring = Box::pin(own(&acquisition));
            let watched = pin!(watch(masters, n, request.lease, patience));
            let taken = select(acquiring, watched).await;
            let times = (asked.max(patience.ask(masters.now())), limit);
            match taken {
                Either::Left((Ok(turn), _)) => {
                    master.served(&turns[n]);
                    return Ok(turn.held());
                }
                Either::Left((Err(error), _)) => {
                    if !masters.set_failed(n, &turns[n], (error.kind(), error.details()), times) {
                        return Err(error);
                    }
                }
                // It would leave a request for a vote unanswered as well.
                Either::Right(_) => [turns, votes].iter().for_each(|keys| masters.set_silent(n, &keys[n], None, times)),
            }
            masters.check_usable(request, votes, majority(masters.all.len()))?;
        }
        masters.check_usable(request, turns, 1)?;
        patience.check(masters, request)?;
        // For a master that answers again, or until it is time to look at the clients again.
        select(masters.changed.listen(), masters.executor().sleep(MASTER_CHECK)).await;
    }
}

/// Resolves when the master of the turn leaves a question unanswered for as long as the request can wait, or is down.
/// While it has answered other requests lately, it is not asked. The other masters are looked at as well: without a
/// majority, no turn is of any use.
async fn watch(masters: &Arc<Masters>, n: usize, lease: Duration, patience: &Patience) {
    let limit = masters.node_timeout(lease);
    let mut since = masters.now();
    let mut due = since + limit / 2;
    let mut is_served = false;
    loop {
        // Listens before it looks, so that no change is missed in between.
        let changed = masters.changed.listen();
        let now = masters.now();
        if !masters.all[n].is_up() {
            return;
        }
        select(changed, masters.executor().sleep(due.saturating_duration_since(now))).await;
        if masters.now() < due {
            continue;
        }
        if !masters.all[n].is_heard_after(since) {
            if is_served {
                // Until this question, the queue was served as far as is known.
                patience.ask(masters.now());
            }
            if masters.probe(n, limit / 2).await.is_err() {
                return;
            }
        }
        is_served = true;
        patience.wait(masters.now());
        let others = (0..masters.all.len()).filter(|other| *other != n && !masters.all[*other].is_heard_after(since));
        others.for_each(|other| masters.check(other, Some(MASTER_CHECK / 2)));
        // Many acquisitions may wait for the same master. With the jitter, the first of them asks for all.
        since = masters.now();
        due = since + masters.jitter().spread(MASTER_CHECK);
    }
}
