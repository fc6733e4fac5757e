//! How attempts and holds end, and that they leave nothing behind.

use std::task::Waker;

use super::*;
use crate::protocol::message::Message;
use crate::wakers::woken::Woken;

fn left(cleanups: &[Cleanup]) -> Vec<(&str, u64, bool)> {
    cleanups.iter().map(|c| (&*c.keys.name, c.ticket.id.n, c.from_tail)).collect()
}

#[test]
fn nothing_is_left_of_an_attempt() {
    let a = keys("a");
    let endings: [fn(&Setup, AttemptId); 7] = [
        |setup, id| setup.engine.forget(id),
        |setup, id| setup.engine.abandon(id, setup.now),
        |setup, id| setup.engine.drop_pending(id, None, setup.now),
        |setup, id| setup.engine.release(&setup.grant(id, true), setup.now),
        |setup, id| setup.engine.release_later(&setup.grant(id, false), setup.now),
        |setup, _| setup.engine.close(setup.now),
        |setup, _| drop(setup.engine.die(setup.now)),
    ];
    for (n, ending) in endings.into_iter().enumerate() {
        for queued in [false, true] {
            let setup = setup();
            let id = setup.open(&a);
            if queued {
                setup.queue(id);
            }
            ending(&setup, id);
            println!("ending {n}, queued {queued}");
            setup.assert_empty();
        }
    }
}

#[test]
fn nothing_is_left_of_a_hold_that_is_lost() {
    let a = keys("a");
    type Lose = fn(&mut Setup, &Arc<Hold>);
    let losses: [(Loss, Lose); 5] = [
        (Loss::Expired, |setup, _| {
            setup.now += LEASE;
            let work = setup.engine.work(setup.now);
            assert_eq!(work.cleanups.len(), 1);
            setup.answer(&work);
        }),
        (Loss::Gone, |setup, hold| setup.engine.renewed(setup.now, setup.now, &[], std::slice::from_ref(hold))),
        (Loss::Revoked, |setup, hold| setup.engine.deliver(Message::Revoked { id: hold.id }, setup.now)),
        (Loss::Closed, |setup, _| setup.engine.close(setup.now)),
        (Loss::Closed, |setup, _| assert_eq!(setup.engine.die(setup.now).len(), 1)),
    ];
    for (loss, lose) in losses {
        let mut setup = setup();
        let hold = setup.holds(&a);
        lose(&mut setup, &hold);
        assert_eq!(hold.loss(setup.now), Some(loss));
        setup.assert_empty();
    }
}

/// Another thread may look before the waiters are woken: an extension, whose answer says that the hold is gone.
#[test]
fn a_hold_that_has_left_the_tables_is_not_valid() {
    let setup = setup();
    let (hold, now) = (setup.holds(&keys("a")), setup.now);
    let (woken, mut lost) = (Arc::new(Woken::default()), std::pin::pin!(hold.lost()));
    assert!(lost.as_mut().poll(&mut std::task::Context::from_waker(&woken.waker())).is_pending());
    let seen = setup.engine.change(|state| {
        state.hold_handler().set_renewed(now, now, &[], std::slice::from_ref(&hold));
        (hold.loss(now), woken.count())
    });
    assert_eq!(seen, (Some(Loss::Gone), 0), "foreign wakers run after the tables are unlocked");
    assert_eq!(woken.count(), 1);
}

/// The answer to its release says whether it was there.
#[test]
fn a_hold_that_is_being_released_is_not_lost_by_a_message() {
    let setup = setup();
    let hold = setup.holds(&keys("a"));
    hold.release(setup.now).unwrap();
    setup.engine.deliver(Message::Revoked { id: hold.id }, setup.now);
    assert_eq!((hold.loss(setup.now), setup.engine.stats().lost), (None, 0));
    setup.engine.count_loss(&hold, Loss::Gone);
    assert_eq!(setup.engine.stats().lost, 1);
}

/// A server that comes back may still have a hold that another server did not have.
#[test]
fn what_is_gone_or_revoked_is_cleaned_up_all_the_same() {
    let setup = setup();
    let holds = [setup.holds(&keys("a")), setup.holds(&keys("b"))];
    setup.engine.renewed(setup.now, setup.now, &[], &holds[..1]);
    setup.engine.deliver(Message::Revoked { id: holds[1].id }, setup.now);
    let cleanups: Vec<_> = setup.engine.work(setup.now).cleanups.into_iter().map(|(_, cleanup)| cleanup).collect();
    assert_eq!(left(&cleanups), [("a", 1, false), ("b", 2, false)]);
}

