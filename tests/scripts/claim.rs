//! `lock_vote_claim` and `lock_vote_leave`: the turn and the vote of its master in one step.

use bowline::wire;

use crate::lab::{Around as _, Attempt, LEASE, Lab, attempt};

/// The reply. Accepted and refused come with the number, and all that took the turn with its token.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Claim {
    Accepted(u64, Option<u64>),
    Refused(u64, Option<u64>),
    Busy(Option<u64>),
    Taken,
    Stale,
}

fn votes() -> wire::Resource {
    wire::Resource::vote("p", "n").unwrap()
}

fn turns() -> wire::Resource {
    wire::Resource::turn("p", "n").unwrap()
}

/// A lab whose keys are those of the turn: lock, queue, tickets, fence.
fn lab() -> Lab {
    let mut lab = Lab::new();
    lab.keys = turns().keys();
    lab
}

fn owner(n: u64) -> Attempt {
    attempt(9, n)
}

fn claim(lab: &mut Lab, vote: &Attempt, turn: &Attempt, proposal: u64) -> Result<Claim, String> {
    let sent = votes().claim(vote.wire(), proposal, owner(proposal).wire(), &turns(), turn.wire());
    let keys: Vec<String> = sent.keys().into_iter().map(str::to_owned).collect();
    lab.run("lock_vote_claim", &keys, &sent.words(), false, |words| {
        let (word, number) = (words.word(), words.next::<i64>() as u64);
        words.word();
        words.next::<i64>();
        words.next::<i64>();
        // The time is the last one.
        let turn = (words.left() > 1).then(|| words.token());
        match &*word {
            "ACCEPTED" => Claim::Accepted(number, turn),
            "REFUSED" => Claim::Refused(number, turn),
            "BUSY" => Claim::Busy(turn),
            "TAKEN" => Claim::Taken,
            "STALE" => Claim::Stale,
            other => panic!("{other}"),
        }
    })
}

/// The vote, and whether somebody waits for the turn.
fn leave(lab: &mut Lab, vote: &Attempt, turn: &Attempt) -> Result<(bool, bool), String> {
    let sent = votes().leave(vote.wire(), &turns(), turn.wire());
    let keys: Vec<String> = sent.keys().into_iter().map(str::to_owned).collect();
    lab.run("lock_vote_leave", &keys, &sent.words(), false, |words| {
        (words.next::<i64>() == 1, words.next::<i64>() == 1)
    })
}

/// The attempts that have the vote and the turn.
fn holders(lab: &mut Lab) -> [Vec<String>; 2] {
    [votes(), turns()].map(|of| redis::from_redis_value(lab.raw(&["HKEYS", of.main()])).unwrap())
}

#[test]
fn a_free_turn_is_taken_together_with_the_vote() {
    let mut lab = lab();
    let (vote, turn) = (attempt(1, 1), attempt(1, 2).lease(2 * LEASE));
    let Ok(Claim::Accepted(7, Some(token))) = claim(&mut lab, &vote, &turn, 7) else { panic!("it is free") };
    assert_eq!(holders(&mut lab), [[vote.id.clone()], [turn.id.clone()]]);
    let inspected = lab.inspect();
    assert_eq!(inspected.token, token.to_string());
    let (turn_left, vote_left): (i64, i64) =
        (lab.ttl(0), redis::from_redis_value(lab.raw(&["PTTL", votes().main()])).unwrap());
    let lease = LEASE as i64;
    assert!((2 * lease - 5000..=2 * lease).contains(&turn_left) && (lease - 5000..=lease).contains(&vote_left));
    assert!((3_890_000..=3_900_000).contains(&lab.ttl(3)), "the counter of the turn lives for 65 minutes");
    assert_eq!(leave(&mut lab, &vote, &turn), Ok((true, false)));
    assert_eq!(lab.server.keys(), [&*turns().keys()[3], &*votes().keys()[3]], "only the counters stay");
    // The tokens of the turn grow with its counter.
    lab.raw(&["SET", &turns().keys()[3], &(token + 60_000_000).to_string(), "PX", "60000"]);
    let next = claim(&mut lab, &attempt(2, 1), &attempt(2, 2), 8);
    assert_eq!(next, Ok(Claim::Accepted(8, Some(token + 60_000_001))));
}

#[test]
fn a_turn_that_another_one_has_or_waits_for_is_not_taken_and_neither_is_the_vote() {
    let mut lab = lab();
    let (holder, waiter) = (attempt(3, 1), attempt(4, 1));
    lab.acquire(&holder).token();
    assert_eq!(claim(&mut lab, &attempt(1, 1), &attempt(1, 2), 7), Ok(Claim::Taken));
    lab.acquire(&waiter).queued();
    // Its client does not listen, so the turn is free, and still the waiter's.
    lab.expire_hold();
    assert_eq!(claim(&mut lab, &attempt(1, 1), &attempt(1, 2), 7), Ok(Claim::Taken));
    assert_eq!(holders(&mut lab), [[""; 0]; 2]);
    assert_eq!(lab.server.keys().len(), 3, "the queue and the counter of the turn");
    lab.cancel(&waiter);
    assert!(matches!(claim(&mut lab, &attempt(1, 1), &attempt(1, 2), 7), Ok(Claim::Accepted(7, Some(_)))));
}

