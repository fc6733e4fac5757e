//! The lock.

use std::cell::RefCell;
use std::panic::AssertUnwindSafe;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bowline::blocking::LockGuard;
use bowline::{ErrorKind, Holder, Loss};

use crate::blocking::lab::{LONG, Lab, everywhere};

everywhere! {
    threads_exclude_each_other_and_tokens_grow,
    a_thread_enters_again_what_it_holds,
    a_thread_can_deny_that_it_enters_again,
    another_thread_is_another_holder,
    a_holder_can_be_named,
    a_dropped_guard_has_released,
    a_fixed_lease_ends_and_the_loss_is_told,
    a_guard_of_a_named_holder_can_go_to_another_thread,
    a_borrowed_guard_is_watched_by_another_thread,
    a_thread_that_ends_releases_what_it_keeps,
    a_forgotten_guard_is_no_other_threads,
    async_and_blocking_exclude_each_other,
    run_releases_whatever_becomes_of_the_work,
    run_reports_a_loss,
    a_client_is_closed_at_the_end_of_its_scope,
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

fn a_thread_can_deny_that_it_enters_again(lab: &Lab) {
    let client = lab.client();
    let lock = client.lock("a");
    let outer = lock.lock().deny_reentry().block().unwrap();
    for error in [
        lock.lock().deny_reentry().block().map(drop).unwrap_err(),
        lock.try_lock().deny_reentry().block().map(drop).unwrap_err(),
        client.lock_all(["a", "b"]).acquire().deny_reentry().block().map(drop).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::WouldDeadlock, "{error}");
    }
    let inner = lock.lock().block().unwrap();
    assert_eq!((outer.guard_count(), inner.guard_count()), (2, 2));
    drop(inner);
    assert_eq!(outer.guard_count(), 1);
    outer.release().unwrap();
    lock.lock().run(|guard| assert_eq!(guard.guard_count(), 1)).unwrap();
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
    let guard = client.lock("a").lock().expires_after(Duration::from_secs(1)).block().unwrap();
    assert!(guard.remaining() <= Duration::from_secs(1));
    assert_eq!(guard.lost_within(Duration::from_millis(10)).unwrap(), None);
    assert_eq!(guard.lost().unwrap(), Loss::Expired);
    assert!(!guard.is_valid());
    assert_eq!(guard.lost_within(LONG).unwrap(), Some(Loss::Expired));
    assert_eq!(guard.release().unwrap_err().kind(), ErrorKind::Lost);
}

fn a_guard_of_a_named_holder_can_go_to_another_thread(lab: &Lab) {
    let client = lab.client();
    let guard = client.lock("a").lock().holder(&Holder::new()).block().unwrap();
    thread::spawn(move || guard.release().unwrap()).join().unwrap();
    client.lock("a").try_lock().block().unwrap().expect("free").release().unwrap();
}

fn a_borrowed_guard_is_watched_by_another_thread(lab: &Lab) {
    let client = lab.client();
    let guard = client.lock("a").lock().block().unwrap();
    thread::scope(|scope| {
        let watcher = scope.spawn(|| guard.lost().unwrap());
        client.lock("a").force_release().unwrap().expect("held");
        assert_eq!(watcher.join().unwrap(), Loss::Revoked);
    });
}

/// The guard is dropped when the thread's other locals, those of its runtime among them, may be gone already.
fn a_thread_that_ends_releases_what_it_keeps(lab: &Lab) {
    thread_local!(static KEPT: RefCell<Option<LockGuard>> = const { RefCell::new(None) });
    let client = lab.client();
    for first_used in ["the runtime", "the guard"] {
        let lock = client.lock("a");
        thread::spawn(move || {
            if first_used == "the runtime" {
                lock.inspect().unwrap();
            }
            KEPT.with_borrow_mut(|kept| *kept = Some(lock.lock().block().unwrap()));
        })
        .join()
        .unwrap();
        client.lock("a").lock().timeout(LONG).block().expect(first_used).release().unwrap();
    }
}

fn a_forgotten_guard_is_no_other_threads(lab: &Lab) {
    let client = lab.client();
    let lock = client.lock("a");
    thread::spawn(move || std::mem::forget(lock.lock().block().unwrap())).join().unwrap();
    for _ in 0..20 {
        // The operating system may reuse the first thread's id for these threads.
        let lock = client.lock("a");
        thread::spawn(move || assert!(lock.try_lock().block().unwrap().is_none())).join().unwrap();
    }
    client.close().unwrap();
    lab.client().lock("a").try_lock().block().unwrap().expect("closing ends what was forgotten").release().unwrap();
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

fn run_releases_whatever_becomes_of_the_work(lab: &Lab) {
    let (client, other) = (lab.client(), lab.client());
    let (lock, others) = (client.lock("a"), other.lock("a"));
    let token = lock.lock().run(|guard| {
        assert!(others.try_lock().block().unwrap().is_none(), "held while the work runs");
        guard.token()
    });
    let token = token.unwrap();
    assert_eq!(lab.keys(), Vec::<String>::new());
    assert!(lock.try_lock().run(|guard| guard.token()).unwrap().expect("free") > token);
    let failed = lock.lock().run(|_| Err::<(), _>("not today")).unwrap();
    assert_eq!((failed, lab.keys()), (Err("not today"), Vec::new()));
    let panic = std::panic::catch_unwind(AssertUnwindSafe(|| lock.lock().run(|_| panic!("on purpose")))).unwrap_err();
    assert_eq!((panic.downcast_ref(), lab.keys()), (Some(&"on purpose"), Vec::new()));
    let held = others.lock().block().unwrap();
    assert_eq!(lock.try_lock().run(|_| panic!("called without the lock")).unwrap(), None::<()>);
    held.release().unwrap();
    assert_eq!(client.semaphore("a", 2).acquire_many(2).run(|permit| permit.count()).unwrap(), 2);
    assert_eq!(lab.keys(), Vec::<String>::new());
}

fn run_reports_a_loss(lab: &Lab) {
    let client = lab.client();
    let acquire = client.lock("a").lock().expires_after(Duration::from_millis(100)).run(|guard| guard.lost().unwrap());
    assert_eq!(acquire.unwrap_err().kind(), ErrorKind::Lost);
}

fn a_client_is_closed_at_the_end_of_its_scope(lab: &Lab) {
    let client = lab.client();
    let kept = client.scope(|client| client.lock("a").lock().block().unwrap());
    assert_eq!((lab.keys(), kept.lost().unwrap()), (Vec::new(), Loss::Closed));
    assert_eq!(client.lock("a").inspect().unwrap_err().kind(), ErrorKind::Closed);

    let client = lab.client();
    let panic = std::panic::catch_unwind(AssertUnwindSafe(|| {
        client.scope(|client| {
            let _guard = client.lock("a").lock().block().unwrap();
            panic!("on purpose")
        })
    }));
    let panic: Result<(), _> = panic;
    assert_eq!((panic.unwrap_err().downcast_ref(), lab.keys()), (Some(&"on purpose"), Vec::new()));
    assert_eq!(client.lock("a").inspect().unwrap_err().kind(), ErrorKind::Closed);
}
