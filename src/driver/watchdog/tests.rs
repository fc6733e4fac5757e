use std::sync::{Mutex, OnceLock};
use std::task::{Context, Waker};
use std::time::Instant;

use self::lab::{Answers, Calls, LEASE, Setup, Virtual, connected, fails, setup, setup_with, watchdog};
use super::*;
use crate::connection::{Call, ConnectionError, Notice, Reply};
use crate::engine::lease::{Loss, Term};
use crate::mutex::lock;
use crate::protocol::attempt_id::AttemptId;
use crate::protocol::key::Keys;
use crate::protocol::kind::Kind;
use crate::protocol::message::Message;
use crate::protocol::token::Token;
use crate::runtime::an_instant;
use crate::tuning::MOST_CALLS;

mod goodbye;
mod lab;
mod label;
mod replicas;

fn refusal() -> ConnectionError {
    ConnectionError::refused("LOADING Redis is loading the dataset in memory")
}

#[test]
fn a_clean_up_that_is_refused_is_not_repeated_without_pause() {
    for error in [refusal(), ConnectionError::Unreachable("no".to_owned()), ConnectionError::Unknown("no".to_owned())] {
        let mut setup = setup(error);
        setup.engine.abandon(setup.open(), setup.executor.now());
        setup.run(Duration::from_secs(1));
        assert!((3..=7).contains(&setup.called("lock_cancel")), "{}", setup.called("lock_cancel"));
        setup.run(Duration::from_secs(10));
        let later = setup.called("lock_cancel");
        assert!((10..=24).contains(&later), "{later}");
        // The lease of the hold ends.
        setup.run(LEASE);
        let all = setup.called("lock_cancel");
        setup.run(LEASE);
        assert_eq!(setup.called("lock_cancel"), all);
        assert!(setup.polls < all * 40, "{} polls", setup.polls);
    }
}

/// The clean-ups that fail may be for one node of a cluster that is down.
#[test]
fn clean_ups_that_fail_do_not_hold_up_others() {
    let mut setup = setup(ConnectionError::Unreachable("no".to_owned()));
    for _ in 0..MOST_CALLS {
        setup.engine.abandon(setup.open(), setup.executor.now());
    }
    setup.keys = Arc::new(Keys::new("p", Kind::Semaphore { limit: 1 }, "n").unwrap());
    setup.engine.abandon(setup.open(), setup.executor.now());
    setup.run(LEASE / 6);
    assert!(setup.called("permit_cancel") > 0);
}

#[test]
fn a_renewal_that_is_refused_is_not_repeated_without_pause() {
    let mut setup = setup(refusal());
    let hold = setup.engine.hold(
        setup.open(),
        1,
        Token::new(1),
        Term::Renewed,
        setup.executor.now() + LEASE,
        setup.executor.now(),
    );
    let hold = hold.unwrap();
    setup.run(Duration::from_secs(8));
    assert_eq!(setup.called("lock_renew"), 0);
    setup.run(Duration::from_secs(21));
    assert!((15..=35).contains(&setup.called("lock_renew")), "{}", setup.called("lock_renew"));
    assert!(hold.loss(setup.executor.now()).is_none());
    setup.run(Duration::from_secs(2));
    assert!((18..=60).contains(&setup.called("lock_renew")), "{}", setup.called("lock_renew"));
    assert_eq!(hold.loss(setup.executor.now()), Some(Loss::Expired));
    let calls = lock(&setup.calls).clone();
    let renewals: Vec<_> = calls.iter().filter(|(_, name, _)| *name == "lock_renew").collect();
    for (at, _, within) in &renewals {
        let left = (LEASE - at.saturating_duration_since(renewals[0].0)).as_secs_f64();
        let within = within.unwrap().as_secs_f64();
        assert!(within <= 3.0 && within <= (left / 2.0).max(0.11), "{within} with {left} left");
    }
    assert!(renewals.last().unwrap().2.unwrap() < Duration::from_secs(1), "with little left");
}

