//! Every script may be sent twice: the second, late copy changes nothing.

use super::lab::{Acquired, LIMIT, Permits, SPAN, writer};
use crate::lab::{
    Acquired as Granted, Around, CANCEL_GONE, CANCEL_RELEASED, CANCELLED, NOT_HELD, RELEASED, Released, State, attempt,
};

/// A refresh moves expiry times by the time between the two copies.
const REFRESH: u64 = 5_000;

#[test]
fn acquire() {
    for mode in ["try", "wait"] {
        let mut lab = Permits::read_write();
        for attempt in [attempt(1, 1), attempt(1, 2)] {
            let (first, second) = lab.twice(REFRESH, |lab| lab.acquire_as(mode, &attempt).unwrap());
            assert_eq!(first, second);
        }
        let (first, second) = lab.twice(REFRESH, |lab| lab.acquire_as(mode, &writer(2, 1)).unwrap());
        assert_eq!(std::mem::discriminant(&first), std::mem::discriminant(&second));
        let stale = lab.twice(0, |lab| lab.acquire_as(mode, &attempt(3, 1).not_after(1)).unwrap());
        assert_eq!(stale.0, Acquired::As(Granted::Stale));
        let over = lab.twice(0, |lab| {
            lab.limit = 2;
            lab.acquire_as(mode, &attempt(4, 1).units(3)).unwrap()
        });
        assert_eq!(over, (Acquired::Over(2), Acquired::Over(2)));
    }
}

#[test]
fn release_and_cancel() {
    let mut lab = Permits::semaphore(2);
    let (a, b, c, d, e) = (attempt(1, 1), attempt(2, 1), attempt(3, 1), attempt(4, 1), attempt(5, 1));
    lab.hold(&[&a, &b]);
    lab.queue(&[&c, &d, &e]);
    let _inboxes = [3, 4, 5].map(|client| lab.listen(client));
    assert_eq!(lab.twice(0, |lab| lab.release(&a)), (RELEASED, NOT_HELD));
    lab.assert_held(&[&b, &c]);
    assert_eq!(lab.twice(0, |lab| lab.cancel(&d)), (CANCELLED, CANCEL_GONE));
    assert_eq!(lab.twice(0, |lab| lab.cancel(&b)), (CANCEL_RELEASED, CANCEL_GONE));
    lab.assert_held(&[&c, &e]);
    let next = attempt(3, 2);
    let released = lab.twice(0, |lab| lab.release_and_queue(&c, Some(&next)).unwrap());
    assert_eq!(released, (Released::Granted(0), NOT_HELD));
    lab.assert_held(&[&next, &e]);
}

#[test]
fn heartbeat() {
    let mut lab = Permits::read_write();
    let (w, b, c) = (writer(1, 1), attempt(2, 1), attempt(2, 2));
    let token = lab.acquire(&w).token();
    lab.queue(&[&b, &c]);
    let (first, second) = lab.twice(REFRESH, |lab| lab.heartbeat(&[&w, &b, &c, &attempt(5, 1)]).states);
    assert_eq!(first, second);
    assert_eq!(first, [State::Granted(token), State::Waiting, State::Waiting, State::Gone]);
    lab.release(&w);
    let (first, second) = lab.twice(REFRESH, |lab| lab.heartbeat(&[&b, &c]).states);
    assert_eq!(first, second);
    assert_eq!(first, [State::Granted(token + SPAN - 1); 2]);
    lab.cancel(&c);
    lab.cancel(&b);
    assert_eq!(lab.twice(0, |lab| lab.heartbeat(&[&b, &c]).states).0, [State::Gone, State::Gone]);
}

#[test]
fn renew_limit_and_inspect() {
    let mut lab = Permits::semaphore(2);
    let a = attempt(1, 1);
    lab.hold(&[&a]);
    assert_eq!(lab.twice(REFRESH, |lab| lab.renew_one(&a)), (1, 1));
    assert_eq!(lab.twice(REFRESH, |lab| lab.set_limit(1)), (LIMIT, LIMIT));
    assert_eq!(lab.twice(0, |lab| lab.inspect().used), (1, 1));
    lab.release(&a);
    assert_eq!(lab.twice(0, |lab| lab.renew_one(&a)), (0, 0));
}
