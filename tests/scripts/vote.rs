//! `lock_vote` and `lock_view`: every reply, late copies, half states, and what the scripts of the lock do with a vote.

use bowline::wire;

use crate::lab::{Attempt, LEASE, Lab, Words, attempt};

/// The reply, and the server's word on its process.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Vote {
    Accepted(u64),
    Refused(u64),
    Busy(i64),
    Stale,
    Other(String),
}

fn resource() -> wire::Resource {
    wire::Resource::vote("p", "n").unwrap()
}

/// A lab whose keys are those of a vote: lock, queue, tickets, fence.
fn lab() -> Lab {
    let mut lab = Lab::new();
    lab.keys = resource().keys();
    lab
}

/// The hold that asks for votes.
fn owner(n: u64) -> Attempt {
    attempt(9, n)
}

fn cast(lab: &mut Lab, attempt: &Attempt, proposal: u64, owner: &Attempt) -> Result<Vote, String> {
    cast_as(lab, attempt, proposal, owner, false, "")
}

/// A vote for a hold that a majority has accepted before.
fn cast_again(lab: &mut Lab, attempt: &Attempt, proposal: u64, owner: &Attempt) -> Vote {
    cast_as(lab, attempt, proposal, owner, true, "").unwrap()
}

fn cast_as(
    lab: &mut Lab,
    attempt: &Attempt,
    proposal: u64,
    owner: &Attempt,
    granted: bool,
    set: &str,
) -> Result<Vote, String> {
    let sent = resource().cast(attempt.wire(), proposal, owner.wire(), granted, set);
    let keys: Vec<String> = sent.keys().into_iter().map(str::to_owned).collect();
    lab.run("lock_vote", &keys, &sent.words(), false, |words| {
        let word = words.word();
        let vote = vote_in(&word, words);
        process(words);
        vote
    })
}

fn vote_in(word: &str, words: &mut Words) -> Vote {
    match word {
        "ACCEPTED" => Vote::Accepted(words.token()),
        "REFUSED" => Vote::Refused(words.token()),
        "BUSY" => Vote::Busy(words.next()),
        "STALE" => {
            assert_eq!(words.next::<i64>(), 0);
            Vote::Stale
        }
        "OTHER" => Vote::Other(words.word()),
        other => panic!("{other}"),
    }
}

/// The word of the server on its process. Returns when it was last saved.
fn process(words: &mut Words) -> i64 {
    assert_eq!(words.word().len(), 40, "a run id");
    assert!(words.next::<i64>() < 600, "the server has just started");
    let saved = words.next();
    assert!(saved > 1_600_000_000, "a time in seconds");
    saved
}

/// What a look says of the lock: the rest of its lease. `None`: it is free.
#[track_caller]
fn look(lab: &mut Lab) -> Option<i64> {
    let sent = resource().view();
    let keys: Vec<String> = sent.keys().into_iter().map(str::to_owned).collect();
    let looked = lab.run("lock_view", &keys, &sent.words(), false, |words| {
        let (word, left) = (words.word(), words.next::<i64>());
        process(words);
        assert!(word == "BUSY" || (word == "FREE" && left == 0), "{word} {left}");
        (word == "BUSY").then_some(left)
    });
    looked.unwrap()
}

#[track_caller]
fn vote(lab: &mut Lab, attempt: &Attempt, proposal: u64) -> Vote {
    cast(lab, attempt, proposal, &owner(proposal)).unwrap()
}

#[test]
fn a_free_lock_is_taken_and_a_larger_token_accepted() {
    let mut lab = lab();
    let a = attempt(1, 1);
    assert_eq!(vote(&mut lab, &a, 7), Vote::Accepted(7));
    let inspected = lab.inspect();
    assert_eq!((inspected.holder, &*inspected.token), (a.id.clone(), "7"));
    assert!((LEASE as i64 - 5000..=LEASE as i64).contains(&lab.ttl(0)));
    assert!((3_890_000..=3_900_000).contains(&lab.ttl(3)), "the counter lives for 65 minutes");
    let keys = lab.keys.clone();
    assert_eq!(lab.server.keys(), [&*keys[0], &*keys[3]]);
    let long = attempt(1, 2).lease(86_400_000);
    lab.del(0);
    assert_eq!(vote(&mut lab, &long, 8), Vote::Accepted(8));
    assert!(lab.ttl(3) > 172_000_000, "the counter lives for two leases");
}

