//! The lock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bowline::{ErrorKind, Holder, Loss};

use crate::lab::{LONG, Lab, eventually, everywhere};

everywhere! {
    threads_exclude_each_other_and_tokens_grow,
    first_come_first_served,
    a_try_does_not_wait,
    a_timeout_is_an_error_and_leaves_nothing,
    a_full_queue_is_an_error,
    a_thread_enters_again_what_it_holds,
    another_thread_is_another_holder,
    a_holder_can_be_named,
    a_dropped_guard_has_released,
    a_fixed_lease_ends_and_the_loss_is_told,
    a_renewed_lease_outlives_its_length,
    a_guard_can_go_to_another_thread,
    it_tells_who_holds_and_takes_it_away,
    bad_input_is_an_error,
    a_closed_client_says_so,
    async_and_blocking_exclude_each_other,
}

fn threads_exclude_each_other_and_tokens_grow(lab: &Lab) {
    let inside = AtomicBool::new(false);
    let tokens = Mutex::new(Vec::new());
    let clients = [lab.client(), lab.client()];
    thread::scope(|scope| {
        for i in 0..8 {
            let (lock, inside, tokens) = (clients[i % 2].lock("a"), &inside, &tokens);
            scope.spawn(move || {
                for _ in 0..10 {
                    let acquire = if i < 4 { lock.lock().fair() } else { lock.lock().non_fair() };
                    let guard = acquire.block().unwrap();
                    assert!(!inside.swap(true, Ordering::SeqCst), "two at a time");
                    tokens.lock().unwrap().push(guard.token());
                    assert!(guard.is_valid());
                    inside.store(false, Ordering::SeqCst);
                    guard.release().unwrap();
                }
            });
        }
    });
    let tokens = tokens.into_inner().unwrap();
    assert_eq!(tokens.len(), 80);
    assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
}

fn first_come_first_served(lab: &Lab) {
    let client = lab.client();
    let lock = client.lock("a");
    let guard = lock.lock().block().unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let waiters: Vec<_> = (0..5)
        .map(|i| {
            let (lock, order) = (lock.clone(), order.clone());
            let waiter = thread::spawn(move || {
                let guard = lock.lock().block().unwrap();
                order.lock().unwrap().push(i);
                guard.release().unwrap();
            });
            eventually("it waits", || client.lock("a").inspect().unwrap().waiters == i + 1);
            waiter
        })
        .collect();
    guard.release().unwrap();
    waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4]);
}

fn a_try_does_not_wait(lab: &Lab) {
    let (a, b) = (lab.client(), lab.client());
    let guard = a.lock("a").try_lock().block().unwrap().expect("it is free");
    assert!(b.lock("a").try_lock().block().unwrap().is_none());
    assert!(b.lock("a").try_lock().timeout(LONG).lease(Duration::from_secs(1)).block().unwrap().is_none());
    guard.release().unwrap();
    b.lock("a").try_lock().block().unwrap().expect("it is free again").release().unwrap();
}

fn a_timeout_is_an_error_and_leaves_nothing(lab: &Lab) {
    let (a, b) = (lab.client(), lab.client());
    let guard = a.lock("a").lock().block().unwrap();
    let error = b.lock("a").lock().timeout(Duration::from_millis(50)).block().unwrap_err();
    assert_eq!((error.kind(), error.operation(), error.name()), (ErrorKind::TimedOut, "lock", Some("a")));
    eventually("nobody waits", || a.lock("a").inspect().unwrap().waiters == 0);
    guard.release().unwrap();
}

fn a_full_queue_is_an_error(lab: &Lab) {
    let (a, b) = (lab.client(), lab.client());
    let guard = a.lock("a").lock().block().unwrap();
    let lock = b.lock("a");
    let waiter = thread::spawn(move || lock.lock().block().unwrap().release().unwrap());
    eventually("it waits", || a.lock("a").inspect().unwrap().waiters == 1);
    let error = lab.client().lock("a").lock().max_waiters(1).block().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::QueueFull);
    guard.release().unwrap();
    waiter.join().unwrap();
}

fn a_thread_enters_again_what_it_holds(lab: &Lab) {
    let (client, other) = (lab.client(), lab.client());
    let lock = client.lock("a");
    let outer = lock.lock().block().unwrap();
    let inner = lock.lock().block().unwrap();
    let tried = client.lock("a").try_lock().block().unwrap().expect("the thread holds it");
    assert_eq!((inner.token(), tried.token()), (outer.token(), outer.token()));
    outer.release().unwrap();
    drop(tried);
    assert!(inner.is_valid());
    assert!(other.lock("a").try_lock().block().unwrap().is_none(), "one guard is left");
    inner.release().unwrap();
    other.lock("a").try_lock().block().unwrap().expect("free").release().unwrap();
}

