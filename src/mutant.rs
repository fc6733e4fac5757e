//! Mistakes that tests make on purpose, known from other libraries and from drafts of this one. The simulation shows
//! that it catches each of them. Only the feature `_mutants` can switch one on; without it [`on`] is a constant
//! `false`, and the mistakes are not in the program.

/// A mistake. At most one is on.
#[cfg_attr(not(feature = "_mutants"), expect(unreachable_pub, reason = "tests need it, and only with the feature"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// A lease is counted from the reply, not from before the request.
    LeaseFromReply,
    /// A lease granted by a message is counted from when the message is read.
    LeaseFromMessage,
    /// A lease granted by a message is counted from the first request, however often the server has answered "waiting"
    /// since.
    LeaseFromFirstRequest,
    /// The client counts a lease for as long as the server does, although their clocks may run at different rates.
    NoDrift,
    /// A request may be executed at any later time.
    NoNotAfter,
    /// A request that was too late by the server's clock is sent again, and the answer does not correct the estimate of
    /// that clock.
    StaleNotLearned,
    /// A hold is given out although its lease had expired when its grant became known.
    LateGrantKept,
    /// A grant in a message is believed although the request was sent twice.
    GrantTrustedAfterResend,
    /// A hold is given out although it was revoked before its grant became known.
    RevokedGrantHeld,
    /// A grant in a message whose attempt is decided already is released.
    LateGrantReleased,
    /// An attempt id is used again once its attempt is decided.
    AttemptIdReused,
    /// An attempt whose heartbeat is answered with "gone" is forgotten, even if its request was sent again meanwhile.
    GoneTrustedAfterResend,
    /// The timeout of an acquisition is not kept.
    TimeoutIgnored,
    /// A dropped acquisition leaves its ticket or hold in Redis.
    NoCleanUpOnDrop,
    /// A hold that expired on the client is not cleaned up, although a late renewal may have kept it in Redis.
    NoCleanUpOnExpiry,
    /// A guard that is dropped leaves its hold in Redis.
    NoReleaseOnDrop,
    /// A release that was executed, but whose answer was lost, is reported as a loss.
    ResentReleaseLost,
    /// A released hold is renewed once more.
    RenewalAfterRelease,
    /// A renewal that got no answer is not tried again.
    RenewalNotRetried,
    /// Holds that are due at the same time are renewed by their number, whatever their deadlines, and at a pace that
    /// does not look at deadlines.
    TiesById,
    /// A renewal is waited for as long as any command, however little of the lease is left.
    RenewalWithoutBound,
    /// A renewal that the server refuses for now is a loss.
    RefusalTakenForLoss,
    /// A renewal that too few replicas have acknowledged extends the lease.
    UnacknowledgedRenewalCounted,
    /// A hold that was granted once more under the same attempt id is taken for the first one.
    TokenNotCompared,
    /// The call that waits for replicas only looks at the hold, so that there is no write to acknowledge.
    WaitAfterARead,
    /// A call of a cluster whose outcome is unknown is sent again by the connection.
    #[cfg_attr(not(feature = "_redis"), allow(dead_code, reason = "only the redis-rs connection can make it"))]
    ResentAfterUnknown,
    /// The subscription stays at a node that is no part of the cluster any more.
    #[cfg_attr(not(feature = "_redis"), allow(dead_code, reason = "only the redis-rs connection can make it"))]
    SubscriptionLeftBehind,
    /// The server's word that it has ended the subscription to a slot's inbox is ignored, so that the inbox stays where
    /// the slot was.
    #[cfg_attr(not(feature = "_redis"), allow(dead_code, reason = "only the redis-rs connection can make it"))]
    InboxLeftBehind,
    /// The connection says that a slot's inbox is subscribed before the server has subscribed it.
    #[cfg_attr(not(feature = "_redis"), allow(dead_code, reason = "only the redis-rs connection can make it"))]
    InboxOpenTooSoon,
    /// A renewal names all keys that permits may have, although some may not exist.
    ShortRenewedInFull,
    /// A call whose slot has moved is sent to the same node again, and the map is not read anew.
    #[cfg_attr(not(feature = "_redis"), allow(dead_code, reason = "only the redis-rs connection can make it"))]
    MovedNotFollowed,
    /// A node that is taking a slot over is taken for its master.
    #[cfg_attr(not(feature = "_redis"), allow(dead_code, reason = "only the redis-rs connection can make it"))]
    AskUpdatesMap,
    /// A map of slots that is older than the known one replaces it.
    #[cfg_attr(not(feature = "_redis"), allow(dead_code, reason = "only the redis-rs connection can make it"))]
    OlderMapTaken,
    /// An answer that came late counts, although its master may have been replaced meanwhile.
    #[cfg_attr(not(feature = "_redis"), allow(dead_code, reason = "only the redis-rs connection can make it"))]
    LateAnswerBelieved,
    /// No gap follows when a master was replaced, so that what it has granted is not looked at.
    #[cfg_attr(not(feature = "_redis"), allow(dead_code, reason = "only the redis-rs connection can make it"))]
    ReplacementWithoutGap,
    /// No heartbeat follows the subscription of a slot's inbox, although scripts have passed over the waiters until
    /// then.
    NoHeartbeatAfterSubscription,
    /// A node of a cluster is believed to know all subscribers.
    ReceiversBelieved,
    /// The holder is not notified when a renewal finds that the hold is gone.
    LossNotSignalled,
    /// A holder that was lost unnoticed may still be entered.
    LostHoldEntered,
    /// No heartbeat follows a gap in which messages may have been missed.
    NoHeartbeatAfterGap,
    /// No heartbeat follows for a ticket that was queued before a gap, and known to wait only after it.
    GapBeforeAnswerForgotten,
    /// No second heartbeat of a name follows a gap during its first one.
    GapDuringHeartbeatForgotten,
    /// No heartbeat follows a release whose reply was not read, although the reply may have carried a message.
    UnreadReplyForgotten,
    /// The server is not asked about holds after a gap in which messages may have been missed.
    NoVerifyAfterGap,
    /// A script that replies "call again" is not called again.
    MoreNotDone,
    /// Closing does not wait for the releases under way.
    ReleaseCutOff,
    /// An acquisition without an answer ignores messages about its attempt.
    DeafWhileAsking,
    /// A hold that is being changed is renewed all the same.
    RenewedWhileChanging,
    /// The same, of the second hold that an upgrade gives up.
    RestRenewedWhileChanging,
    /// An upgrade releases its hold and acquires anew, where it has to wait.
    UpgradeLetsGo,
    /// A call that changes a latch is sent again as if it were another one.
    CallSentAnew,
    /// A party arrives at a barrier before the server knows that an earlier one of the client has left.
    ArrivesBeforeItHasLeft,
    /// A call of a rate limiter whose outcome is unknown is sent again.
    PermitsTakenAgain,
    /// The wait for permits begins when they are asked for, not when the server has answered.
    PermitsFromRequest,
    /// The work of a holder goes on until the loss is signalled, even past the deadline.
    ProtectWaitsForSignal,
    /// A hold is handed off in its cohort even if its lease was lost.
    LostHoldHandedOff,
    /// The next member of a cohort gets the token of the one before.
    TokenHandedOn,
    /// A hold is handed off for as long as the cohort has members.
    CohortNeverEnds,
    /// A hold is handed off at any time after its grant.
    CohortTakesItsTime,
    /// No release is repeated after a gap.
    ReleaseNotRepeated,
    /// After a gap, the client does not ask whether the server still has a hold that was ended before the last one.
    EndedNotLookedFor,
    /// A hold that the server gives to an attempt that was ended is left there.
    EndedGrantLeft,
    /// A writer that becomes a reader does not keep the token of its guard, but the one that the server knows.
    DowngradedToAnotherToken,
    /// The ticket that a cohort has queued ahead is forgotten when its hold ends.
    AheadForgotten,
    /// The hold is not checked when a ticket is granted that its cohort has queued ahead.
    AheadNotChecked,
    /// A client keeps an idle hold although another one has asked for it.
    WantedIgnored,
    /// A lock that was granted from the queue is kept idle, although others stand behind it.
    QueuedGrantKept,
    /// Closing leaves idle holds in Redis.
    IdleHoldLeft,
    /// A member that leaves its cohort takes its turn along.
    TurnSwallowed,
    /// The ticket of a cohort stays when no member waits for it any more.
    TicketOutlivesItsCohort,
    /// The members of a cohort wait for one that has lost its hold.
    LostHoldKeepsTheCohort,
    /// While a member of a cohort holds permits, no other member asks for more.
    OneAsksForPermits,
    /// A RedLock counts every master that took the lock, whether or not the master accepted the token.
    AnswersCountAsVotes,
    /// The lease of a vote is counted from its answer, not from before the request.
    VoteFromAnswer,
    /// A vote that was lost is asked for with a larger token than the one of the guard.
    VoteRegainedWithFreshToken,
    /// A master that has accepted a larger token does not vote again for a hold that has lost its vote there.
    RegainedVoteBarred,
    /// Votes that become no hold, such as those whose answers come too late, are not cancelled.
    UnusedVotesLeft,
    /// Votes that are given after the release of their hold are kept.
    LateVotesKept,
    /// The turn is handed over before the votes are released.
    TurnBeforeVotes,
    /// The votes of a master count however short a time ago the master has restarted.
    UptimeIgnored,
    /// Of the two connections of a client one is dialled again, without a check that both lead to the same server.
    #[cfg_attr(not(feature = "_redis"), allow(dead_code, reason = "only the redis-rs connection can make it"))]
    OneLinkRedialled,
    /// A hold of permits of which some were given back goes to the next member of its cohort.
    SmallerHoldHandedOff,
    /// Who waits for a lock without a queue does not hear that it was released.
    AnnouncementIgnored,
    /// Who waits for a lock without a queue does not ask again once its channel is subscribed.
    SubscriptionNoNews,
    /// Who watches a name does not look at it after its connection was interrupted.
    WatchGapIgnored,
    /// What the server reports while a watched name is looked at counts as looked at.
    ReportDuringLookIgnored,
    /// Who watches a name does not look at it when a lease ends.
    LeaseEndNotLookedAt,
    /// An acquisition of permits that Java shares is dropped without an answer, and gives nothing back.
    PermitsKeptOnDrop,
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

    /// Switches a mistake on for this thread, until it is dropped.
    #[derive(Debug)]
    pub struct Switch {
        /// A switch belongs to its thread.
        _not_send: PhantomData<*const ()>,
    }

    impl Switch {
        /// Whether this mistake is made now, for tests that stand in for an adapter.
        pub fn is_on(mutant: Mutant) -> bool {
            on(mutant)
        }

        /// Switches `mutant` on instead of the mistake that was on.
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
