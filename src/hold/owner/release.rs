//! How a hold is released.

use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use super::{HoldOwner, lost_error};
use crate::context::Context;
use crate::engine::lease::Loss;
use crate::error::Result;
use crate::mutant::{self, Mutant};
use crate::protocol::dispatch::Failure;
use crate::protocol::once::RunEnd;
use crate::protocol::reply::Released;
use crate::protocol::vote::reply::Left;

/// What the request that releases a hold does besides.
pub(crate) enum With {
    Nothing,
    /// Releases the turn of a master with its vote. It is left here if somebody waits for it, or without an answer.
    Turn(Box<HoldOwner>),
    /// Notes how a run has ended.
    Outcome(RunEnd),
}

/// Whether a request began after the end of the lease. Such a request finds no hold even if nothing went wrong. So a
/// release that began in time is no loss then. The arguments are taken by value, because the caller's future would keep
/// what is borrowed.
pub(in crate::hold) fn is_late(sent: Instant, ends: Option<Instant>) -> bool {
    ends.is_some_and(|ends| sent >= ends)
}

impl HoldOwner {
    /// Releases the hold. Called by its last guard.
    pub(crate) async fn release_with(mut self, with: &mut With) -> Result<()> {
        if let Some(quorum) = &self.quorum {
            return Arc::clone(quorum).release().await;
        }
        if self.keep_or_hand_off() {
            return Ok(());
        }
        let now = self.context().now();
        let ends = self.hold.deadline();
        if let Err(loss) = self.hold.release(now) {
            return Err(lost_error(&self.hold, "release", loss));
        }
        // Declared before `this`, and therefore dropped after it. If the future is dropped half-way, its clean-up is
        // added before closing may end.
        let context = self.context().clone();
        let _releasing = context.engine.releasing(&self.hold, now);
        let mut this = self;
        let keys = this.hold.keys.clone();
        let mut retry = context.retry_from("release", &keys, now);
        let mut may_be_done = false;
        loop {
            this.asked = true;
            let sent = retry.sends();
            let is_late = is_late(sent, ends);
            let released = {
                let call = pin!(send(&context, &this, with));
                retry.bounded(sent, call).await
            };
            match released {
                Ok(Released::Released { call_again, messages, now }) => {
                    this.set_ended(call_again, now);
                    context.deliver(messages);
                    return Ok(());
                }
                Ok(Released::NotHeld { call_again, now }) => {
                    this.set_ended(call_again, now);
                    if may_be_done {
                        context.reply_lost(&this.hold.keys);
                        // An earlier request has released the hold, and its answer was lost. The lease was valid then.
                        return Ok(());
                    }
                    if is_late {
                        return Ok(());
                    }
                    context.engine.count_loss(&this.hold, Loss::Gone);
                    return Err(lost_error(&this.hold, "release", Loss::Gone));
                }
                Err(failure) => {
                    if failure.may_be_done() {
                        context.reply_lost(&this.hold.keys);
                        // Stays set from now on. A later request that is certainly not executed does not undo what this
                        // one may have done.
                        may_be_done = true;
                    }
                    if mutant::on(Mutant::ResentReleaseLost) {
                        may_be_done = false;
                    }
                    retry.again_after(failure).await?;
                }
            }
        }
    }
}

/// Sends one request. Takes the turn out if that is released as well.
async fn send(context: &Context, owned: &HoldOwner, with: &mut With) -> Result<Released, Failure> {
    let hold = &owned.hold;
    // What is rare is on the heap, because the futures of all guards would have room for it.
    let Left { was_held, is_waited_for } = match with {
        With::Nothing => return context.scripts().release(&hold.keys, hold.id, hold.resent).await,
        With::Outcome(end) => return Box::pin(context.scripts().end_run(&hold.keys, hold.id, *end)).await,
        With::Turn(turn) => Box::pin(leave(context, owned, turn)).await?,
    };
    if !is_waited_for {
        *with = With::Nothing;
    }
    Ok(if was_held {
        Released::Released { call_again: false, messages: Vec::new(), now: 0 }
    } else {
        Released::NotHeld { call_again: false, now: 0 }
    })
}

async fn leave(context: &Context, vote: &HoldOwner, turn: &mut HoldOwner) -> Result<Left, Failure> {
    // From here on the server may have ended the turn, so a renewal that finds it gone means nothing.
    context.engine.release(&turn.hold, context.now());
    turn.asked = true;
    let (of_vote, of_turn) = (&vote.hold, &turn.hold);
    let left = context.scripts().leave((&of_vote.keys, of_vote.id), (&of_turn.keys, of_turn.id)).await?;
    if !left.is_waited_for {
        let _ = turn.hold.release(context.now());
        turn.ended = true;
    }
    Ok(left)
}
