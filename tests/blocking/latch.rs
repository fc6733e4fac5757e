//! The count-down latch.

use std::thread;
use std::time::Duration;

use bowline::ErrorKind;

use crate::lab::{LONG, Lab, eventually, everywhere};

everywhere! {
    everybody_is_let_through_at_zero,
    a_timeout_is_an_error,
    it_can_be_set_again_once_it_is_open,
    bad_input_is_an_error,
}

const TTL: Duration = Duration::from_secs(60);

fn everybody_is_let_through_at_zero(lab: &Lab) {
    let (a, b) = (lab.client(), lab.client());
    let latch = a.latch("a");
    assert!(latch.try_set(2, TTL).unwrap());
    assert!(!b.latch("a").try_set(5, TTL).unwrap(), "it is being counted down");
    let waiters: Vec<_> = [&a, &b, &b]
        .map(|client| {
            let latch = client.latch("a");
            thread::spawn(move || latch.wait().timeout(LONG).block().unwrap())
        })
        .into();
    eventually("they wait", || latch.inspect().unwrap().waiters == 3);
    assert_eq!(b.latch("a").count_down().unwrap(), 1);
    assert!(waiters.iter().all(|waiter| !waiter.is_finished()));
    assert_eq!(latch.count().unwrap(), 1);
    assert_eq!(latch.count_down().unwrap(), 0);
    waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    latch.wait().block().unwrap();
    lab.forget_latch();
}

fn a_timeout_is_an_error(lab: &Lab) {
    let latch = lab.client().latch("a");
    latch.try_set(1, TTL).unwrap();
    let error = latch.wait().timeout(Duration::from_millis(50)).block().unwrap_err();
    assert_eq!((error.kind(), error.operation(), error.name()), (ErrorKind::TimedOut, "wait", Some("a")));
    lab.forget_latch();
}

fn it_can_be_set_again_once_it_is_open(lab: &Lab) {
    let latch = lab.client().latch("a");
    latch.try_set(1, TTL).unwrap();
    assert_eq!(latch.count_down().unwrap(), 0);
    assert!(latch.try_set(3, TTL).unwrap());
    assert_eq!(latch.count().unwrap(), 3);
    assert!(latch.delete().unwrap());
    assert!(!latch.delete().unwrap());
    latch.wait().block().unwrap();
    lab.forget_latch();
}

fn bad_input_is_an_error(lab: &Lab) {
    let latch = lab.client().latch("a");
    assert_eq!(latch.try_set(0, TTL).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(latch.try_set(1, Duration::ZERO).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(lab.client().latch("").count_down().unwrap_err().kind(), ErrorKind::InvalidInput);
}
