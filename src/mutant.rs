//! Mistakes that are known from other libraries and from this one's drafts, to be made on purpose: the simulation shows
//! that it would notice each. Only the feature `_mutants` can switch one on; without it [`on`] is a constant `false`,
//! and the mistakes are not in the program.

/// A mistake. At most one is on.
#[cfg_attr(not(feature = "_mutants"), expect(unreachable_pub, reason = "tests need it, and only with the feature"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// A lease is counted from the reply, not from before the request.
    LeaseFromReply,
    /// A lease that was granted by message is counted from when the message is read.
    LeaseFromMessage,
    /// A grant by message is counted from the first request, however often the server said "waiting" since.
    LeaseFromFirstRequest,
    /// The client counts a lease as long as the server does, whatever their clocks' rates.
    NoDrift,
    /// A request may be executed however late.
    NoNotAfter,
    /// A request that came too late by the server's clock is sent again as it was.
    StaleNotLearned,
    /// A hold of which nothing was left when it was known is given out.
    LateGrantKept,
    /// A grant by message is believed although the request was sent twice.
    GrantTrustedAfterResend,
    /// A grant that was revoked before it was known is given out.
    RevokedGrantHeld,
    /// A grant by message that nobody waits for any more is released.
    LateGrantReleased,
    /// A attempt id is used again once its attempt is decided.
    AttemptIdReused,
    /// An attempt that a heartbeat was told "gone" about is forgotten, even if its request was sent again meanwhile.
    GoneTrustedAfterResend,
    /// The timeout of an acquisition is not kept.
    TimeoutIgnored,
    /// An acquisition that is dropped leaves in Redis what it has there.
    NoCleanUpOnDrop,
    /// A hold whose lease ran out unrenewed is left to whatever a late renewal has made of it.
    NoCleanUpOnExpiry,
    /// A guard that is dropped leaves its hold in Redis.
    NoReleaseOnDrop,
    /// A release that was executed, but whose answer was lost, is reported as a loss.
    ResentReleaseLost,
    /// A released hold is renewed once more.
    RenewalAfterRelease,
    /// A renewal that got no answer is not tried again.
    RenewalNotRetried,
    /// Holds that are due at the same time are renewed by their number, whatever their deadlines, and at a pace that does not
    /// look at deadlines.
    TiesById,
    /// A renewal is waited for as long as any command, however little of the lease is left.
    RenewalWithoutBound,
    /// A renewal that the server refuses for now is a loss.
    RefusalTakenForLoss,
    /// A renewal that finds nobody is not told to the holder.
    LossNotSignalled,
    /// A holder that was lost unnoticed may still be entered.
    LostHoldEntered,
    /// Nobody is asked about tickets after messages may have been missed.
    NoHeartbeatAfterGap,
    /// Nor is a ticket asked about that was queued before messages were missed, and known to be only afterwards.
    GapBeforeAnswerForgotten,
    /// Nor is a name asked about again if a heartbeat was under way when messages were missed.
    GapDuringHeartbeatForgotten,
    /// Nor when the reply to a release was not read, and may have had a message in it.
    UnreadReplyForgotten,
    /// Nobody is asked about holds after messages may have been missed.
    NoVerifyAfterGap,
    /// A script that says "call again" is not.
    MoreNotDone,
    /// Closing does not wait for the releases under way.
    ReleaseCutOff,
    /// An acquisition that has no answer yet hears nothing.
    DeafWhileAsking,
    /// A hold that is being changed is renewed all the same.
    RenewedWhileChanging,
    /// A call that changes a latch is sent again as if it were another one.
    CallSentAnew,
    /// The work of a holder goes on until the loss is signalled, even past the deadline.
    ProtectWaitsForSignal,
    /// A hold is passed on in its line whatever became of its lease.
    LostHoldPassed,
    /// The next in the line gets the token of the one before.
    TokenPassedOn,
    /// A hold is passed on as long as somebody stands in the line.
    LineNeverEnds,
    /// A hold is passed on however long ago it was granted.
    LineTakesItsTime,
    /// Whoever leaves the line with the turn in its slot keeps it.
    TurnSwallowed,
    /// The ticket of a line stays when nobody stands there any more.
    TicketOutlivesItsLine,
    /// Those in the line wait for whoever has lost its hold.
    LostHoldKeepsTheLine,
    /// Whoever is granted permits asks nobody behind it in the line to ask for more.
    OneAsksForPermits,
    /// Of the two connections of a client one is dialled again, without a check that both lead to the same server.
    #[cfg_attr(not(feature = "_redis"), allow(dead_code, reason = "only the redis-rs connection can make it"))]
    OneLinkRedialled,
}

#[cfg(not(feature = "_mutants"))]
pub(crate) const fn on(_: Mutant) -> bool {
    false
}

#[cfg(feature = "_mutants")]
pub use switch::Switch;
#[cfg(feature = "_mutants")]
pub(crate) use switch::on;

#[cfg(feature = "_mutants")]
mod switch {
    use std::cell::Cell;
    use std::marker::PhantomData;

    use super::Mutant;

    thread_local! {
        static ON: Cell<Option<Mutant>> = const { Cell::new(None) };
    }

    pub(crate) fn on(mutant: Mutant) -> bool {
        ON.get() == Some(mutant)
    }

    /// Makes a mistake on this thread, until dropped.
    #[derive(Debug)]
    pub struct Switch {
        /// It is this thread's.
        _not_send: PhantomData<*const ()>,
    }

    impl Switch {
        /// Whether this mistake is made now. For what stands in for an adapter.
        pub fn is_on(mutant: Mutant) -> bool {
            on(mutant)
        }

        /// Replaces the one that is on.
        #[must_use = "it is off again when this is dropped"]
        pub fn on(mutant: Mutant) -> Self {
            ON.set(Some(mutant));
            Self { _not_send: PhantomData }
        }
    }

    impl Drop for Switch {
        fn drop(&mut self) {
            ON.set(None);
        }
    }
}
