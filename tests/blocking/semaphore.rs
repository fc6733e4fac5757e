//! The semaphore.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use bowline::{ErrorKind, Loss};

use crate::lab::{LONG, Lab, eventually, everywhere};

everywhere! {
    never_more_than_the_limit,
    a_try_does_not_wait,
    a_thread_that_asks_again_takes_more,
    many_at_once_are_not_starved_by_few,
    more_than_the_limit_is_an_error,
    a_smaller_limit_drains_and_a_larger_one_lets_in,
    a_lost_permit_comes_back_once,
    a_dropped_permit_has_been_given_back,
}

fn never_more_than_the_limit(lab: &Lab) {
    let used = AtomicU32::new(0);
    let clients = [lab.client(), lab.client()];
    thread::scope(|scope| {
        for i in 0..6 {
            let (semaphore, used) = (clients[i % 2].semaphore("a", 3), &used);
            scope.spawn(move || {
                for n in 0..8 {
                    let count = 1 + n % 2;
                    let permit = semaphore.acquire_many(count).block().unwrap();
                    assert_eq!(permit.count(), count);
                    assert!(used.fetch_add(count, Ordering::SeqCst) + count <= 3);
                    used.fetch_sub(count, Ordering::SeqCst);
                    permit.release().unwrap();
                }
            });
        }
    });
}

fn a_try_does_not_wait(lab: &Lab) {
    let semaphore = lab.client().semaphore("a", 2);
    let permits = semaphore.try_acquire_many(2).block().unwrap().expect("free");
    assert!(semaphore.try_acquire().block().unwrap().is_none());
    assert_eq!(semaphore.available().unwrap(), 0);
    permits.release().unwrap();
    assert_eq!(semaphore.available().unwrap(), 2);
}

fn a_thread_that_asks_again_takes_more(lab: &Lab) {
    let semaphore = lab.client().semaphore("a", 2);
    let (one, two) = (semaphore.acquire().block().unwrap(), semaphore.acquire().block().unwrap());
    let error = semaphore.acquire().timeout(Duration::from_millis(50)).block().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    drop((one, two));
}

fn many_at_once_are_not_starved_by_few(lab: &Lab) {
    let (a, b) = (lab.client(), lab.client());
    let one = a.semaphore("a", 3).acquire().block().unwrap();
    let big = b.semaphore("a", 3);
    let waiter = thread::spawn(move || big.acquire_many(3).timeout(LONG).block().unwrap().count());
    eventually("it waits", || a.semaphore("a", 3).inspect().unwrap().waiters == 1);
    assert!(a.semaphore("a", 3).try_acquire().block().unwrap().is_none(), "past one that waits");
    one.release().unwrap();
    assert_eq!(waiter.join().unwrap(), 3);
}

fn more_than_the_limit_is_an_error(lab: &Lab) {
    let semaphore = lab.client().semaphore("a", 2);
    assert_eq!(semaphore.acquire_many(3).block().unwrap_err().kind(), ErrorKind::OverLimit);
    assert_eq!(semaphore.try_acquire_many(3).block().unwrap_err().kind(), ErrorKind::OverLimit);
    assert_eq!(semaphore.acquire_many(0).block().unwrap_err().kind(), ErrorKind::InvalidInput);
}

fn a_smaller_limit_drains_and_a_larger_one_lets_in(lab: &Lab) {
    let semaphore = lab.client().semaphore("a", 2);
    let permits = semaphore.acquire_many(2).block().unwrap();
    semaphore.set_limit(1).unwrap();
    assert_eq!(semaphore.inspect().unwrap().limit, 1);
    permits.release().unwrap();
    let one = semaphore.acquire().block().unwrap();
    let waits = semaphore.clone();
    let waiter = thread::spawn(move || waits.acquire().timeout(LONG).block().unwrap().release().unwrap());
    eventually("it waits", || semaphore.inspect().unwrap().waiters == 1);
    semaphore.set_limit(2).unwrap();
    waiter.join().unwrap();
    one.release().unwrap();
    lab.forget_limits();
}

fn a_lost_permit_comes_back_once(lab: &Lab) {
    let semaphore = lab.client().semaphore("a", 1);
    let permit = semaphore.acquire().lease(Duration::from_millis(300)).block().unwrap();
    let next = semaphore.acquire().timeout(LONG).block().unwrap();
    assert_eq!(permit.lost().unwrap(), Loss::Expired);
    assert_eq!(permit.release().unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(semaphore.available().unwrap(), 0, "no credit for a late release");
    next.release().unwrap();
}

fn a_dropped_permit_has_been_given_back(lab: &Lab) {
    let semaphore = lab.client().semaphore("a", 1);
    drop(semaphore.acquire().block().unwrap());
    assert_eq!(semaphore.available().unwrap(), 1, "the drop waits for the server");
}