fn another_thread_is_another_holder(lab: &Lab) {
    let client = lab.client();
    let guard = client.lock("a").lock().block().unwrap();
    let lock = client.lock("a");
    thread::spawn(move || assert!(lock.try_lock().block().unwrap().is_none())).join().unwrap();
    guard.release().unwrap();
}

fn a_holder_can_be_named(lab: &Lab) {
    let (client, holder) = (lab.client(), Holder::new());
    let outer = client.lock("a").lock().holder(&holder).block().unwrap();
    assert!(client.lock("a").try_lock().block().unwrap().is_none(), "the thread itself does not hold it");
    let lock = client.lock("a");
    let elsewhere = thread::spawn(move || lock.try_lock().holder(&holder).block().unwrap().expect("the same holder"));
    let inner = elsewhere.join().unwrap();
    assert_eq!(inner.token(), outer.token());
    inner.release().unwrap();
    outer.release().unwrap();
}

fn a_dropped_guard_has_released(lab: &Lab) {
    let (a, b) = (lab.client(), lab.client());
    drop(a.lock("a").lock().block().unwrap());
    assert_eq!(lab.keys(), Vec::<String>::new(), "the drop waits for the server");
    b.lock("a").try_lock().block().unwrap().expect("free").release().unwrap();
}

fn a_fixed_lease_ends_and_the_loss_is_told(lab: &Lab) {
    let client = lab.client();
    let guard = client.lock("a").lock().lease(Duration::from_secs(1)).block().unwrap();
    assert!(guard.remaining() <= Duration::from_secs(1));
    assert_eq!(guard.lost_within(Duration::from_millis(10)).unwrap(), None);
    assert_eq!(guard.lost().unwrap(), Loss::Expired);
    assert!(!guard.is_valid());
    assert_eq!(guard.lost_within(LONG).unwrap(), Some(Loss::Expired));
    assert_eq!(guard.release().unwrap_err().kind(), ErrorKind::Lost);
}

fn a_renewed_lease_outlives_its_length(lab: &Lab) {
    let client = lab.client_with(Duration::from_secs(1));
    let guard = client.lock("a").lock().block().unwrap();
    assert_eq!(guard.lost_within(Duration::from_millis(2500)).unwrap(), None);
    assert!(guard.is_valid());
    guard.release().unwrap();
}

fn a_guard_can_go_to_another_thread(lab: &Lab) {
    let client = lab.client();
    let guard = client.lock("a").lock().block().unwrap();
    thread::spawn(move || guard.release().unwrap()).join().unwrap();
    client.lock("a").try_lock().block().unwrap().expect("free").release().unwrap();
}

fn it_tells_who_holds_and_takes_it_away(lab: &Lab) {
    let (a, b) = (lab.client(), lab.client());
    let guard = a.lock("a").lock().block().unwrap();
    let holder = b.lock("a").inspect().unwrap().holder.expect("held");
    assert_eq!((holder.client, holder.token), (Some(a.id()), guard.token()));
    assert!(b.lock("a").force_release().unwrap().expect("it was held") > guard.token());
    assert_eq!(guard.lost_within(LONG).unwrap(), Some(Loss::Revoked));
    assert_eq!(guard.release().unwrap_err().kind(), ErrorKind::Lost);
}

fn bad_input_is_an_error(lab: &Lab) {
    let client = lab.client();
    let kind = |error: bowline::Error| error.kind();
    assert_eq!(client.lock("").lock().block().map_err(kind).unwrap_err(), ErrorKind::InvalidInput);
    let lock = client.lock("a");
    assert_eq!(lock.lock().timeout(Duration::ZERO).block().map_err(kind).unwrap_err(), ErrorKind::InvalidInput);
    assert_eq!(lock.lock().lease(Duration::MAX).block().map_err(kind).unwrap_err(), ErrorKind::InvalidInput);
    assert_eq!(lock.lock().max_waiters(0).block().map_err(kind).unwrap_err(), ErrorKind::InvalidInput);
}

fn a_closed_client_says_so(lab: &Lab) {
    let (a, b) = (lab.client(), lab.client());
    let guard = a.lock("a").lock().block().unwrap();
    let waits = b.lock("a");
    let waiter = thread::spawn(move || waits.lock().block().map(drop).unwrap_err().kind());
    eventually("it waits", || a.lock("a").inspect().unwrap().waiters == 1);
    b.close().unwrap();
    assert_eq!(waiter.join().unwrap(), ErrorKind::Closed);
    assert_eq!(b.lock("a").lock().block().unwrap_err().kind(), ErrorKind::Closed);
    guard.release().unwrap();
}

fn async_and_blocking_exclude_each_other(lab: &Lab) {
    let client = lab.client();
    let guard = client.lock("a").lock().block().unwrap();
    let lock = client.as_async().lock("a");
    let mut tried = None;
    let executor = client.as_async().executor();
    executor.block_on(Box::pin(async { tried = Some(lock.try_lock().await.unwrap()) })).unwrap();
    assert!(tried.expect("it ran").is_none());
    guard.release().unwrap();
}
