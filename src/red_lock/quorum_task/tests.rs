use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::ready;

use super::*;
use crate::context::tests::Setup;
use crate::engine::lease::Hold;
use crate::error::ErrorKind;
use crate::hold::owner::{HoldOwner, HoldSource};
use crate::hold::quorum::Ends;
use crate::protocol::token::Token;
use crate::red_lock::count::{Validity, VoteAnswer};
use crate::red_lock::leaving::Rest;
use crate::red_lock::masters::tests::{SECOND, Three};
use crate::wakers::woken::Woken;

/// A hold without votes that lasts for this long, and its task, which is not run.
pub(in crate::red_lock) fn task(three: &Three, lasts: Duration) -> QuorumTask {
    let masters = &three.masters;
    let id = three.setups[0].context.engine.fresh().unwrap();
    let until = masters.now() + lasts;
    let hold = Hold::new(three.votes[0].clone(), id, 1, Token::new(7), 30 * SECOND, Term::Fixed, until);
    let slots = masters.all.iter().map(|_| Slot::default()).collect();
    let quorum = QuorumHold::new(masters.clone(), Arc::new(hold), slots, Rest::new(masters, None, None));
    QuorumTask { quorum, keys: three.votes.clone() }
}

impl QuorumTask {
    pub(in crate::red_lock) fn quorum(&self) -> &Arc<QuorumHold> {
        &self.quorum
    }
}

#[test]
fn a_hold_that_is_dropped_ends_later() {
    let three = Three::durable();
    let task = task(&three, SECOND);
    assert!(!task.quorum.is_ending() && task.quorum.ended().now_or_never().is_none());
    task.quorum.release_later();
    assert!(task.quorum.is_ending() && task.quorum.ended().now_or_never().is_some());
}

/// The clients of a majority were closed, or only those of a minority.
#[test]
fn a_hold_ends_with_the_clients_of_its_votes() {
    let three = Three::durable();
    for (closed, loss) in [(1, None), (2, Some(Loss::Closed)), (3, Some(Loss::Closed))] {
        let task = task(&three, 60 * SECOND);
        let until = three.masters.now() + 30 * SECOND;
        let votes: Vec<Arc<Hold>> =
            three.setups.iter().zip(&three.votes).map(|(setup, keys)| vote(setup, keys, until)).collect();
        let lost = || three.masters.stats().lost;
        let (before, over) = (lost(), task.quorum.hold.over());
        for (n, (vote, setup)) in votes.iter().zip(&three.setups).enumerate().rev() {
            // The client of the first vote is closed before the hold has the vote.
            assert!(n > 0 || vote.set_lost(Loss::Closed));
            let vote = HoldOwner::new(HoldSource::new(setup.context.clone()), vote.clone(), None);
            assert!(task.quorum.regain(n, Slot::voted(vote, None)).is_ok());
        }
        votes[1..closed].iter().for_each(|vote| assert!(vote.set_lost(Loss::Closed)));
        let seen = || task.quorum.hold.loss(three.masters.now());
        assert_eq!(seen(), loss, "{closed}: it ends before the clients can give the votes back");
        task.count();
        assert_eq!((seen(), lost() - before), (loss, u64::from(loss.is_some())), "{closed}");
        task.count();
        assert_eq!(lost() - before, u64::from(loss.is_some()), "it is counted once");
        assert_eq!(over.now_or_never().flatten(), loss, "those who wait are told");
    }
}

/// A vote that is lost for another reason is not given back early, so the hold may go on until its deadline.
#[test]
fn a_hold_does_not_end_at_once_with_other_votes() {
    let three = Three::durable();
    let task = task(&three, 60 * SECOND);
    let until = three.masters.now() + 30 * SECOND;
    for (n, (setup, keys)) in three.setups.iter().zip(&three.votes).enumerate() {
        let vote = vote(setup, keys, until);
        let owner = HoldOwner::new(HoldSource::new(setup.context.clone()), vote.clone(), None);
        assert!(task.quorum.regain(n, Slot::voted(owner, None)).is_ok());
        vote.set_lost(Loss::Gone);
    }
    assert_eq!(task.quorum.hold.loss(three.masters.now()), None);
}

