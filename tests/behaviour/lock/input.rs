//! What is asked for: names, durations and limits of every kind, and what is shown of them.

use std::time::Duration;

use bowline::{Config, ErrorKind, Loss, MAX_LEASE, MIN_LEASE};

use super::{LONG, queued, waiter};
use crate::lab::{Env, on_every_server};

on_every_server! {
    bad_durations_and_limits_are_errors_before_anything_is_sent,
    the_longest_and_shortest_durations_work,
    bad_names_are_errors_before_anything_is_sent,
    every_good_name_is_a_lock_of_its_own,
    a_lock_named_like_the_scratch_key_is_safe_from_connecting_clients;
    nothing_shows_a_password_or_a_attempt_id,
}

async fn bad_durations_and_limits_are_errors_before_anything_is_sent(env: Env) {
    let client = env.client().await;
    let lock = client.lock("a");
    let mut errors = Vec::new();
    let ms = Duration::from_millis;
    for lease in [Duration::ZERO, Duration::from_nanos(1), ms(1), ms(99), MAX_LEASE + ms(1), Duration::MAX] {
        errors.push(lock.lock().lease(lease).await.unwrap_err());
        errors.push(lock.try_lock().lease(lease).await.unwrap_err());
        errors.push(lock.lock().expires_after(lease).await.unwrap_err());
        errors.push(lock.try_lock().expires_after(lease).await.unwrap_err());
    }
    for limit in [Duration::ZERO, ms(99)] {
        errors.push(lock.lock().hold_at_most(limit).await.unwrap_err());
        errors.push(lock.try_lock().hold_at_most(limit).await.unwrap_err());
    }
    errors.push(lock.lock().expires_after(MIN_LEASE).lease(MIN_LEASE).await.unwrap_err());
    errors.push(lock.try_lock().expires_after(MIN_LEASE).hold_at_most(MIN_LEASE).await.unwrap_err());
    errors.push(lock.lock().timeout(Duration::ZERO).await.unwrap_err());
    errors.push(lock.try_lock().timeout(Duration::ZERO).await.unwrap_err());
    errors.push(lock.lock().max_waiters(0).await.unwrap_err());
    for error in errors {
        assert_eq!((error.kind(), error.name()), (ErrorKind::InvalidInput, Some("a")), "{error}");
        assert!(!error.is_retryable());
    }
    assert_eq!(client.counts.total(), 0, "{:?}", client.counts.all());
    assert!(env.keys().is_empty());
}

async fn the_longest_and_shortest_durations_work(env: Env) {
    let (a, b) = (env.client().await, env.client().await);
    let lock = b.lock("a");
    for timeout in [1 << 31, 1 << 40, 1 << 50, u64::MAX >> 1, u64::MAX].map(Duration::from_secs) {
        // The timeout passes in vain, at once and after a wait.
        lock.lock().timeout(timeout).await.unwrap().release().await.unwrap();
        lock.try_lock().timeout(timeout).await.unwrap().unwrap().release().await.unwrap();
        let held = a.lock("a").lock().await.unwrap();
        assert!(lock.try_lock().timeout(timeout).await.unwrap().is_none());
        let release = async {
            queued(&env, &a.lock("a"), 1).await;
            held.release().await.unwrap();
        };
        let (guard, ()) = futures::join!(lock.lock().timeout(timeout).into_future(), release);
        guard.unwrap().release().await.unwrap();
    }
    lock.lock().timeout(Duration::MAX).await.unwrap().release().await.unwrap();

    lock.lock().expires_after(MAX_LEASE).max_waiters(u32::MAX).await.unwrap().release().await.unwrap();
    lock.lock().lease(MAX_LEASE).hold_at_most(Duration::MAX).await.unwrap().release().await.unwrap();
    let shortest = lock.lock().expires_after(MIN_LEASE).await.unwrap();
    assert!(shortest.remaining() <= MIN_LEASE);
    assert_eq!(env.soon("it ends", shortest.lost()).await, Loss::Expired);

    // The timeout is shorter than most answers take. A late timer may let the answer win.
    if let Err(error) = lock.lock().timeout(Duration::from_nanos(1)).await {
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }
    env.soon("nothing of it is in the way", lock.lock()).await.unwrap().release().await.unwrap();
}

async fn bad_names_are_errors_before_anything_is_sent(env: Env) {
    let client = env.client().await;
    for name in [String::new(), "x".repeat(513), "ä".repeat(257), "{".repeat(600)] {
        let lock = client.lock(&name);
        let errors = [
            lock.lock().await.unwrap_err(),
            lock.lock().fair().timeout(LONG).await.unwrap_err(),
            lock.try_lock().await.unwrap_err(),
            lock.inspect().await.unwrap_err(),
            lock.force_release().await.unwrap_err(),
        ];
        let operations = ["lock", "lock", "try_lock", "inspect", "force_release"];
        for (error, operation) in errors.into_iter().zip(operations) {
            assert_eq!((error.kind(), error.operation()), (ErrorKind::InvalidInput, operation), "{error}");
            assert!(error.to_string().len() < 200, "the bad name is repeated: {error}");
        }
    }
    assert_eq!(client.counts.total(), 0, "{:?}", client.counts.all());
}