#[test]
fn a_token_that_is_not_larger_is_refused_and_the_lock_taken_all_the_same() {
    let mut lab = lab();
    assert_eq!(vote(&mut lab, &attempt(1, 1), 7), Vote::Accepted(7));
    for (n, proposal) in [(2, 6), (3, 7)] {
        lab.expire_hold();
        let late = attempt(2, n);
        assert_eq!(cast(&mut lab, &late, proposal, &owner(100 + n)), Ok(Vote::Refused(7)), "{proposal}");
        let inspected = lab.inspect();
        assert_eq!((inspected.holder, &*inspected.token), (late.id.clone(), "0"), "it has the lock, and no token");
        // The request of the second round.
        assert_eq!(cast(&mut lab, &late, 8 + n, &owner(100 + n)), Ok(Vote::Accepted(8 + n)));
        assert_eq!(lab.inspect().token, (8 + n).to_string());
        lab.raw(&["SET", &resource().keys()[3], &format!("7 {}", owner(7).id), "PX", "60000"]);
    }
}

/// The counter of a hold with a long lease must outlive it.
#[test]
fn a_refused_proposal_leaves_the_counter_and_its_time() {
    let mut lab = lab();
    assert_eq!(vote(&mut lab, &attempt(1, 1).lease(86_400_000), 7), Vote::Accepted(7));
    let before = counter(&mut lab);
    lab.expire_hold();
    assert_eq!(vote(&mut lab, &attempt(2, 1), 6), Vote::Refused(7));
    assert_eq!(counter(&mut lab), before);
    assert!(lab.ttl(3) > 172_000_000, "{}", lab.ttl(3));
}

#[test]
fn a_hold_may_propose_its_own_token_again() {
    let mut lab = lab();
    let mine = owner(1);
    assert_eq!(cast(&mut lab, &attempt(1, 1), 7, &mine), Ok(Vote::Accepted(7)));
    lab.expire_hold();
    assert_eq!(cast(&mut lab, &attempt(1, 2), 7, &mine), Ok(Vote::Accepted(7)), "its vote was gone");
    lab.expire_hold();
    assert_eq!(cast(&mut lab, &attempt(1, 3), 6, &mine), Ok(Vote::Refused(7)));
    lab.expire_hold();
    assert_eq!(cast(&mut lab, &attempt(2, 1), 8, &owner(2)), Ok(Vote::Accepted(8)));
    lab.expire_hold();
    assert_eq!(cast(&mut lab, &attempt(1, 4), 7, &mine), Ok(Vote::Refused(8)), "another hold came after it");
}

