use super::*;
use crate::runtime::an_instant;

const LEAST: Duration = Duration::from_millis(100);
const SECOND: Duration = Duration::from_secs(1);

fn old(until: Instant) -> Validity {
    Validity { until, from: None }
}

fn accepted(now: Instant) -> VoteAnswer {
    VoteAnswer::Accepted(old(now + SECOND))
}

fn refused(now: Instant, seen: u64) -> VoteAnswer {
    VoteAnswer::Refused(old(now + SECOND), Token::new(seen))
}

fn busy(millis: u64) -> VoteAnswer {
    VoteAnswer::Busy(Duration::from_millis(millis), None)
}

#[test]
fn a_majority_is_of_the_masters_and_not_of_the_answers() {
    let now = an_instant();
    assert_eq!([1, 3, 5].map(majority), [1, 2, 3]);
    for (masters, least) in [(3, 2), (5, 3)] {
        for votes in 0..=masters {
            let verdict = tally(masters, &vec![accepted(now); votes], now, SECOND);
            let expected = if votes >= least { Verdict::Held } else { Verdict::TooFew };
            assert_eq!(verdict, expected, "{votes} of {masters}");
        }
    }
}

#[test]
fn a_lock_without_an_accepted_token_is_no_vote() {
    let now = an_instant();
    let three = |answers: &[VoteAnswer]| tally(3, answers, now, SECOND);
    assert_eq!(three(&[accepted(now), refused(now, 9)]), Verdict::Propose(Token::new(10)));
    assert_eq!(three(&[refused(now, 4), refused(now, 9), refused(now, 7)]), Verdict::Propose(Token::new(10)));
    assert_eq!(three(&[accepted(now), accepted(now), refused(now, 9)]), Verdict::Held);
    assert_eq!(three(&[accepted(now), busy(80), refused(now, 9)]), Verdict::Propose(Token::new(10)));
    assert_eq!(three(&[refused(now, 9)]), Verdict::TooFew);
}

#[test]
fn the_next_proposal_is_larger_than_what_any_master_has_seen_even_if_its_vote_does_not_count() {
    let now = an_instant();
    let young = VoteAnswer::Refused(Validity { until: now + SECOND, from: Some(now + SECOND) }, Token::new(50));
    let answers = [refused(now, 9), refused(now, 8), young];
    assert_eq!(tally(3, &answers, now, SECOND), Verdict::Propose(Token::new(51)));
}

#[test]
fn others_in_the_way_are_no_lack_of_masters() {
    let now = an_instant();
    let three = |answers: &[VoteAnswer]| tally(3, answers, now, SECOND);
    assert_eq!(three(&[busy(80), busy(30), busy(50)]), Verdict::Contested(Duration::from_millis(30)));
    assert_eq!(three(&[accepted(now), busy(80)]), Verdict::Contested(Duration::from_millis(80)));
    assert_eq!(three(&[busy(80)]), Verdict::TooFew);
    let young = VoteAnswer::Busy(LEAST, Some(now + SECOND));
    assert_eq!(three(&[busy(80), young]), Verdict::TooFew);
    assert_eq!(three(&[]), Verdict::TooFew);
}

#[test]
fn what_is_left_of_a_lease_has_to_be_of_use() {
    let now = an_instant();
    let until = |until| VoteAnswer::Accepted(old(until));
    let late = [accepted(now), until(now + LEAST)];
    assert_eq!(tally(3, &late, now, SECOND), Verdict::TooFew);
    let just = [accepted(now), until(now + LEAST + Duration::from_nanos(1))];
    assert_eq!(tally(3, &just, now, SECOND), Verdict::Held);
}

#[test]
fn a_young_master_counts_once_its_time_has_come() {
    let now = an_instant();
    let young = Validity { until: now + 2 * SECOND, from: Some(now + SECOND) };
    let answers = [accepted(now), VoteAnswer::Accepted(young)];
    assert_eq!(tally(3, &answers, now, SECOND), Verdict::TooFew);
    let votes = || [old(now + 3 * SECOND), young];
    assert_eq!(deadline(3, votes(), now), None);
    assert_eq!(deadline(3, votes(), now + SECOND), Some(now + 2 * SECOND));
}

#[test]
fn a_hold_lasts_for_as_long_as_a_majority_does() {
    let now = an_instant();
    let ends = |seconds: &[u32]| seconds.iter().map(|n| old(now + SECOND * *n)).collect::<Vec<_>>();
    assert_eq!(deadline(3, ends(&[9, 1, 5]), now), Some(now + 5 * SECOND));
    assert_eq!(deadline(5, ends(&[9, 1, 5, 7, 3]), now), Some(now + 5 * SECOND));
    assert_eq!(deadline(5, ends(&[9, 5, 7]), now), Some(now + 5 * SECOND));
    assert_eq!(deadline(5, ends(&[9, 5]), now), None);
    assert_eq!(deadline(3, ends(&[9, 5]), now + 5 * SECOND), None, "a lease that has ended is no vote");
}

#[test]
fn a_look_finds_a_majority_that_is_free_and_counts() {
    let now = an_instant();
    let (free, young) = (Seen::Free(None), Seen::Free(Some(now + SECOND)));
    let held = |millis| Seen::Busy(Duration::from_millis(millis), None);
    let three = |seen: &[Seen]| survey(3, seen, now);
    assert_eq!(three(&[free, free, held(80)]), Ok(()));
    assert_eq!(three(&[free, held(80), held(30)]), Err(Lack::Contested(Duration::from_millis(30))));
    assert_eq!(three(&[free, young, held(80)]), Err(Lack::Contested(Duration::from_millis(80))));
    assert_eq!(three(&[young, young, held(80)]), Err(Lack::TooFew));
    assert_eq!(three(&[free, young]), Err(Lack::TooFew));
    assert_eq!(three(&[held(80), Seen::Busy(LEAST, Some(now + SECOND))]), Err(Lack::TooFew));
    assert_eq!(survey(5, &[free, free, held(80)], now), Err(Lack::Contested(Duration::from_millis(80))));
    assert_eq!(three(&[Seen::Busy(Duration::MAX, None), held(80)]), Err(Lack::Contested(Duration::from_millis(80))));
}
