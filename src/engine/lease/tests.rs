use futures::FutureExt;
use uuid::Uuid;

use super::*;
use crate::protocol::kind::Kind;
use crate::runtime::an_instant;

const LEASE: Duration = Duration::from_secs(30);

fn hold(now: Instant) -> Hold {
    let keys = Arc::new(Keys::new("p", Kind::Lock, "n").unwrap());
    let id = AttemptId { client: Uuid::nil(), n: 1 };
    Hold::new(keys, id, 1, Token::new(1), LEASE, Term::Renewed, deadline(now, LEASE))
}

#[test]
fn counts_less_than_the_server_does() {
    let now = an_instant();
    let hold = hold(now);
    assert_eq!(hold.remaining(now), LEASE - Duration::from_millis(60));
    assert_eq!(hold.remaining(now + LEASE), Duration::ZERO);
    assert_eq!(hold.loss(now), None);
    assert_eq!(hold.loss(now + LEASE - Duration::from_millis(60)), Some(Loss::Expired));
}

type End = fn(&Hold, Instant);

#[test]
fn those_who_watch_hear_of_every_end() {
    let now = an_instant();
    let ends: [(End, Option<Loss>); 4] = [
        (|hold, now| assert!(hold.release(now).is_ok()), None),
        (|hold, _| assert!(hold.lose(Loss::Revoked)), Some(Loss::Revoked)),
        (|hold, now| assert!(hold.release(now + LEASE).is_err()), Some(Loss::Expired)),
        (
            |hold, now| {
                assert!(hold.end(now));
                hold.notify_over();
            },
            None,
        ),
    ];
    for (end, expected) in ends {
        let hold = hold(now);
        let (mut over, mut lost) = (Box::pin(hold.over()), Box::pin(hold.lost()));
        assert!((&mut over).now_or_never().is_none() && (&mut lost).now_or_never().is_none());
        end(&hold, now);
        assert_eq!((&mut over).now_or_never(), Some(expected));
        assert_eq!((&mut lost).now_or_never(), expected);
        assert_eq!(hold.over().now_or_never(), Some(expected));
    }
}

#[test]
fn does_not_count_on_what_the_server_is_not_asked_for() {
    let now = an_instant();
    assert_eq!(deadline(now, Duration::from_micros(500_999)), deadline(now, Duration::from_millis(500)));
}

#[test]
fn the_first_loss_stays_and_nothing_revives_it() {
    let now = an_instant();
    let hold = hold(now);
    assert!(hold.lost().now_or_never().is_none());
    assert!(hold.lose(Loss::Revoked));
    assert!(!hold.lose(Loss::Expired));
    hold.extend(now + LEASE * 9, now);
    assert_eq!(hold.remaining(now), Duration::ZERO);
    assert_eq!(hold.release(now), Err(Loss::Revoked));
    assert_eq!(hold.lost().now_or_never(), Some(Loss::Revoked));
}

#[test]
fn released_in_time_or_lost() {
    let now = an_instant();
    let (early, late) = (hold(now), hold(now));
    assert_eq!(early.release(now), Ok(()));
    assert!(!early.lose(Loss::Expired));
    assert!(early.lost().now_or_never().is_none());
    assert_eq!(late.release(now + LEASE), Err(Loss::Expired));
    assert_eq!(late.lost().now_or_never(), Some(Loss::Expired));
}

#[test]
fn a_late_answer_never_shortens_a_lease() {
    let now = an_instant();
    let hold = hold(now);
    hold.extend(deadline(now + LEASE / 2, LEASE), now + LEASE / 2);
    hold.extend(deadline(now + LEASE / 4, LEASE), now + LEASE / 2);
    assert_eq!(hold.remaining(now), LEASE + LEASE / 2 - Duration::from_millis(60));
}

#[test]
fn an_answer_after_the_deadline_revives_nothing() {
    let now = an_instant();
    let hold = hold(now);
    hold.extend(deadline(now + LEASE / 2, LEASE), now + LEASE);
    assert_eq!(hold.loss(now + LEASE), Some(Loss::Expired));
    assert_eq!(hold.remaining(now + LEASE), Duration::ZERO);
}

#[test]
fn the_next_guard_has_the_next_token_if_there_are_tokens() {
    let now = an_instant();
    for (token, next) in [(Token::new(1), Token::new(2)), (Token::NONE, Token::NONE)] {
        let (passed, _) =
            Hold { token: AtomicU64::new(token.get()), ..hold(now) }.succeed(now, Duration::ZERO, None).unwrap();
        assert_eq!(passed.token(), next);
    }
}