#[test]
fn a_granted_hold_has_its_vote_back_whatever_the_counter_is() {
    let mut lab = lab();
    let (mine, fence) = (owner(1), lab.keys[3].clone());
    let counter = |lab: &mut Lab| redis::from_redis_value::<String>(lab.raw(&["GET", &fence])).unwrap();
    // A master that has lost everything.
    assert_eq!(cast_again(&mut lab, &attempt(1, 1), 7, &mine), Vote::Accepted(7));
    assert_eq!(counter(&mut lab), format!("7 {}", mine.id));
    for (n, seen) in [(2, 7), (3, 8), (4, 5_000_000_000_000_000)] {
        lab.expire_hold();
        lab.raw(&["SET", &fence, &format!("{seen} {}", owner(2).id), "PX", "60000"]);
        let again = attempt(1, n);
        assert_eq!(cast_again(&mut lab, &again, 7, &mine), Vote::Accepted(7), "{seen}");
        let inspected = lab.inspect();
        assert_eq!((inspected.holder, &*inspected.token), (again.id.clone(), "7"));
        assert_eq!(counter(&mut lab), format!("{seen} {}", owner(2).id), "later holds have larger tokens than this");
        assert_eq!(cast_again(&mut lab, &again, 7, &mine), Vote::Accepted(7), "a second copy");
        lab.expire_hold();
        assert_eq!(cast(&mut lab, &attempt(2, n), 7, &owner(3)), Ok(Vote::Refused(seen)));
    }
    let Vote::Busy(_) = cast_again(&mut lab, &attempt(1, 9), 7, &mine) else { panic!("another hold has the lock") };
    lab.expire_hold();
    let late = attempt(1, 10).not_after(lab.now() - 1);
    assert_eq!(cast_again(&mut lab, &late, 7, &mine), Vote::Stale);
}

#[test]
fn a_look_tells_who_is_in_the_way_and_changes_nothing() {
    let mut lab = lab();
    assert_eq!(look(&mut lab), None);
    assert_eq!(lab.server.keys(), [""; 0]);
    vote(&mut lab, &attempt(1, 1), 7);
    let before = lab.inspect();
    let left = look(&mut lab).expect("it is held");
    assert!((1..=LEASE as i64).contains(&left), "{left}");
    let after = lab.inspect();
    assert_eq!((before.holder, before.token), (after.holder, after.token));
    lab.expire_hold();
    assert_eq!(look(&mut lab), None);
}

#[test]
fn another_hold_is_in_the_way_until_its_lease_ends() {
    let mut lab = lab();
    let a = attempt(1, 1);
    vote(&mut lab, &a, 7);
    let Vote::Busy(left) = vote(&mut lab, &attempt(2, 1), 9) else { panic!("it is held") };
    assert!((1..=LEASE as i64).contains(&left));
    let late = vote(&mut lab, &attempt(2, 2).not_after(1), 9);
    assert!(matches!(late, Vote::Busy(_)), "{late:?}");
    lab.assert_holder(&a);
    assert_eq!(vote(&mut lab, &a, 7), Vote::Accepted(7), "a busy reply changed no counter");
}

#[test]
fn a_late_request_changes_nothing() {
    let mut lab = lab();
    let late = attempt(1, 1).not_after(lab.now() - 1);
    assert_eq!(vote(&mut lab, &late, 7), Vote::Stale);
    assert_eq!(lab.server.keys(), [""; 0]);
    let in_time = late.clone().not_after(lab.now() + 60_000);
    assert_eq!(vote(&mut lab, &in_time, 7), Vote::Accepted(7));
    assert_eq!(vote(&mut lab, &late, 7), Vote::Accepted(7), "a copy finds its hold");
}

/// A vote of a program that knows this set of masters.
#[track_caller]
fn vote_of(lab: &mut Lab, attempt: &Attempt, proposal: u64, set: &str) -> Vote {
    cast_as(lab, attempt, proposal, &owner(proposal), false, set).unwrap()
}

fn counter(lab: &mut Lab) -> String {
    let fence = lab.keys[3].clone();
    redis::from_redis_value::<String>(lab.raw(&["GET", &fence])).unwrap()
}

#[test]
fn sets_of_which_majorities_need_not_share_a_master_are_told_apart() {
    for (set, others) in [
        ("s/5/3", &["s/5/4", "s/5/5", "s/4/3", "s/6/3", "s/6/5", "s/7/4", "s/7/3", "s/3/4", "t/5/3", "t/6/4", "s"][..]),
        ("s/5/4", &["s/5/3", "s/4/4", "s/6/4", "s/7/5", "s/50/5"]),
        ("a/1/5/5", &["a/1/5/4", "a/2/5/5", "a/1/6/5", "1/5/5"]),
    ] {
        for other in others {
            let mut lab = lab();
            let a = attempt(1, 1);
            assert_eq!(vote_of(&mut lab, &a, 7, set), Vote::Accepted(7));
            let before = counter(&mut lab);
            // While it is held, and after its release until the lease would be over.
            for n in [1, 2] {
                assert_eq!(vote_of(&mut lab, &attempt(2, n), 9, other), Vote::Other(set.to_owned()), "{other}");
                assert_eq!(counter(&mut lab), before, "{other}");
                lab.release(&a);
            }
            lab.assert_free();
        }
    }
}