fn vote(setup: &Setup, keys: &Arc<Keys>, until: Instant) -> Arc<Hold> {
    let id = setup.context.engine.fresh().unwrap();
    Arc::new(Hold::new(keys.clone(), id, 1, Token::new(7), 30 * SECOND, Term::Fixed, until))
}

/// A release takes the votes when it begins. It does not see a vote that is stored later.
#[test]
fn a_vote_that_comes_after_the_release_is_given_up() {
    for is_released in [false, true] {
        let three = Three::durable();
        let (now, masters) = (three.masters.now(), &three.masters);
        let task = task(&three, 60 * SECOND);
        let ballot = masters.ballots(&three.votes, 0..1, 30 * SECOND).pop().expect("the master serves the name");
        let validity = Validity { until: now + 30 * SECOND, from: None };
        let cast = Cast { ballot, answer: VoteAnswer::Accepted(validity), sent: now, lease: 30 * SECOND };
        let release = is_released.then(|| task.quorum.clone().release());
        task.take(cast);
        assert_eq!(lock(&task.quorum.slots)[0].vote.is_none(), is_released);
        assert_eq!(three.setups[0].context.engine.stats().held, u64::from(!is_released), "it is renewed");
        drop(release);
    }
}

/// The lease is over, and the task of the hold has not run since.
#[test]
fn a_loss_that_the_guard_notices_first_is_counted_once() {
    for is_dropped in [false, true] {
        let three = Three::durable();
        let task = task(&three, Duration::ZERO);
        if is_dropped {
            task.quorum.release_later();
        } else {
            let released = task.quorum.clone().release().now_or_never().unwrap();
            assert_eq!(released.unwrap_err().kind(), ErrorKind::Lost);
        }
        assert_eq!(three.masters.stats().lost, 1, "{is_dropped}");
        task.count();
        assert_eq!(three.masters.stats().lost, 1, "{is_dropped}");
    }
}

/// A release ends the hold, or the drop of its guard, or the end of the runtime.
#[test]
fn a_loss_is_told_whoever_ends_the_hold() {
    for ends in ["release", "drop", "shutdown"] {
        let three = Three::durable();
        let task = task(&three, 60 * SECOND);
        let until = three.masters.now() + 30 * SECOND;
        let votes: Vec<Arc<Hold>> =
            three.setups.iter().zip(&three.votes).map(|(setup, keys)| vote(setup, keys, until)).collect();
        for (n, (vote, setup)) in votes.iter().zip(&three.setups).enumerate() {
            let vote = HoldOwner::new(HoldSource::new(setup.context.clone()), vote.clone(), None);
            assert!(task.quorum.regain(n, Slot::voted(vote, None)).is_ok());
        }
        let (quorum, before) = (task.quorum.clone(), three.masters.stats().lost);
        let woken = Arc::<Woken>::default();
        let mut waits = pin!(quorum.hold.lost());
        assert!(waits.as_mut().poll(&mut Context::from_waker(&woken.waker())).is_pending());
        votes[1..].iter().for_each(|vote| assert!(vote.set_lost(Loss::Closed)));
        let end = match ends {
            "release" => quorum.clone().release().map(drop).boxed(),
            "drop" => {
                quorum.release_later();
                let mut end = task.run(None).boxed();
                assert!(end.poll_unpin(&mut Context::from_waker(Waker::noop())).is_pending());
                end
            }
            _ => {
                drop(task);
                ready(()).boxed()
            }
        };
        assert_eq!(woken.count(), 1, "{ends}");
        assert_eq!(three.masters.stats().lost - before, 1, "{ends}");
        assert_eq!(waits.now_or_never(), Some(Loss::Closed));
        drop(end);
    }
}
