use std::time::Duration;

use super::*;
use crate::context::tests::finish;
use crate::hold::quorum::Ends;
use crate::red_lock::masters::tests::{SECOND, Three};
use crate::red_lock::quorum_task::tests::task;

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
    let told = |had, (ended, gone)| {
        let told = outcome(&three.masters, &task(&three, SECOND).quorum().hold, Released { had, ended, gone });
        told.map_err(|error| (error.kind(), error.name().map(str::to_owned)))
    };
    let name = || Some("n".to_owned());
    assert_eq!([told(3, (3, 0)), told(3, (2, 0)), told(3, (3, 1)), told(2, (2, 0))], [(); 4].map(Ok));
    assert_eq!(told(3, (1, 0)), Err((ErrorKind::Unavailable, name())), "it goes on in the background");
    let lost = [told(3, (3, 2)), told(3, (3, 3)), told(2, (2, 1))];
    assert_eq!(lost, [(); 3].map(|()| Err((ErrorKind::Lost, name()))));
    let released = Released { had: 3, ended: 3, gone: 0 };
    let told = outcome(&three.masters, &task(&three, Duration::ZERO).quorum().hold, released);
    assert_eq!(told.unwrap_err().kind(), ErrorKind::Lost, "its time was over");
}

/// The task is dropped with its runtime.
#[test]
fn a_release_after_the_end_of_the_runtime_is_refused() {
    let three = Three::durable();
    let task = task(&three, SECOND);
    let quorum = task.quorum().clone();
    assert_eq!(three.masters.stats().held, 1);
    drop(task);
    assert_eq!((three.masters.stats().held, quorum.hold.loss(three.masters.now())), (0, Some(Loss::Closed)));
    let error = finish(quorum.release()).unwrap_err();
    assert_eq!((error.kind(), error.name()), (ErrorKind::Lost, Some("n")));
}

/// It goes on in a task of its own, also if the task of the hold is gone.
#[test]
fn a_release_that_is_dropped_goes_on() {
    let three = Three::durable();
    let task = task(&three, SECOND);
    let quorum = task.quorum().clone();
    let release = quorum.clone().release();
    assert!(quorum.is_ending() && quorum.take_rest().is_none());
    drop(task);
    assert_eq!(three.masters.stats().held, 1, "the release has it");
    three.setups[0].executor.take_tasks();
    drop(release);
    let mut left = three.setups[0].executor.take_tasks();
    assert_eq!((left.len(), three.masters.stats().held), (1, 1), "a task has it");
    finish(left.remove(0));
    assert_eq!(three.masters.stats().held, 0);
}

/// Nobody can confirm a release any more if fewer than a majority of the clients are open.
#[test]
fn too_few_answers_mean_that_the_clients_are_closed_or_that_masters_are_silent() {
    for (closed, kind) in [(0, ErrorKind::Unavailable), (1, ErrorKind::Unavailable), (2, ErrorKind::Closed)] {
        let three = Three::durable();
        let task = task(&three, SECOND);
        three.setups[..closed].iter().for_each(|setup| setup.context.engine.close(three.masters.now()));
        let told = outcome(&three.masters, &task.quorum().hold, Released { had: 3, ended: 1, gone: 0 });
        assert_eq!(told.unwrap_err().kind(), kind, "{closed}");
    }
}
