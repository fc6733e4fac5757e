//! The turn: the one queue of a RedLock, on the first master that answers.

use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use futures::future::{Either, select};

use crate::acquire::request::Request;
use crate::acquire::{Acquisition, own};
use crate::error::{Error, ErrorKind, Result};
use crate::owned::OwnedHold;
use crate::protocol::key::Keys;
use crate::red_lock::masters::Masters;
use crate::red_lock::patience::Patience;

/// Acquires the turn. `None`: another acquisition has it, and the request does not wait.
pub(super) async fn take_turn(
    masters: &Arc<Masters>,
    request: &Request,
    keys: &[Arc<Keys>],
    until: Option<Instant>,
    patience: &mut Patience,
) -> Result<Option<Arc<OwnedHold>>> {
    let limit = masters.node_timeout(request.lease);
    loop {
        masters.check_usable(request)?;
        for (n, master) in masters.all.iter().enumerate().filter(|(_, master)| master.is_up()) {
            // The turn's lease is renewed even if the hold's is not, because the turn ends after the votes.
            let turn = Request {
                keys: keys[n].clone(),
                renewed: true,
                at_most: None,
                timeout: None,
                holder: None,
                ..request.clone()
            };
            let acquisition = Acquisition { source: &master.source, request: &turn, until };
            let acquiring = Box::pin(own(&acquisition));
            match select(acquiring, pin!(masters.silent(n, limit))).await {
                Either::Left((Err(error), _)) if is_of_the_master(&error) => {}
                Either::Left((turn, _)) => return turn,
                Either::Right(((), _)) => {}
            }
            masters.set_down(n);
        }
        patience.check(masters, request)?;
        masters.up_again(patience.left(masters.now())).await;
    }
}

/// Whether another master may do better after this error.
fn is_of_the_master(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Refused)
}
