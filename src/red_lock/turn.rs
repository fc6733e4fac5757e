//! The turn: the one queue of a RedLock, on the first master that serves the name.

use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use futures::future::{Either, select};

use crate::acquire::request::Request;
use crate::acquire::wait::LastFailure;
use crate::acquire::{Acquisition, own};
use crate::error::{Error, Result};
use crate::owned::OwnedHold;
use crate::protocol::key::Keys;
use crate::red_lock::count::majority;
use crate::red_lock::health::LOOK;
use crate::red_lock::masters::Masters;
use crate::red_lock::patience::Patience;

/// Acquires the turn. `None`: another acquisition has it, and the request does not wait. `turns` and `votes` are the
/// keys on each master.
pub(super) async fn take_turn(
    masters: &Arc<Masters>,
    request: &Request,
    (turns, votes): (&[Arc<Keys>], &[Arc<Keys>]),
    until: Option<Instant>,
    patience: &mut Patience,
) -> Result<Option<Arc<OwnedHold>>> {
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
            let last = LastFailure::default();
            let acquisition = Acquisition { source: &master.source, request: &turn, until, last: &last };
            let acquiring = Box::pin(own(&acquisition));
            let watched = pin!(watch(masters, n, request, votes, patience));
            match select(acquiring, watched).await {
                Either::Left((Ok(turn), _)) => {
                    master.served(&turns[n]);
                    return Ok(turn);
                }
                Either::Left((Err(error), _)) => {
                    if !masters.set_failed(n, &turns[n], (error.kind(), error.details()), limit) {
                        return Err(error);
                    }
                }
                Either::Right((watched, _)) => {
                    watched?;
                    masters.set_silent(n, &turns[n], None, limit);
                }
            }
            masters.check_usable(request, votes, majority(masters.all.len()))?;
        }
        masters.check_usable(request, turns, 1)?;
        patience.check(masters, request, votes)?;
        // For a master that answers again, or until it is time to look at the clients again.
        let pause = patience.left(masters, votes).min(LOOK);
        select(masters.changed.listen(), masters.executor().sleep(pause)).await;
    }
}

/// Resolves when the master of the turn leaves a question unanswered for as long as the request can wait, or is down.
/// While it has answered other requests lately, it is not asked.
///
/// # Errors
/// There has been no majority for too long. The other masters are looked at as well: without one, no turn is of any
/// use.
async fn watch(
    masters: &Arc<Masters>,
    n: usize,
    request: &Request,
    votes: &[Arc<Keys>],
    patience: &mut Patience,
) -> Result<(), Error> {
    let limit = masters.node_timeout(request.lease);
    let mut since = masters.now();
    let mut due = since + limit / 2;
    loop {
        // Before the look, so that no change is missed after it.
        let changed = masters.changed.listen();
        let now = masters.now();
        let end = patience.without_majority(masters, votes);
        if end.is_some_and(|end| end <= now) {
            patience.check(masters, request, votes)?;
        }
        if !masters.all[n].is_up() {
            return Ok(());
        }
        let pause = end.map_or(due, |end| end.min(due)).saturating_duration_since(now);
        select(changed, masters.executor().sleep(pause)).await;
        if masters.now() < due {
            continue;
        }
        if !(masters.all[n].is_heard_since(since) || masters.probe(n, limit / 2).await.is_ok()) {
            return Ok(());
        }
        // The queue is served.
        patience.renew(masters.now());
        let others = (0..masters.all.len()).filter(|other| *other != n && !masters.all[*other].is_heard_since(since));
        others.for_each(|other| masters.check(other, Some(LOOK / 2)));
        // Many acquisitions may wait for the same master, and one of them asks for all.
        since = masters.now();
        due = since + masters.jitter().spread(LOOK);
    }
}