#[test]
fn the_versions_before_and_after_with_one_master_more_or_less_wait_for_each_other() {
    for (set, next) in
        [("s/5/3", "s/6/4"), ("s/6/4", "s/5/3"), ("s/6/4", "s/7/5"), ("s/6/4", "s/7/3"), ("s/5/3", "s/4/4")]
    {
        let mut lab = lab();
        let (a, b) = (attempt(1, 1), attempt(2, 1));
        assert_eq!(vote_of(&mut lab, &a, 7, set), Vote::Accepted(7));
        assert!(matches!(vote_of(&mut lab, &b, 9, next), Vote::Busy(1..)), "{set} {next}");
        lab.release(&a);
        assert_eq!(vote_of(&mut lab, &b, 9, next), Vote::Accepted(9), "{set} {next}");
        assert_eq!(
            vote_of(&mut lab, &a, 10, "s/9/3"),
            Vote::Other(next.to_owned()),
            "it is the last vote that is remembered"
        );
    }
}

#[test]
fn a_set_is_remembered_for_the_lease_of_its_last_vote_or_while_that_is_renewed() {
    let mut lab = lab();
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    vote_of(&mut lab, &a, 7, "s/1/3");
    let ends: u64 = counter(&mut lab).rsplit(' ').next().unwrap().parse().unwrap();
    let now = lab.now();
    assert!((now + LEASE - 5000..=now + LEASE).contains(&ends), "{ends} {now}");
    let fence = lab.keys[3].clone();
    // A hold that has been renewed outlives the lease that it was given first.
    lab.raw(&["SET", &fence, &format!("7 {} s/1/3 1", owner(7).id), "PX", "60000"]);
    assert_eq!(vote_of(&mut lab, &b, 9, "s/3/3"), Vote::Other("s/1/3".to_owned()));
    lab.release(&a);
    assert_eq!(vote_of(&mut lab, &b, 9, "s/3/3"), Vote::Accepted(9));
    assert!(counter(&mut lab).starts_with(&format!("9 {} s/3/3 ", owner(9).id)), "{}", counter(&mut lab));
}

#[test]
fn a_lock_that_is_taken_without_an_accepted_token_is_a_vote_of_its_set() {
    let mut lab = lab();
    vote_of(&mut lab, &attempt(3, 1), 20, "s/1/3");
    lab.release(&attempt(3, 1));
    let a = attempt(1, 1);
    assert_eq!(vote_of(&mut lab, &a, 7, "s/2/4"), Vote::Refused(20));
    assert!(counter(&mut lab).starts_with(&format!("20 {} s/2/4 ", owner(20).id)), "{}", counter(&mut lab));
    assert!((3_890_000..=3_900_000).contains(&lab.ttl(3)));
    assert_eq!(vote_of(&mut lab, &attempt(2, 1), 30, "s/3/4"), Vote::Other("s/2/4".to_owned()));
    // The second round.
    assert_eq!(vote_of(&mut lab, &a, 21, "s/2/4"), Vote::Accepted(21));
    assert!(counter(&mut lab).starts_with(&format!("21 {} s/2/4 ", owner(21).id)));
}