#[test]
fn every_waiter_of_a_loss_is_woken() {
    let hold = Arc::new(hold(an_instant()));
    let mut waiters: Vec<_> = (0..3).map(|_| Box::pin(hold.lost())).collect();
    for waiter in &mut waiters {
        assert!(waiter.as_mut().now_or_never().is_none());
    }
    hold.lose(Loss::Gone);
    for waiter in waiters {
        assert_eq!(waiter.now_or_never(), Some(Loss::Gone));
    }
}

#[test]
fn at_its_deadline_a_hold_is_lost() {
    let now = an_instant();
    let end = now + LEASE - Duration::from_millis(60);
    assert_eq!(hold(now).loss(end), Some(Loss::Expired));
    assert_eq!(hold(now).release(end), Err(Loss::Expired));
    assert!(!hold(now).end(end));
    let extended = hold(now);
    extended.extend(deadline(end, LEASE), end);
    assert_eq!(extended.loss(end), Some(Loss::Expired));
    assert_eq!(hold(now).release(end - Duration::from_nanos(1)), Ok(()));
}

#[test]
fn each_loss_says_what_happened() {
    let texts = [Loss::Expired, Loss::Gone, Loss::Revoked, Loss::Closed].map(|loss| loss.to_string());
    let distinct: std::collections::HashSet<_> = texts.iter().collect();
    assert!(distinct.len() == 4 && texts.iter().all(|text| text.len() > 10), "{texts:?}");
}

/// A renewal must change something, because only changes are sent to the replicas. The client's count of the lease may
/// come from a heartbeat that a failover has lost.
#[test]
fn a_lease_that_replicas_acknowledge_is_asked_for_as_long_as_it_is_counted() {
    let now = an_instant();
    for (term, replicas, asked) in [
        (Term::Renewed, 0, LEASE),
        (Term::Renewed, 2, LEASE),
        (Term::Fixed, 0, Duration::ZERO),
        (Term::Fixed, 1, LEASE),
    ] {
        let hold = Hold { term, ..hold(now) }.acknowledged_by(replicas);
        assert_eq!((hold.asked(now), hold.replicas), (asked, replicas), "{term:?}");
    }
    for passed in [Duration::from_micros(500), LEASE / 2, LEASE - Duration::from_millis(61), LEASE] {
        let (sent, hold) = (now + passed, Hold { term: Term::Fixed, ..hold(now) }.acknowledged_by(1));
        let asked = hold.asked(sent);
        assert!(asked >= Duration::from_millis(1) && asked <= LEASE, "{asked:?} after {passed:?}");
        assert!(deadline(sent, asked) >= sent + hold.remaining(sent), "{asked:?} after {passed:?}");
    }
}

/// Only a fixed lease is extended, and no fixed lease is handed off. If that changes, a successor must not have the
/// server shorten what its guard counts on.
#[test]
fn the_next_guard_knows_what_the_server_was_asked_for() {
    let now = an_instant();
    let hold = hold(now);
    hold.asks_for(LEASE * 4);
    hold.pass_on(now, Duration::ZERO, None).unwrap();
    assert_eq!(hold.longest(), LEASE * 4);
    let (next, _) = hold.succeed(now, Duration::ZERO, None).unwrap();
    assert_eq!(next.longest(), LEASE * 4);
}

/// The server stores the longest lease of an extended hold, so that it knows a late copy. Renewals of other holds need
/// no such write.
#[test]
fn only_what_was_extended_beyond_its_lease_is_stored() {
    let now = an_instant();
    for term in [Term::Renewed, Term::Fixed] {
        let hold = Hold { term, ..hold(now) };
        let args = |hold: &Hold, lease| {
            let args = hold.renewal_args(lease);
            (args.lease, args.longest, args.extended)
        };
        assert_eq!(args(&hold, LEASE), (LEASE, LEASE, false));
        assert_eq!(args(&hold, LEASE / 2), (LEASE / 2, LEASE, false));
        hold.asks_for(LEASE * 2);
        assert_eq!(args(&hold, LEASE * 2), (LEASE * 2, LEASE * 2, true));
        assert_eq!(args(&hold, LEASE / 2), (LEASE / 2, LEASE * 2, true));
    }
}
