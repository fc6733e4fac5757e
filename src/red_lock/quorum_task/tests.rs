use std::time::{Duration, Instant};

use futures::FutureExt;

use super::*;
use crate::context::tests::{Setup, finish};
use crate::engine::lease::Hold;
use crate::hold::owner::HoldSource;
use crate::hold::quorum::Ends;
use crate::protocol::token::Token;
use crate::red_lock::masters::tests::{SECOND, Three};
use crate::red_lock::quorum_hold::Slot;

/// A hold without votes that lasts for this long, and its task, which is not run.
fn task(three: &Three, lasts: Duration) -> QuorumTask {
    let masters = &three.masters;
    let id = three.setups[0].context.engine.fresh().unwrap();
    let until = masters.now() + lasts;
    let hold = Hold::new(three.votes[0].clone(), id, 1, Token::new(7), 30 * SECOND, Term::Fixed, until);
    let slots = masters.all.iter().map(|_| Slot::default()).collect();
    let quorum = QuorumHold::new(masters.clone(), Arc::new(hold), slots);
    QuorumTask { quorum: Arc::new(quorum), keys: three.votes.clone(), turn: None, own: None }
}

#[test]
fn a_vote_that_was_gone_is_released_too() {
    let mut count = Released::default();
    count.add(&Ok(()));
    for (kind, ended, gone) in [(ErrorKind::Unavailable, 1, 0), (ErrorKind::Lost, 2, 1), (ErrorKind::Lost, 3, 2)] {
        count.add(&Err(Error::new(kind, "release")));
        assert_eq!((count.ended, count.gone), (ended, gone), "{kind:?}");
    }
}

#[test]
fn what_the_caller_of_a_release_is_told() {
    let three = Three::durable();
    let outcome = |ended, gone| {
        let told = task(&three, SECOND).outcome(Released { ended, gone });
        told.map_err(|error| (error.kind(), error.name().map(str::to_owned)))
    };
    let name = || Some("n".to_owned());
    assert_eq!([outcome(3, 0), outcome(2, 0), outcome(3, 1)], [Ok(()), Ok(()), Ok(())]);
    assert_eq!(outcome(1, 0), Err((ErrorKind::Unavailable, name())), "it goes on in the background");
    assert_eq!([outcome(3, 2), outcome(3, 3)], [(); 2].map(|()| Err((ErrorKind::Lost, name()))));
    let told = task(&three, Duration::ZERO).outcome(Released { ended: 3, gone: 0 });
    assert_eq!(told.unwrap_err().kind(), ErrorKind::Lost, "its time was over");
}

/// The task is dropped with its runtime.
#[test]
fn a_release_ends_with_the_task_of_the_hold() {
    let three = Three::durable();
    let task = task(&three, SECOND);
    let quorum = task.quorum.clone();
    assert_eq!(three.masters.stats().held, 1);
    let mut release = quorum.release();
    assert!(quorum.is_ending());
    assert!(release.as_mut().now_or_never().is_none());
    drop(task);
    let error = finish(release).unwrap_err();
    assert_eq!((error.kind(), error.name()), (ErrorKind::Closed, Some("n")));
    assert_eq!(three.masters.stats().held, 0);
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
        for ((slot, vote), setup) in lock(&task.quorum.slots).iter_mut().zip(&votes).zip(&three.setups) {
            *slot = Slot::voted(HoldOwner::new(HoldSource::new(setup.context.clone()), vote.clone(), None), None);
        }
        votes[..closed].iter().for_each(|vote| assert!(vote.lose(Loss::Closed)));
        task.count();
        assert_eq!(task.quorum.hold.loss(three.masters.now()), loss, "{closed}");
    }
}

fn vote(setup: &Setup, keys: &Arc<Keys>, until: Instant) -> Arc<Hold> {
    let id = setup.context.engine.fresh().unwrap();
    Arc::new(Hold::new(keys.clone(), id, 1, Token::new(7), 30 * SECOND, Term::Fixed, until))
}