#[test]
fn programs_that_name_no_set_are_not_checked() {
    let mut lab = lab();
    let (a, b) = (attempt(1, 1), attempt(2, 1));
    vote_of(&mut lab, &a, 7, "s/1/3");
    assert!(matches!(vote_of(&mut lab, &b, 9, ""), Vote::Busy(1..)));
    lab.release(&a);
    assert_eq!(vote_of(&mut lab, &b, 9, ""), Vote::Accepted(9));
    assert_eq!(counter(&mut lab), format!("9 {}", owner(9).id), "the last vote is for no set");
    assert!(matches!(vote_of(&mut lab, &a, 10, "s/3/3"), Vote::Busy(1..)));
    lab.release(&b);
    // Without an accepted token, too.
    vote_of(&mut lab, &a, 20, "s/1/3");
    lab.release(&a);
    assert_eq!(vote_of(&mut lab, &b, 9, ""), Vote::Refused(20));
    assert_eq!(counter(&mut lab), format!("20 {}", owner(20).id));
}

#[test]
fn a_hold_that_asks_for_a_lost_vote_is_checked_as_well() {
    let mut lab = lab();
    vote_of(&mut lab, &attempt(1, 1), 7, "s/3/3");
    lab.release(&attempt(1, 1));
    let mine = owner(1);
    let mut again = |set| cast_as(&mut lab, &attempt(2, 1), 5, &mine, true, set).unwrap();
    assert_eq!(again("s/1/3"), Vote::Other("s/3/3".to_owned()));
    assert_eq!(again("s/2/4"), Vote::Accepted(5));
}

#[test]
fn a_second_copy_changes_nothing() {
    use crate::lab::Around as _;

    let mut lab = lab();
    vote(&mut lab, &attempt(3, 1), 20);
    lab.expire_hold();
    let a = attempt(1, 1);
    assert_eq!(lab.twice(5000, |lab| vote(lab, &a, 7)), (Vote::Refused(20), Vote::Refused(20)));
    assert_eq!(lab.twice(5000, |lab| vote(lab, &a, 21)), (Vote::Accepted(21), Vote::Accepted(21)));
    // A copy of the first round's request, after the second round.
    vote(&mut lab, &a, 7);
    let b = attempt(2, 1);
    let (first, second) = lab.twice(5000, |lab| vote(lab, &b, 30));
    assert!(matches!((&first, &second), (Vote::Busy(_), Vote::Busy(_))), "{first:?} {second:?}");
}

/// The network has kept it back until after the hold was extended.
#[test]
fn a_late_copy_of_a_vote_takes_nothing_from_the_hold() {
    let mut lab = lab();
    let key = lab.keys[0].clone();
    vote(&mut lab, &attempt(3, 1), 20);
    lab.expire_hold();
    let a = attempt(1, 1);
    assert_eq!(vote(&mut lab, &a, 7), Vote::Refused(20));
    assert_eq!(vote(&mut lab, &a, 21), Vote::Accepted(21));
    assert_eq!(lab.renew(&[(&key, &a.id, 3 * LEASE)]), [1]);
    let extended = format!("21 {}", 3 * LEASE);
    lab.raw(&["HSET", &key, &a.id, &extended]);
    // Of both rounds.
    for proposal in [7, 21] {
        vote(&mut lab, &a, proposal);
        assert!(lab.ttl(0) > 2 * LEASE as i64, "{proposal} shortens it");
        let stored = lab.raw(&["HGET", &key, &a.id]);
        assert_eq!(redis::from_redis_value::<String>(stored).unwrap(), extended, "{proposal}");
    }
    // A lease that is nearly over begins anew.
    lab.raw(&["PEXPIRE", &key, "1000"]);
    vote(&mut lab, &a, 22);
    assert!(lab.ttl(0) > LEASE as i64 / 2);
}

