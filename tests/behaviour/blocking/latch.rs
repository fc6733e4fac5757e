//! The count-down latch.

use std::thread;
use std::time::Duration;

use crate::blocking::lab::{LONG, Lab, eventually, everywhere};

everywhere! {
    everybody_is_let_through_at_zero,
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
