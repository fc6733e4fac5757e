//! Several primitives, acquired together.

use std::thread;
use std::time::Duration;

use bowline::blocking::MultiLock;
use bowline::{ErrorKind, Holder};

use crate::blocking::lab::{LONG, Lab, everywhere};

everywhere! {
    a_thread_re_enters_what_it_holds,
    threads_in_opposite_orders_do_not_deadlock,
    a_dropped_guard_has_released_all,
    a_guard_of_a_holder_moves_to_another_thread,
    run_has_released_all,
    nothing_to_acquire_is_an_error,
}

fn a_thread_re_enters_what_it_holds(lab: &Lab) {
    let client = lab.client();
    let outer = client.lock("b").lock().block().unwrap();
    let all = client.lock_all(["b", "a"]);
    let guard = all.acquire().timeout(LONG).block().unwrap();
    assert_eq!(guard.token("b"), Some(outer.token()));
    let again = all.try_acquire().block().unwrap().expect("the thread holds them");
    assert_eq!(again.tokens().collect::<Vec<_>>(), guard.tokens().collect::<Vec<_>>());
    thread::scope(|scope| {
        scope.spawn(|| assert!(all.try_acquire().block().unwrap().is_none(), "another thread"));
    });
    for guard in [again, guard] {
        guard.release().unwrap();
    }
    assert_eq!(lab.keys(), ["bowline:lock:{b}"]);
    outer.release().unwrap();
}

fn threads_in_opposite_orders_do_not_deadlock(lab: &Lab) {
    let clients = [lab.client(), lab.client()];
    thread::scope(|scope| {
        for (client, names) in clients.iter().zip([["a", "b", "c"], ["c", "b", "a"]]) {
            let all = client.lock_all(names);
            scope.spawn(move || {
                for _ in 0..20 {
                    all.acquire().timeout(LONG).block().unwrap().release().unwrap();
                }
            });
        }
    });
    assert_eq!(lab.keys(), Vec::<String>::new());
}

fn a_dropped_guard_has_released_all(lab: &Lab) {
    let client = lab.client();
    let all = MultiLock::new()
        .lock(&client.lock("a"))
        .read(&client.rw_lock("a"))
        .write(&client.rw_lock("b"))
        .permits(&client.semaphore("a", 2), 2);
    drop(all.acquire().block().unwrap());
    assert_eq!(lab.keys(), Vec::<String>::new(), "the drop waits for the server");
    drop(all.try_acquire().block().unwrap().expect("free"));
    assert_eq!(lab.keys(), Vec::<String>::new());
}

fn a_guard_of_a_holder_moves_to_another_thread(lab: &Lab) {
    let client = lab.client();
    let guard = client.lock_all(["a", "b"]).acquire().holder(&Holder::new()).block().unwrap();
    let (lost, released) =
        thread::spawn(move || (guard.lost_within(Duration::from_millis(1)), guard.release())).join().unwrap();
    assert_eq!(lost.unwrap(), None);
    released.unwrap();
}

fn run_has_released_all(lab: &Lab) {
    let client = lab.client();
    let names = client.lock_all(["b", "a"]).acquire().run(|guard| guard.name().to_owned()).unwrap();
    assert_eq!(names, "a, b");
    assert_eq!(lab.keys(), Vec::<String>::new());
}

fn nothing_to_acquire_is_an_error(_: &Lab) {
    let error = MultiLock::new().acquire().block().unwrap_err();
    assert_eq!((error.kind(), error.operation()), (ErrorKind::InvalidInput, "acquire"));
    let error = MultiLock::new().try_acquire().block().unwrap_err();
    assert_eq!((error.kind(), error.operation()), (ErrorKind::InvalidInput, "try_acquire"));
}