#[test]
fn the_turn_is_taken_although_another_hold_has_the_vote() {
    let mut lab = lab();
    let (vote, turn) = (attempt(1, 1), attempt(1, 2));
    claim(&mut lab, &vote, &turn, 7).unwrap();
    lab.release(&turn);
    let next = [attempt(2, 1), attempt(2, 2)];
    assert!(matches!(claim(&mut lab, &next[0], &next[1], 9), Ok(Claim::Busy(Some(_)))));
    assert_eq!(holders(&mut lab), [[vote.id], [next[1].id.clone()]]);
}

#[test]
fn a_smaller_proposal_takes_the_turn_and_the_lock() {
    let mut lab = lab();
    let (vote, turn) = (attempt(1, 1), attempt(1, 2));
    claim(&mut lab, &vote, &turn, 7).unwrap();
    leave(&mut lab, &vote, &turn).unwrap();
    let next = [attempt(2, 1), attempt(2, 2)];
    assert!(matches!(claim(&mut lab, &next[0], &next[1], 6), Ok(Claim::Refused(7, Some(_)))));
    assert_eq!(holders(&mut lab), [[next[0].id.clone()], [next[1].id.clone()]]);
}

#[test]
fn a_late_claim_changes_nothing() {
    let mut lab = lab();
    let late = attempt(1, 1).not_after(lab.now() - 1);
    let turn = attempt(1, 2);
    assert_eq!(claim(&mut lab, &late, &turn, 7), Ok(Claim::Stale));
    assert_eq!(lab.server.keys(), [""; 0]);
    claim(&mut lab, &attempt(1, 1), &turn, 7).unwrap();
    assert!(matches!(claim(&mut lab, &late, &turn, 7), Ok(Claim::Accepted(7, Some(_)))), "a copy finds both");
    // The vote was cancelled, and the turn was not yet.
    lab.raw(&["DEL", votes().main()]);
    assert_eq!(claim(&mut lab, &late, &turn, 7), Ok(Claim::Stale));
    assert_eq!(holders(&mut lab)[0], [""; 0]);
}

#[test]
fn a_second_copy_finds_the_turn_and_prolongs_it() {
    let mut lab = lab();
    let (vote, turn) = (attempt(1, 1), attempt(1, 2));
    let (first, second) = lab.twice(5000, |lab| claim(lab, &vote, &turn, 7));
    assert_eq!(first, second);
    assert!(lab.ttl(0) > LEASE as i64 - 3000, "its lease counts from the second copy");
    lab.renew(&[(&turns().keys()[0], &turn.id, 3 * LEASE)]);
    claim(&mut lab, &vote, &turn, 7).unwrap();
    assert!(lab.ttl(0) > 2 * LEASE as i64, "a lease that is longer is not shortened");
}

#[test]
fn an_attempt_that_has_the_vote_and_has_lost_the_turn_keeps_the_vote() {
    let mut lab = lab();
    let (vote, turn) = (attempt(1, 1), attempt(1, 2));
    claim(&mut lab, &vote, &turn, 7).unwrap();
    lab.release(&turn);
    lab.acquire(&attempt(3, 1)).token();
    assert_eq!(claim(&mut lab, &vote, &turn, 7), Ok(Claim::Accepted(7, None)), "the caller has to cancel it");
}

#[test]
fn a_turn_that_somebody_waits_for_is_left() {
    let mut lab = lab();
    let (vote, turn, waiter) = (attempt(1, 1), attempt(1, 2), attempt(4, 1));
    claim(&mut lab, &vote, &turn, 7).unwrap();
    lab.acquire(&waiter).queued();
    assert_eq!(leave(&mut lab, &vote, &turn), Ok((true, true)));
    assert_eq!(holders(&mut lab), [vec![], vec![turn.id.clone()]]);
    assert_eq!(leave(&mut lab, &vote, &turn), Ok((false, true)), "a second copy");
    lab.cancel(&waiter);
    assert_eq!(leave(&mut lab, &vote, &turn), Ok((false, false)));
    assert_eq!(holders(&mut lab), [[""; 0]; 2]);
    // The turn of another one stays.
    lab.acquire(&attempt(3, 1)).token();
    assert_eq!(leave(&mut lab, &vote, &turn), Ok((false, false)));
    lab.assert_holder(&attempt(3, 1));
}

#[test]
fn keys_of_a_wrong_type_are_errors_before_the_first_write() {
    for key in [votes().keys()[0].clone(), votes().keys()[3].clone(), turns().keys()[0].clone()] {
        let mut lab = lab();
        lab.set_wrong(&key);
        assert!(
            claim(&mut lab, &attempt(1, 1), &attempt(1, 2), 7) == Err("WRONGTYPE".to_owned())
                || key == turns().keys()[0]
        );
        assert_eq!(lab.server.keys(), [&*key]);
    }
    let mut lab = lab();
    claim(&mut lab, &attempt(1, 1), &attempt(1, 2), 7).unwrap();
    lab.set_wrong(&turns().keys()[0]);
    assert_eq!(leave(&mut lab, &attempt(1, 1), &attempt(1, 2)), Err("WRONGTYPE".to_owned()));
    let held: Vec<String> = redis::from_redis_value(lab.raw(&["HKEYS", votes().main()])).unwrap();
    assert_eq!(held, [attempt(1, 1).id], "the next request releases it");
}