#[test]
fn heartbeats_that_are_refused_are_not_repeated_without_pause() {
    let mut setup = setup(refusal());
    let (id, now) = (setup.open(), setup.executor.now());
    let queued = crate::engine::attempt::Queued { sent: now, asked: 1, holder_left: None, call_again: false };
    setup.engine.queued(id, queued, now);
    setup.run(LEASE);
    assert!((8..=30).contains(&setup.called("lock_heartbeat")), "{}", setup.called("lock_heartbeat"));
}

/// The runtime may be shut down before it has polled the task once.
#[test]
fn a_task_that_is_dropped_unpolled_ends_everything() {
    let setup = setup(refusal());
    let (id, now) = (setup.open(), setup.executor.now());
    let hold = setup.engine.hold(id, 1, Token::new(1), Term::Renewed, now + LEASE, now).unwrap();
    drop(setup.task);
    assert!(setup.engine.is_closed());
    assert_eq!(hold.loss(now), Some(Loss::Closed));
}

#[test]
fn an_attempt_that_has_expired_is_not_cleaned_up() {
    for (left, calls) in [(Duration::from_nanos(1), 1), (Duration::ZERO, 0)] {
        let mut setup = setup(ConnectionError::Unreachable("no".to_owned()));
        setup.engine.abandon(setup.open(), setup.executor.now());
        *lock(&setup.executor.now) += LEASE - left;
        setup.run(Duration::ZERO);
        assert_eq!(setup.called("lock_cancel"), calls, "with {left:?} of its lease left");
    }
}

#[test]
fn a_clean_up_that_can_never_succeed_is_not_repeated() {
    let mut setup =
        setup(ConnectionError::refused("WRONGTYPE Operation against a key holding the wrong kind of value"));
    setup.engine.abandon(setup.open(), setup.executor.now());
    setup.run(LEASE);
    assert_eq!(setup.called("lock_cancel"), 1);
}

/// The server has another password or certificate for a moment.
#[test]
fn a_clean_up_is_repeated_while_the_login_is_refused() {
    for refusal in ["WRONGPASS invalid username-password pair", "NOAUTH Authentication required."] {
        for (is_connected, least) in [(true, 1), (false, 10)] {
            let answer = fails(ConnectionError::refused(refusal));
            let mut setup = connected("", answer, is_connected);
            setup.engine.abandon(setup.open(), setup.executor.now());
            setup.run(LEASE);
            let calls = setup.called("lock_cancel");
            assert!(calls >= least && (calls > 1) != is_connected, "{refusal}: {calls}, connected: {is_connected}");
        }
    }
}

/// The message comes from the new server, and the answer from the one that it replaces.
#[test]
fn a_hold_that_is_granted_during_its_clean_up_is_ended_again_unless_the_answer_takes_one_away() {
    for (word, calls) in [("CANCELLED", 2), ("GONE", 2), ("RELEASED", 1)] {
        let (mut setup, granted) = granted_during_a_clean_up("lock_cancel", word);
        granted.clean_up(&mut setup);
        assert_eq!(setup.called("lock_cancel"), calls, "{word}");
        assert_eq!(setup.called("lock_inspect"), calls - 1, "{word}");
    }
}

/// Its message only says how the wait has ended. The next wait at the name begins after the clean-up.
#[test]
fn a_wait_without_a_hold_that_ends_during_its_clean_up_is_cleaned_up_once() {
    for (kind, cancel, inspect) in [
        (Kind::Barrier { parties: 2, keep: 0 }, "barrier_cancel", "barrier_inspect"),
        (Kind::Latch, "latch_cancel", "latch_inspect"),
        (Kind::Watch { known: 0, leads: None }, "latch_cancel", "latch_inspect"),
    ] {
        let (mut setup, granted) = granted_during_a_clean_up(cancel, "GONE");
        setup.keys = Arc::new(Keys::new("p", kind, "n").unwrap());
        let id = granted.clean_up(&mut setup);
        assert_eq!(setup.called(cancel), 1);
        setup.engine.deliver(Message::Granted { id, token: Token::new(7), at: 1 }, setup.executor.now());
        setup.run(Duration::from_secs(1));
        assert_eq!(setup.called(cancel), 1, "the message comes once more");
        setup.engine.gap(setup.executor.now());
        setup.run(Duration::from_secs(1));
        assert_eq!((setup.called(cancel), setup.called(inspect)), (2, 0), "the server may be another one");
    }
}

