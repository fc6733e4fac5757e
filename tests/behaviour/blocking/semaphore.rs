//! The semaphore.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use bowline::ErrorKind;

use crate::blocking::lab::{Lab, everywhere};

everywhere! {
    never_more_than_the_limit,
    a_thread_that_asks_again_takes_more,
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

fn a_thread_that_asks_again_takes_more(lab: &Lab) {
    let semaphore = lab.client().semaphore("a", 2);
    let (one, two) = (semaphore.acquire().block().unwrap(), semaphore.acquire().block().unwrap());
    let error = semaphore.acquire().timeout(Duration::from_millis(50)).block().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    drop((one, two));
}

fn a_dropped_permit_has_been_given_back(lab: &Lab) {
    let semaphore = lab.client().semaphore("a", 1);
    drop(semaphore.acquire().block().unwrap());
    assert_eq!(semaphore.available().unwrap(), 1, "the drop waits for the server");
}
