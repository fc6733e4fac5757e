//! The read-write lock.

use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;

use bowline::ErrorKind;

use crate::blocking::lab::{LONG, Lab, everywhere};

everywhere! {
    many_readers_or_one_writer,
    a_thread_that_reads_cannot_write_and_is_told,
    a_thread_that_writes_may_read,
    dropped_guards_have_released,
}

fn many_readers_or_one_writer(lab: &Lab) {
    // Readers add one, and a writer subtracts a large number.
    let inside = AtomicI32::new(0);
    let clients = [lab.client(), lab.client()];
    thread::scope(|scope| {
        for i in 0..6 {
            let (lock, inside) = (clients[i % 2].rw_lock("a"), &inside);
            scope.spawn(move || {
                for _ in 0..8 {
                    if i < 2 {
                        let guard = lock.write().block().unwrap();
                        assert_eq!(inside.fetch_sub(100, Ordering::SeqCst), 0);
                        inside.fetch_add(100, Ordering::SeqCst);
                        guard.release().unwrap();
                    } else {
                        let guard = lock.read().block().unwrap();
                        assert!(inside.fetch_add(1, Ordering::SeqCst) >= 0);
                        inside.fetch_sub(1, Ordering::SeqCst);
                        guard.release().unwrap();
                    }
                }
            });
        }
    });
}

fn a_thread_that_reads_cannot_write_and_is_told(lab: &Lab) {
    let lock = lab.client().rw_lock("a");
    let reading = lock.read().block().unwrap();
    let again = lock.read().block().unwrap();
    assert_eq!(again.token(), reading.token());
    assert_eq!(lock.write().block().unwrap_err().kind(), ErrorKind::WouldDeadlock);
    assert_eq!(lock.try_write().block().unwrap_err().kind(), ErrorKind::WouldDeadlock);
    again.release().unwrap();
    reading.release().unwrap();
}

fn a_thread_that_writes_may_read(lab: &Lab) {
    let lock = lab.client().rw_lock("a");
    let writing = lock.write().block().unwrap();
    let reading = lock.read().timeout(LONG).block().unwrap();
    let tried = lock.try_read().block().unwrap().expect("the thread writes");
    assert_eq!((reading.token(), tried.token()), (writing.token(), writing.token()));
    drop((reading, tried));
    writing.release().unwrap();
}

fn dropped_guards_have_released(lab: &Lab) {
    let client = lab.client();
    drop(client.rw_lock("a").write().block().unwrap());
    drop(client.rw_lock("a").read().block().unwrap());
    assert_eq!(lab.keys(), Vec::<String>::new(), "the drop waits for the server");
}