/// The client's next wait at the name needs the server's answer. A client that has ended has no next wait.
#[test]
fn a_party_is_cleaned_up_for_longer_than_its_lease_until_its_client_ends() {
    let mut setup = setup(ConnectionError::Unreachable("no".to_owned()));
    setup.keys = Arc::new(Keys::new("p", Kind::Barrier { parties: 2, keep: 0 }, "n").unwrap());
    setup.engine.abandon(setup.open(), setup.executor.now());
    setup.run(2 * LEASE);
    let before = setup.called("barrier_cancel");
    setup.run(LEASE);
    assert!(setup.called("barrier_cancel") > before);
    setup.engine.end(setup.executor.now());
    *lock(&setup.executor.now) += LEASE;
    std::mem::take(&mut *lock(&setup.executor.timers)).into_iter().for_each(|(_, waker)| waker.wake());
    let mut context = Context::from_waker(Waker::noop());
    assert!((0..10).any(|_| setup.task.as_mut().poll(&mut context).is_ready()), "it does not end");
}

/// One node of a cluster is down, and the program waits at another barrier there again and again.
#[test]
fn parties_that_are_cleaned_up_for_long_do_not_hold_up_others() {
    let mut setup = setup(ConnectionError::Unreachable("no".to_owned()));
    for n in 0..10 * MOST_CALLS {
        let kind = Kind::Barrier { parties: 2, keep: 0 };
        setup.keys = Arc::new(Keys::new("p", kind, &n.to_string()).unwrap());
        setup.engine.abandon(setup.open(), setup.executor.now());
    }
    setup.run(2 * LEASE);
    let before = setup.called("barrier_cancel");
    setup.run(LEASE);
    assert!(setup.called("barrier_cancel") > before);
    setup.keys = Arc::new(Keys::new("p", Kind::Semaphore { limit: 1 }, "n").unwrap());
    setup.engine.abandon(setup.open(), setup.executor.now());
    setup.run(Duration::from_millis(1));
    assert!(setup.called("permit_cancel") > 0);
}

/// What is granted by a message while its clean-up is under way.
#[derive(Clone, Default)]
struct Granted(Arc<OnceLock<(Arc<Engine>, AttemptId, Instant)>>);

impl Granted {
    /// Cleans up an attempt.
    fn clean_up(self, setup: &mut Setup) -> AttemptId {
        let id = setup.open();
        self.0.set((setup.engine.clone(), id, setup.executor.now())).ok().unwrap();
        setup.engine.abandon(id, setup.executor.now());
        setup.run(LEASE / 2);
        id
    }
}

/// The first call of `cancel` is answered with `word`, after a message about a grant.
fn granted_during_a_clean_up(cancel: &'static str, word: &'static str) -> (Setup, Granted) {
    let granted = Granted::default();
    let (told, is_told) = (granted.clone(), Mutex::new(false));
    let setup = setup_with(Arc::new(move |call| {
        if call.script.name() != cancel {
            return Err(ConnectionError::refused("NOPERM no"));
        }
        let (engine, id, now) = told.0.get().unwrap();
        if !std::mem::replace(&mut *lock(&is_told), true) {
            engine.deliver(Message::Granted { id: *id, token: Token::new(7), at: 1 }, *now);
        }
        let mut reply = vec![Reply::Bytes(word.into()), Reply::Integer(0), Reply::Integer(1)];
        if cancel == "barrier_cancel" {
            reply.remove(1);
        }
        Ok(Reply::Array(reply))
    }));
    (setup, granted)
}
