//! The seeds that found something, and what has shown it since: workload and faults grow, and with them what a seed
//! does.

use crate::world::Workload::{Latches, Leases, Locks, Permits};
use crate::world::{Faults, Workload, run};
use crate::{ACKNOWLEDGED, CRASHES, EVERYTHING, FREEZES, LOSSES, NETWORK, NONE, SHARDED_ACKNOWLEDGED};

const FOUND: &[(Workload, Faults, u64, &str)] = &[
    (Locks, NETWORK, 1, "a ticket queued up after it was said to be gone: mutant gone_trusted_after_resend"),
    (Locks, FREEZES, 1627, "a bound of the judge: a lease in the way counts from when its answer is read"),
    (Locks, EVERYTHING, 2481, "a bound of the judge: a try may be told STALE after its retry_timeout"),
    (Locks, FREEZES, 502_673, "the same, by a server that stood still"),
    (Locks, EVERYTHING, 23196, "the judge: a late release queues up a ticket, which is about two attempt ids"),
    (Locks, EVERYTHING, 24757, "a grant unheard while its answer is missing: mutant deaf_while_asking"),
    (Locks, CRASHES, 101431, "the judge: a late release may promote a late copy of its own request"),
    (Locks, EVERYTHING, 102058, "a heartbeat sent again was put off by another answer: unit test in heartbeats.rs"),
    (Locks, CRASHES, 102145, "the judge: a release leaves the ticket that a late copy of its request queued up"),
    (Locks, EVERYTHING, 504_849, "the judge: a lease that began in the moment of the answer, but after it"),
    (Permits, NONE, 18, "a client counted a fraction of a millisecond more than it asked for: checked at every grant"),
    (Permits, FREEZES, 508_718, "a full queue handed over twice in one call, and not to the caller: script test"),
    (
        Permits,
        FREEZES,
        401_461,
        "a call that found a full queue dropped a dead head and promoted no ticket: script test",
    ),
    (Permits, FREEZES, 500_117, "the judge: a change leaves the ticket that a late copy of its request queued up"),
    (Permits, LOSSES, 501_303, "the judge: a reader inside a writer of a cohort was asked for when the cohort was"),
    (Permits, EVERYTHING, 903, "a late copy of a refused upgrade took effect: mutant refused_change_tried_again"),
    (Locks, ACKNOWLEDGED, 1, "a ticket granted once more by a new master: mutant token_not_compared"),
    (Leases, ACKNOWLEDGED, 69, "the same, with leases that are extended"),
    (
        Leases,
        NONE,
        9_000_208,
        "a limit counted from a heartbeat before the grant: unit test a_limit_counts_from_when_the_grant_is_known",
    ),
    (Leases, FREEZES, 9_000_180, "the judge: the client has two readers with one token, and one of them is lost"),
    (
        Locks,
        SHARDED_ACKNOWLEDGED,
        1103,
        "the time was over when a master was replaced: the client was said to be closed",
    ),
    (
        Leases,
        NONE,
        12_000_021,
        "the first renewal counted from the answer: unit test a_late_grant_does_not_put_off_the_first_renewal",
    ),
    (
        Locks,
        EVERYTHING,
        12_000_279,
        "a hold whose cohort had asked ahead was evicted, and not checked when that ticket was granted: mutant \
         ahead_not_checked",
    ),
    (Locks, LOSSES, 12_000_744, "the same"),
    (Locks, SHARDED_ACKNOWLEDGED, 12_000_223, "the judge: a slot moves back to where old keys of it were left"),
    (Latches, NETWORK, 4, "a late count-down counted for the next latch: mutant call_forgotten_with_its_latch"),
    (Latches, EVERYTHING, 3, "a refused call was not remembered: mutant refused_call_forgotten"),
];

#[test]
fn seeds_that_found_something() {
    for (workload, faults, seed, found) in FOUND {
        let report = run(*seed, *workload, *faults);
        assert_eq!(report.violation, None, "{workload:?}, {faults:?}, seed {seed}, which once found: {found}");
    }
}
