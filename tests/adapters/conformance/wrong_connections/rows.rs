//! One test for each way to be wrong.

use std::time::Duration;

use bowline::testing::Clause;

use super::calls::WrongCall::*;
use super::streams::WrongStream::*;
use super::{Wrong, fails, fails_within};

/// For the wrong ones that only show by a wait that does not end. It is still far longer than anything takes.
const SHORT: Duration = Duration::from_secs(15);

macro_rules! rows {
    ($($test:ident: $wrong:expr => $($clause:ident)+ $(, within $limit:expr)?;)+) => {
        $(#[test]
        fn $test() {
            rows!(@ $wrong, &[$(Clause::$clause),+] $(, $limit)?);
        })+
    };
    (@ $wrong:expr, $clauses:expr) => { fails($wrong, $clauses) };
    (@ $wrong:expr, $clauses:expr, $limit:expr) => { fails_within($limit, $wrong, $clauses) };
}

rows! {
    connects_once: Wrong::ConnectsOnce => Connects;
    takes_nil_for_zero: Wrong::Call(TakesNilForZero) => Replies;
    loads_nothing_for_batches: Wrong::Call(LoadsNothingForBatches) => NewScripts;
    believes_the_server_keeps_scripts: Wrong::Call(BelievesTheServerKeepsScripts) => LostScripts;
    mixes_answers: Wrong::Call(MixesAnswers) => OwnAnswers;
    hides_the_code: Wrong::Call(HidesTheCode) => Refusals;
    reorders: Wrong::Call(Reorders) => Order;
    reverses_batches: Wrong::Call(ReversesBatches) => Batches;
    repeats_dropped_calls: Wrong::Call(RepeatsDroppedCalls) => DroppedCalls;
    holds_up: Wrong::Call(HoldsUp) => KeptCalls;
    mixes_acknowledged: Wrong::MixesAcknowledged => Acknowledged;
    sends_twice: Wrong::Call(SendsTwice) => AtMostOnce;
    denies_what_it_sent: Wrong::Call(DeniesWhatItSent) => Outcomes;
    is_late: Wrong::Call(IsLate) => Deadline;
    never_reconnects: Wrong::Call(NeverReconnects) => Reconnects, within SHORT;
    subscribes_twice: Wrong::Stream(SubscribesTwice) => Subscribed;
    loses_a_message: Wrong::Stream(LosesAMessage) => Messages;
    doubles_a_message: Wrong::Stream(DoublesAMessage) => Messages;
    swaps_messages: Wrong::Stream(SwapsMessages) => Messages;
    mixes_channels: Wrong::Stream(MixesChannels) => Channels;
    stays_subscribed: Wrong::Stream(StaysSubscribed) => Unsubscribes, within SHORT;
    subscribes_although_dropped: Wrong::Stream(SubscribesAlthoughDropped) => DroppedSubscribe, within SHORT;
    swallows_gaps: Wrong::Stream(SwallowsGaps) => Gaps;
    swallows_every_other_gap: Wrong::Stream(SwallowsEveryOtherGap) => BothGaps;
    ends_at_a_gap: Wrong::Stream(EndsAtAGap) => Restored;
    falls_silent_at_a_gap: Wrong::Stream(FallsSilentAtAGap) => Restored, within SHORT;
    misses_changes: Wrong::MissesChanges => WatchedKeys, within SHORT;
    forgets_that_it_is_closed: Wrong::ForgetsThatItIsClosed => CloseFailsCalls;
    a_stream_that_never_ends: Wrong::Stream(NeverEnds) => CloseEndsStreams DropCloses, within SHORT;
    outlives_its_drop: Wrong::OutlivesItsDrop => DropCloses, within SHORT;
    says_good_bye_elsewhere: Wrong::SaysGoodByeElsewhere => WithoutRuntime;
    says_good_bye_in_the_runtime: Wrong::SaysGoodByeInTheRuntime => WithoutRuntime;
}
