//! What cannot be acquired is an error before anything is sent, and what is named twice is one hold.

use std::time::Duration;

use bowline::ErrorKind;

use crate::lab::{Env, MultiLock, on_every_server};

on_every_server! {
    what_cannot_be_acquired_sends_nothing,
    what_is_named_twice_is_one_hold,
    clients_with_different_prefixes_are_acquired_together,
}

async fn what_cannot_be_acquired_sends_nothing(env: Env) {
    let client = env.client().await;
    let (lock, rw_lock) = (client.lock("a"), client.rw_lock("a"));
    let with_lock = || client.multi_lock().lock(&lock);
    let cases: [(&str, MultiLock, ErrorKind); 8] = [
        ("no name", client.multi_lock(), ErrorKind::InvalidInput),
        ("an empty name", client.lock_all(&["a", ""]), ErrorKind::InvalidInput),
        ("a long name", with_lock().read(&client.rw_lock(&"x".repeat(513))), ErrorKind::InvalidInput),
        ("no permit", with_lock().permits(&client.semaphore("s", 1), 0), ErrorKind::InvalidInput),
        ("no limit", with_lock().permits(&client.semaphore("s", 0), 1), ErrorKind::InvalidInput),
        (
            "two limits",
            with_lock().permits(&client.semaphore("s", 1), 1).permits(&client.semaphore("s", 2), 1),
            ErrorKind::InvalidInput,
        ),
        ("reads and writes", with_lock().read(&rw_lock).write(&rw_lock), ErrorKind::WouldDeadlock),
        ("writes and reads", with_lock().write(&rw_lock).read(&rw_lock), ErrorKind::WouldDeadlock),
    ];
    for (what, all, expected) in cases {
        let errors = [
            all.acquire().await.unwrap_err(),
            all.try_acquire().await.unwrap_err(),
            all.acquire().timeout(Duration::from_secs(1)).await.unwrap_err(),
        ];
        assert!(errors.iter().all(|error| error.kind() == expected), "{what}: {errors:?}");
    }
    // An invalid option for the last part fails the whole acquisition.
    let error = client.lock_all(&["a", "b"]).acquire().timeout(Duration::ZERO).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert_eq!(client.counts.total(), 0, "{:?}", client.counts.all());
}

async fn what_is_named_twice_is_one_hold(env: Env) {
    let client = env.client().await;
    let (semaphore, rw_lock) = (client.semaphore("s", 9), client.rw_lock("r"));
    let all = client.lock_all(&["b", "a", "b", "a"]).permits(&semaphore, 2).read(&rw_lock).permits(&semaphore, 3);
    let all = all.read(&rw_lock).lock(&client.lock("a"));
    let guard = all.acquire().await.unwrap();
    assert_eq!(guard.names(), ["a", "b", "r", "s"]);
    assert_eq!((client.counts.of("lock_acquire"), client.counts.of("permit_acquire")), (2, 2));
    assert_eq!(semaphore.inspect().await.unwrap().holders.iter().map(|holder| holder.count).collect::<Vec<_>>(), [5]);
    assert_eq!(rw_lock.inspect().await.unwrap().readers.len(), 1);
    guard.release().await.unwrap();
    assert!(env.keys().is_empty(), "{:?}", env.keys());
}

async fn clients_with_different_prefixes_are_acquired_together(env: Env) {
    let client = env.client().await;
    let other = env.client_with_all_rights(|config| config.prefix("another")).await;
    let all = client.multi_lock().lock(&other.lock("a")).lock(&client.lock("a")).lock(&other.lock("b"));
    let guard = all.acquire().await.unwrap();
    assert_eq!(guard.names(), ["a", "a", "b"]);
    let mut keys = env.keys();
    keys.sort();
    assert_eq!(keys, ["another:lock:{a}", "another:lock:{b}", "bowline:lock:{a}"]);
    assert_eq!(guard.token("a"), None, "there are two");
    // The token of the lock with the other prefix comes first.
    let tokens = guard.tokens();
    assert_eq!(Some(tokens[0].1), other.lock("a").inspect().await.unwrap().holder.map(|holder| holder.token));
    guard.release().await.unwrap();
    assert!(env.keys().is_empty(), "{:?}", env.keys());
}