#[test]
fn the_scripts_of_the_lock_renew_release_and_cancel_a_vote() {
    let mut lab = lab();
    let key = lab.keys[0].clone();
    let a = attempt(1, 1);
    vote(&mut lab, &a, 7);
    lab.raw(&["PEXPIRE", &key, "1000"]);
    assert_eq!(lab.renew(&[(&key, &a.id, LEASE), (&key, &attempt(2, 1).id, LEASE)]), [1, 0]);
    assert!(lab.ttl(0) > 20_000);
    assert_eq!(lab.release(&attempt(2, 1)), crate::lab::NOT_HELD);
    assert_eq!(lab.release(&a), crate::lab::RELEASED);
    lab.assert_free();

    vote(&mut lab, &attempt(1, 2), 8);
    assert_eq!(lab.cancel(&attempt(1, 2)), crate::lab::CANCEL_RELEASED);
    assert_eq!(lab.cancel(&attempt(1, 2)), crate::lab::CANCEL_GONE);
    lab.assert_free();
    assert_eq!(lab.server.keys(), [&*lab.keys[3]], "only the counter stays");
}

#[test]
fn a_counter_out_of_range_or_of_another_writer_does_not_break_the_vote() {
    let mut lab = lab();
    let fence = lab.keys[3].clone();
    let junk = ["", "x", "7", "-7 a", "9007199254740993 a", "1e300 a", "99999999999999999999 a"];
    for (junk, set) in junk.iter().flat_map(|junk| [(junk, ""), (junk, "s/1/3")]) {
        lab.raw(&["SET", &fence, junk, "PX", "60000"]);
        lab.expire_hold();
        assert_eq!(vote_of(&mut lab, &attempt(1, 1), 7, set), Vote::Accepted(7), "{junk:?}");
    }
    for junk in ["5 a s", "5 a s/1/3", "5 a s/1/3 -7", "5 a s/1/3 x", "5 a  ", "5  s/1/3 1"] {
        lab.raw(&["SET", &fence, junk, "PX", "60000"]);
        lab.expire_hold();
        assert_eq!(vote_of(&mut lab, &attempt(1, 1), 7, "s/9/3"), Vote::Accepted(7), "{junk:?}");
    }
}

#[test]
fn keys_of_a_wrong_type_are_errors() {
    for key in [0, 3] {
        let mut lab = lab();
        let wrong = lab.keys[key].clone();
        lab.set_wrong(&wrong);
        assert_eq!(cast(&mut lab, &attempt(1, 1), 7, &owner(1)), Err("WRONGTYPE".to_owned()), "{wrong}");
    }
}

/// A vote by a caller that knows the process with that last save. Returns what the server says of its process.
fn cast_knowing(lab: &mut Lab, known: i64, n: u64) -> (String, i64, i64) {
    let known = known.try_into().unwrap();
    let sent = resource().cast_knowing(known, attempt(1, n).wire(), n, owner(n).wire(), false, "");
    let keys: Vec<String> = sent.keys().into_iter().map(str::to_owned).collect();
    let said = lab.run("lock_vote", &keys, &sent.words(), false, |words| {
        words.word();
        words.token();
        (words.word(), words.next(), words.next())
    });
    lab.expire_hold();
    said.unwrap()
}

/// Its last save identifies it: a server that starts counts that as a save.
#[test]
fn a_process_that_the_caller_knows_is_not_described_again() {
    let mut lab = lab();
    let (id, _, saved) = cast_knowing(&mut lab, 0, 1);
    assert_eq!(id.len(), 40);
    assert_eq!(cast_knowing(&mut lab, saved, 2).0, "=");
    for (n, known) in [(3, saved - 1), (4, saved + 1), (5, 0)] {
        assert_eq!(cast_knowing(&mut lab, known, n).0, id, "{known}");
    }
}

/// A server may not let the user see it, or not have the command.
#[test]
fn without_the_last_save_each_vote_describes_the_process() {
    let mut lab = lab();
    let (id, _, saved) = cast_knowing(&mut lab, 0, 1);
    lab.raw(&["ACL", "SETUSER", "default", "-lastsave"]);
    for (n, known) in [(2, saved), (3, 0)] {
        let (described, _, told) = cast_knowing(&mut lab, known, n);
        assert_eq!((described, told), (id.clone(), 0), "{known}");
    }
}
