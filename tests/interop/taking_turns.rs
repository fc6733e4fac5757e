//! The two sides exclude and wake each other.

use std::time::Duration;

use bowline::Holder;

use crate::scene::{LEASE, Scene, woken};

everywhere! {
    each_side_keeps_the_other_out,
    java_is_woken_by_our_release,
    we_are_woken_by_a_release_of_java,
    both_watchdogs_keep_their_holds,
    names_are_those_of_java,
    tokens_are_in_one_order,
}

async fn each_side_keeps_the_other_out(scene: &Scene) {
    let lock = scene.redisson().lock("turns");
    let java = |command: &str| scene.java.ask("a", &format!("lock {command} turns"));
    // Re-entry is counted on each side for itself.
    let holder = Holder::new();
    let guard = lock.lock().holder(&holder).await.unwrap();
    let again = lock.lock().holder(&holder).await.unwrap();
    assert_eq!(java("tryLock").await.unwrap(), "false");
    let waited = scene.java.ask("a", "lock tryLock turns 300");
    assert_eq!(waited.await.unwrap(), "false");
    // Without a time to wait, Redisson 4.7.0 waits for the lock here.
    assert_eq!(scene.java.ask("a", "fenced tryLockAndGetToken turns 100").await.unwrap(), "null");
    assert_eq!(java("isLocked").await.unwrap(), "true");
    assert_eq!(java("isHeldByThread").await.unwrap(), "false");
    let left: u128 = java("remainTimeToLive").await.unwrap().parse().unwrap();
    assert!(left > 0 && left <= LEASE.as_millis());
    guard.release().await.unwrap();
    assert_eq!(java("tryLock").await.unwrap(), "false");
    again.release().await.unwrap();

    assert_eq!(java("tryLock").await.unwrap(), "true");
    java("lock").await.unwrap();
    assert!(lock.try_lock().await.unwrap().is_none());
    let holder = lock.inspect().await.unwrap().holder.unwrap();
    assert_eq!((holder.owner, holder.entries), (scene.java.owner("a").await, 2));
    assert!(holder.remaining.unwrap() <= LEASE);
    java("unlock").await.unwrap();
    assert!(lock.try_lock().await.unwrap().is_none(), "Java has entered twice");
    java("unlock").await.unwrap();
    lock.try_lock().await.unwrap().unwrap().release().await.unwrap();
    assert_eq!(java("isLocked").await.unwrap(), "false");
}

async fn java_is_woken_by_our_release(scene: &Scene) {
    let lock = scene.redisson().lock("wake:java");
    for way in 0..3 {
        let guard = lock.lock().await.unwrap();
        let waiting = scene.java.ask("a", "lock lock wake:java");
        scene.listened_to("wake:java", 1).await;
        match way {
            0 => guard.release().await.unwrap(),
            1 => drop(guard),
            // The next member of a cohort would have it, and there is none.
            _ => lock.clone().force_release().await.map(drop).unwrap(),
        }
        woken("Java is woken", waiting).await.unwrap();
        assert!(lock.try_lock().await.unwrap().is_none());
        scene.java.ask("a", "lock unlock wake:java").await.unwrap();
        scene.listened_to("wake:java", 0).await;
    }
}

async fn we_are_woken_by_a_release_of_java(scene: &Scene) {
    let lock = scene.redisson().lock("wake:us");
    for command in ["unlock", "forceUnlock", "unlock"] {
        scene.java.ask("a", "lock lock wake:us").await.unwrap();
        let waiting = tokio::spawn({
            let lock = lock.clone();
            async move { lock.lock().await }
        });
        scene.listened_to("wake:us", 1).await;
        scene.java.ask("a", &format!("lock {command} wake:us")).await.unwrap();
        let guard = woken("we are woken", waiting).await.unwrap().unwrap();
        assert_eq!(scene.java.ask("a", "lock tryLock wake:us").await.unwrap(), "false");
        guard.release().await.unwrap();
        scene.listened_to("wake:us", 0).await;
    }
}

/// Both hold for several leases.
async fn both_watchdogs_keep_their_holds(scene: &Scene) {
    let lease = Duration::from_secs(2);
    let (client, java) = (scene.client(lease).await, scene.another_java(&["watchdog=2000"]));
    let guard = client.redisson().lock("ours").lock().await.unwrap();
    java.ask("a", "lock lock javas").await.unwrap();
    for _ in 0..10 {
        tokio::time::sleep(lease / 4).await;
        assert!(guard.is_valid());
        assert_eq!(java.ask("b", "lock tryLock ours").await.unwrap(), "false");
        assert!(client.redisson().lock("javas").try_lock().await.unwrap().is_none());
    }
    guard.release().await.unwrap();
    java.ask("a", "lock unlock javas").await.unwrap();
    assert_eq!(java.ask("b", "lock tryLock ours").await.unwrap(), "true");
    java.ask("b", "lock unlock ours").await.unwrap();
    client.redisson().lock("javas").try_lock().await.unwrap().unwrap().release().await.unwrap();
}

async fn names_are_those_of_java(scene: &Scene) {
    let mapped = scene.another_java(&["prefix=shop:"]);
    for name in ["orders:42", "a{b}c", "%7B"] {
        let guard = scene.redisson().lock(name).lock().await.unwrap();
        assert_eq!(scene.java.ask("a", &format!("lock tryLock {name}")).await.unwrap(), "false", "{name}");
        assert_eq!(mapped.ask("a", &format!("lock tryLock {name}")).await.unwrap(), "true", "{name}");
        let shop = scene.redisson().map_names(|name| format!("shop:{name}"));
        assert!(shop.lock(name).try_lock().await.unwrap().is_none());
        mapped.ask("a", &format!("lock unlock {name}")).await.unwrap();
        guard.release().await.unwrap();
    }
}

async fn tokens_are_in_one_order(scene: &Scene) {
    let lock = scene.redisson().fenced_lock("tokens");
    let mut last = 0;
    for _ in 0..5 {
        let guard = lock.lock().await.unwrap();
        assert_eq!(scene.java.ask("a", "fenced getToken tokens").await.unwrap(), guard.token().to_string());
        assert_eq!(guard.token().get(), last + 1);
        guard.release().await.unwrap();
        let token: u64 = scene.java.ask("a", "fenced lockAndGetToken tokens").await.unwrap().parse().unwrap();
        assert_eq!(token, last + 2);
        assert!(lock.try_lock().await.unwrap().is_none());
        scene.java.ask("a", "fenced unlock tokens").await.unwrap();
        last = token;
    }
}