#[test]
fn closing_cancels_from_the_ends_of_the_queue_inwards() {
    let mut setup = setup();
    let (a, b) = (keys("a"), keys("b"));
    let (_held, _alone) = (setup.holds(&a), setup.holds(&b));
    // Attempts 3 to 7 wait, in this order except for 4, which was queued last. Attempt 8 is not known to wait yet.
    let ids: Vec<_> = (0..5).map(|_| setup.open(&a)).collect();
    for n in [0, 2, 3, 4, 1] {
        setup.now += Duration::from_millis(1);
        setup.queue(ids[n]);
    }
    setup.open(&a);
    setup.now += Duration::from_secs(60);
    setup.engine.close(setup.now);
    let cleanups: Vec<_> = setup.engine.work(setup.now).cleanups.into_iter().map(|(_, cleanup)| cleanup).collect();
    let expected = [
        // Holds without local waiters are released first. The others come last, for waiters of other clients.
        ("b", 2, false),
        ("a", 3, false),
        ("a", 5, false),
        ("a", 6, false),
        ("a", 8, true),
        ("a", 4, true),
        ("a", 7, true),
        ("a", 1, false),
    ];
    assert_eq!(left(&cleanups), expected);
}

#[test]
fn the_end_of_the_runtime_leaves_a_list_of_all_that_is_left() {
    let setup = setup();
    let (a, b) = (keys("a"), keys("b"));
    let cancelled = [setup.waits(&a), setup.waits(&a)];
    setup.engine.abandon(cancelled[0], setup.now);
    assert_eq!(setup.engine.work(setup.now).cleanups.len(), 1, "under way");
    setup.engine.abandon(cancelled[1], setup.now);
    let released = setup.holds(&b);
    let ending = setup.engine.ending(&released, setup.now);
    setup.engine.release(&released, setup.now);
    let held = setup.holds(&b);
    setup.waits(&a);
    setup.open(&a);
    let all = setup.engine.die(setup.now);
    let expected = [("b", 3, false), ("a", 1, true), ("a", 2, true), ("b", 4, false), ("a", 5, false), ("a", 6, true)];
    assert_eq!(left(&all), expected);
    assert_eq!(held.loss(setup.now), Some(Loss::Closed));
    drop(ending);
    // A later call finds the engine closed.
    setup.engine.release_later(&held, setup.now);
    assert!(setup.engine.open(&a, 1, LEASE, setup.now).is_err());
    setup.assert_empty();
    assert!(setup.engine.die(setup.now).is_empty());
}

#[test]
fn nothing_is_left_when_nothing_was_there() {
    let setup = setup();
    setup.engine.release(&setup.holds(&keys("a")), setup.now);
    assert!(setup.engine.die(setup.now).is_empty());
}

/// Those in a cohort wait for the engine alone, perhaps on another runtime.
#[test]
fn the_end_of_the_runtime_wakes_all_who_wait() {
    let ends: [fn(&Setup); 2] = [|setup| drop(setup.engine.die(setup.now)), |setup| setup.engine.close(setup.now)];
    for end in ends {
        let setup = setup();
        let a = keys("a");
        let cohort = CohortId::of(&a, 1);
        let woken: Vec<_> = (0..4).map(|_| Arc::new(Woken::default())).collect();
        let wakers: Vec<Waker> = woken.iter().map(|woken| woken.waker()).collect();
        let members: Vec<_> = (0..4).map(|_| setup.engine.join_asleep(&cohort, 0).ok().unwrap()).collect();
        let handoff = setup.engine.open_in_cohort(&a, members[0], (1, false), LEASE, setup.now).unwrap();
        let poll = |n: usize| {
            let mut context = Context::from_waker(&wakers[n]);
            match n {
                0 => setup.engine.poll_outcome(handoff.id, &mut context).map(|outcome| outcome == Outcome::Closed),
                n => setup.engine.poll_turn(&cohort, members[n], setup.now, &context).map(|turn| turn.is_err()),
            }
        };
        assert!((0..4).all(|n| poll(n).is_pending()));
        end(&setup);
        for (n, woken) in woken.iter().enumerate() {
            assert_eq!(woken.count(), 1, "{n}");
            assert_eq!(poll(n), Poll::Ready(true), "{n}");
        }
        members.iter().for_each(|member| setup.engine.leave(&cohort, *member, setup.now));
        setup.assert_empty();
    }
}

#[test]
fn closing_waits_for_what_is_being_released_or_changed() {
    let setup = setup();
    let hold = setup.holds(&keys("a"));
    let ending = setup.engine.ending(&hold, setup.now);
    let other = setup.engine.ending(&hold, setup.now);
    setup.engine.release(&hold, setup.now);
    setup.engine.close(setup.now);
    setup.engine.end(setup.now);
    let mut cleaned = std::pin::pin!(setup.engine.cleaned());
    let woken = Arc::new(Woken::default());
    let waker = woken.waker();
    let mut context = Context::from_waker(&waker);
    assert!(cleaned.as_mut().poll(&mut context).is_pending());
    drop(other);
    assert!(cleaned.as_mut().poll(&mut context).is_pending());
    assert!(!setup.engine.work(setup.now).ended);
    drop(ending);
    assert_eq!(woken.count(), 1);
    assert!(cleaned.as_mut().poll(&mut context).is_ready());
    assert!(setup.engine.work(setup.now).ended);
}
