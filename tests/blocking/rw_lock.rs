//! The read-write lock.

use std::sync::atomic::{AtomicI32, Ordering};
use std::thread;
use std::time::Duration;

use bowline::ErrorKind;
use bowline::blocking::Upgrade;

use crate::lab::{LONG, Lab, eventually, everywhere};

everywhere! {
    many_readers_or_one_writer,
    a_writer_that_waits_goes_before_later_readers,
    a_thread_that_reads_cannot_write_and_is_told,
    a_thread_that_writes_may_read,
    a_writer_becomes_a_reader,
    only_the_sole_reader_becomes_the_writer,
    a_timeout_is_an_error,
    dropped_guards_have_released,
}

fn many_readers_or_one_writer(lab: &Lab) {
    // Readers count up, a writer counts far down.
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

fn a_writer_that_waits_goes_before_later_readers(lab: &Lab) {
    let (a, b) = (lab.client(), lab.client());
    let reading = a.rw_lock("a").read().block().unwrap();
    let lock = b.rw_lock("a");
    let writer = thread::spawn(move || lock.write().block().unwrap().token());
    eventually("it waits", || a.rw_lock("a").inspect().unwrap().waiters == 1);
    thread::scope(|scope| {
        scope.spawn(|| assert!(a.rw_lock("a").try_read().block().unwrap().is_none(), "past a writer that waits"));
    });
    let token = reading.token();
    reading.release().unwrap();
    assert!(writer.join().unwrap() > token);
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

fn a_writer_becomes_a_reader(lab: &Lab) {
    let (a, b) = (lab.client(), lab.client());
    let writing = a.rw_lock("a").write().block().unwrap();
    let token = writing.token();
    assert!(b.rw_lock("a").try_read().block().unwrap().is_none());
    let reading = writing.downgrade().unwrap();
    assert_eq!(reading.token(), token);
    b.rw_lock("a").try_read().block().unwrap().expect("readers share").release().unwrap();
    assert!(b.rw_lock("a").try_write().block().unwrap().is_none());
    reading.release().unwrap();
}

fn only_the_sole_reader_becomes_the_writer(lab: &Lab) {
    let (a, b) = (lab.client(), lab.client());
    let (one, two) = (a.rw_lock("a").read().block().unwrap(), b.rw_lock("a").read().block().unwrap());
    let Upgrade::WouldDeadlock(one) = one.try_upgrade().unwrap() else { panic!("another one reads") };
    assert!(one.is_valid());
    two.release().unwrap();
    let Upgrade::Writing(writing) = one.try_upgrade().unwrap() else { panic!("the only one") };
    let state = b.rw_lock("a").inspect().unwrap();
    assert_eq!(state.writer.map(|writer| writer.token), Some(writing.token()));
    writing.release().unwrap();
}

fn a_timeout_is_an_error(lab: &Lab) {
    let (a, b) = (lab.client(), lab.client());
    let writing = a.rw_lock("a").write().block().unwrap();
    let error = b.rw_lock("a").read().timeout(Duration::from_millis(50)).block().unwrap_err();
    assert_eq!((error.kind(), error.operation()), (ErrorKind::TimedOut, "read"));
    writing.release().unwrap();
}

fn dropped_guards_have_released(lab: &Lab) {
    let client = lab.client();
    drop(client.rw_lock("a").write().block().unwrap());
    drop(client.rw_lock("a").read().block().unwrap());
    assert_eq!(lab.keys(), Vec::<String>::new(), "the drop waits for the server");
}