async fn every_good_name_is_a_lock_of_its_own(env: Env) {
    let names = [
        "a",
        "A",
        "a:queue",
        "a}:queue",
        "a}:queue{",
        "{a}",
        "{",
        "}",
        "}{",
        "{}",
        "%7Ba%7D",
        "%7b",
        "%7B",
        "%257B",
        "%",
        "%%",
        "%25",
        " ",
        "  ",
        "a b",
        "a%20b",
        "\t",
        "%09",
        "\n",
        "\r\n",
        "\0",
        "%00",
        "\u{1b}[31m",
        "\u{7f}",
        "ä",
        "a\u{308}",
        "日本語",
        "🔒",
        "\u{202e}",
        "*",
        "?",
        "[a]",
        "lock",
        "a'b",
        "a\"b",
        "a\\b",
        "a/b",
        "-1",
        "nil",
    ];
    let longest = ["x".repeat(512), "x".repeat(511), "{".repeat(512), "ä".repeat(256), "\n".repeat(512)];
    let names: Vec<&str> = names.into_iter().chain(longest.iter().map(String::as_str)).collect();
    let (a, b) = (env.client().await, env.client().await);
    let mut held = Vec::new();
    for name in &names {
        let guard = a.lock(name).try_lock().await.unwrap();
        let guard = guard.unwrap_or_else(|| panic!("{name:?} is taken by another name"));
        assert_eq!(guard.name(), *name);
        held.push(guard);
    }
    // All keys of a name have the same hash tag, which is not empty.
    for key in env.keys() {
        let tag = key.split_once('{').unwrap().1.split_once('}').unwrap().0;
        assert!(!tag.is_empty() && !key.contains(|c: char| c.is_ascii_control()), "{key:?}");
        assert_eq!(key.matches(['{', '}']).count(), 2, "{key:?}");
    }
    for (name, guard) in names.iter().zip(held) {
        let lock = b.lock(name);
        let next = waiter(&env, &lock).await;
        let state = lock.inspect().await.unwrap();
        assert_eq!((state.waiters, state.holder.map(|holder| holder.token)), (1, Some(guard.token())), "{name:?}");
        let token = guard.token();
        guard.release().await.unwrap();
        let next = env.soon("the waiter is served", next).await;
        assert!(next.token() > token, "{name:?}");
        next.release().await.unwrap();
    }
}

async fn a_lock_named_like_the_scratch_key_is_safe_from_connecting_clients(env: Env) {
    let client = env.client().await;
    let lock = client.lock("bowline-check");
    let guard = lock.lock().await.unwrap();
    let next = waiter(&env, &lock).await;
    let other = env.client().await;
    assert!(guard.is_valid());
    let state = other.lock("bowline-check").inspect().await.unwrap();
    assert_eq!((state.waiters, state.holder.map(|holder| holder.token)), (1, Some(guard.token())));
    guard.release().await.unwrap();
    env.soon("the waiter is served", next).await.release().await.unwrap();
}

async fn nothing_shows_a_password_or_a_attempt_id(env: Env) {
    const PASSWORD: &str = "sesame-31415";
    let () = env.redis(&["ACL", "SETUSER", "app", "on", &format!(">{PASSWORD}"), "~*", "&*", "+@all"]);
    let url = env.url().replace("://", &format!("://app:{PASSWORD}@"));
    let client = env.client_at(&url, |config| config).await.unwrap();
    let wrong = env.client_at(&url.replace("31415", "27182"), |config| config).await.unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::Denied);
    let nowhere = env.client_at("redis://app:sesame-31415@127.0.0.1:1/", |config| {
        config.command_timeout(Duration::from_millis(200)).retry_timeout(Duration::from_millis(200))
    });
    let nowhere = nowhere.await.unwrap_err();
    let no_url = env.client_at("redis//app:sesame-31415@127.0.0.1/", |config| config).await.unwrap_err();
    assert_eq!(no_url.kind(), ErrorKind::InvalidInput);

    let config = Config::builder().client_id(client.id()).build().unwrap();
    let connection = env.open(&url, &config).await.unwrap();
    let lock = client.lock("a");
    let guard = lock.lock().await.unwrap();
    let state = lock.inspect().await.unwrap();
    let timed_out = lock.lock().timeout(Duration::from_millis(50)).await.unwrap_err();
    env.allow_forever("bowline:lock:{wrong}");
    let () = env.redis(&["SET", "bowline:lock:{wrong}", "x"]);
    let wrong_type = client.lock("wrong").lock().await.unwrap_err();
    let () = env.redis(&["DEL", "bowline:lock:{wrong}"]);

    let mut shown = vec![
        format!("{client:?}"),
        format!("{:?}", client.client),
        format!("{connection:?}"),
        format!("{config:?}"),
        format!("{:?}", Config::builder()),
        format!("{lock:?}"),
        format!("{:?} {:?}", lock.lock(), lock.try_lock()),
        format!("{guard:?}"),
        format!("{state:?}"),
    ];
    for error in [&wrong, &nowhere, &no_url, &timed_out, &wrong_type] {
        shown.push(format!("{error} {error:?} {error:#?}"));
    }
    let id = client.id().to_string();
    for text in shown {
        assert!(!text.contains("sesame"), "{text}");
        for (at, _) in text.match_indices(&id) {
            let after = &text[at + id.len()..];
            assert!(!after.starts_with(':'), "a attempt id: {text}");
        }
    }
    guard.release().await.unwrap();
}
