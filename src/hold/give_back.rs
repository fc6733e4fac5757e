//! Giving back one part of a hold while other parts of it go on.

use std::pin::pin;
use std::sync::Arc;

use crate::context::Context;
use crate::engine::lease::{Hold, Loss};
use crate::error::Result;
use crate::hold::owner::release::{With, is_late};
use crate::hold::owner::{HoldOwner, check_not_lost, lost_error};

/// Hands the request over to the background when it is dropped, unless the server has answered.
struct Unanswered {
    context: Arc<Context>,
    hold: Arc<Hold>,
    left: u32,
    is_answered: bool,
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if !self.is_answered {
            self.context.engine.give_back_later(&self.hold, self.left, self.context.now());
        }
    }
}

/// Has the server shrink the hold to the units that are left, and waits for the answer. The part has ended already.
pub(super) async fn give_back(owned: Arc<HoldOwner>, left: u32) -> Result<()> {
    let (context, hold) = (owned.context().clone(), owned.hold.clone());
    check_not_lost(&hold, "release", context.now())?;
    let ends = hold.deadline();
    let mut unanswered = Unanswered { context: context.clone(), hold: hold.clone(), left, is_answered: false };
    let mut is_last = false;
    // The request does not keep the hold, because the last part may end meanwhile.
    if let Some(last) = Arc::into_inner(owned) {
        // Asked now, when no other part can keep the hold any more.
        let is_kept = last.is_kept();
        last.release_with(&mut With::Nothing).await?;
        if !is_kept {
            unanswered.is_answered = true;
            return Ok(());
        }
        is_last = true;
    }
    let began = context.now();
    let ticket = hold.keys.kind.ticket(hold.id, hold.lease, hold.amount).keeping(left);
    let mut retry = context.retry_from("release", &hold.keys, began);
    let mut may_be_done = false;
    loop {
        let sent = retry.sends();
        let call = pin!(context.scripts().give_back(&hold.keys, ticket));
        match retry.bounded(sent, call).await {
            Ok(given) => {
                unanswered.is_answered = true;
                context.observe(given.now);
                if given.call_again {
                    context.engine.promote_later(&hold.keys, context.now(), hold.lease);
                }
                // Another part may have ended the hold meanwhile. After the last part, nothing in this client can: only
                // a kept part is left.
                let is_over = !is_last && hold.deadline().is_none() && hold.loss(context.now()).is_none();
                // An earlier request may have given the part back while the hold was there.
                if given.was_held || is_over || may_be_done {
                    return Ok(());
                }
                context.engine.renewed(sent, context.now(), &[], std::slice::from_ref(&hold));
                if is_late(sent, ends) {
                    return Ok(());
                }
                let loss = hold.loss(context.now()).unwrap_or(Loss::Gone);
                return Err(lost_error(&hold, "release", loss));
            }
            Err(failure) => {
                may_be_done |= failure.may_be_done();
                retry.again_after(failure).await?;
            }
        }
    }
}
