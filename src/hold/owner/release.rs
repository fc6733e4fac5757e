//! How a hold is released.

use std::pin::pin;

use super::{HoldOwner, lost_error};
use crate::context::Context;
use crate::engine::lease::Loss;
use crate::error::Result;
use crate::mutant::{self, Mutant};
use crate::protocol::dispatch::Failure;
use crate::protocol::reply::Released;
use crate::protocol::vote::reply::Left;

impl HoldOwner {
    /// Releases the hold. Called by its last guard. If it is the vote of a master, the same request can release the
    /// turn on that master. That is left if somebody waits for it, or if there was no answer.
    pub(crate) async fn release_with(mut self, turn: &mut Option<Box<Self>>) -> Result<()> {
        if let Some(quorum) = &self.quorum {
            return quorum.release().await;
        }
        if self.leave() {
            return Ok(());
        }
        let now = self.context().now();
        if let Err(loss) = self.hold.release(now) {
            return Err(lost_error(&self.hold, "release", loss));
        }
        // Declared before `this`, and therefore dropped after it. If the future is dropped half-way, its clean-up is
        // added before closing may end.
        let context = self.context().clone();
        let _releasing = context.engine.releasing(&self.hold, now);
        let mut this = self;
        let mut retry = context.retry_from("release", &this.hold.keys, now);
        let mut may_be_done = false;
        loop {
            this.asked = true;
            let sent = retry.sends();
            let released = {
                let call = pin!(send(&context, &this, turn));
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
                    if !may_be_done {
                        return Err(lost_error(&this.hold, "release", Loss::Gone));
                    }
                    context.reply_lost(&this.hold.keys);
                    // An earlier request has released the hold, and its answer was lost. The lease was valid then.
                    return Ok(());
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
async fn send(context: &Context, owned: &HoldOwner, turn: &mut Option<Box<HoldOwner>>) -> Result<Released, Failure> {
    let hold = &owned.hold;
    let Some(with) = turn else {
        return context.scripts().release(&hold.keys, hold.id).await;
    };
    // On the heap, because the futures of all guards would have room for it.
    let Left { was_held, is_waited_for } = Box::pin(leave(context, owned, with)).await?;
    if !is_waited_for {
        *turn = None;
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
