//! One lock with Java: bowline beside the real Redisson, which `interop/java` drives. `scripts/interop` builds that
//! program and runs this suite; without it (`BOWLINE_JAVA` is not set) the tests say that they were skipped.
#![cfg(feature = "tokio")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests panic, and have clocks and threads of their own"
)]

use bowline_testkit as support;

#[macro_use]
mod everywhere;

mod changes;
mod contention;
mod ends;
mod java;
mod latches;
mod permits;
mod processes;
mod scene;
mod taking_turns;
mod timed;

use scene::Scene;

async fn all(scene: &Scene) {
    taking_turns::all(scene).await;
    ends::all(scene).await;
    contention::all(scene).await;
    processes::all(scene).await;
    latches::all(scene).await;
    permits::all(scene).await;
    timed::all(scene).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_sentinels() {
    if let Some(scene) = Scene::sentinels().await {
        all(&scene).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_cluster() {
    if let Some(scene) = Scene::cluster().await {
        all(&scene).await;
    }
}

/// Redisson's own scripts would fail with `CROSSSLOT` there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_redisson_cannot_release_in_a_cluster_are_refused() {
    let Some(scene) = Scene::cluster().await else { return };
    for name in ["a}b", "}a", "{}a", "a{}b", "a{b"] {
        let refused = scene.redisson().lock(name).try_lock().await.unwrap_err();
        assert_eq!(refused.kind(), bowline::ErrorKind::InvalidInput, "{name}: {refused}");
        let refused = scene.redisson().fenced_lock(name).lock().await.unwrap_err();
        assert_eq!(refused.kind(), bowline::ErrorKind::InvalidInput, "{name}: {refused}");
        // What Java does with it: the lock cannot be released.
        scene.java.ask("a", &format!("lock lock {name} 1000")).await.unwrap();
        let error = scene.java.ask("a", &format!("lock unlock {name}")).await.unwrap_err();
        assert!(error.contains("CROSSSLOT"), "{name}: {error}");
    }
    for name in ["a}b", "}a", "{}a", "a{}b", "a{b"] {
        let refused = scene.redisson().semaphore(name).try_acquire().await.unwrap_err();
        assert_eq!(refused.kind(), bowline::ErrorKind::InvalidInput, "{name}: {refused}");
        let error = scene.java.ask("a", &format!("semaphore release {name} 1")).await.unwrap_err();
        assert!(error.contains("CROSSSLOT"), "{name}: {error}");
        let timed = scene.redisson().permit_semaphore(name);
        let id = "0123456789abcdef0123456789abcdef";
        for refused in [
            timed.try_acquire().await.map(drop),
            timed.set_permits(1).await,
            timed.release_id(id).await.map(drop),
            timed.inspect().await.map(drop),
        ] {
            let refused = refused.unwrap_err();
            assert_eq!(refused.kind(), bowline::ErrorKind::InvalidInput, "{name}: {refused}");
        }
        let error = scene.java.ask("a", &format!("permits tryAcquire {name}")).await.unwrap_err();
        assert!(error.contains("CROSSSLOT"), "{name}: {error}");
    }
    // Redisson puts braces around the name of a latch in any case.
    let latch = scene.redisson().count_down_latch("java:l{b");
    assert!(latch.try_set_count(1).await.unwrap());
    assert_eq!(scene.java.ask("a", "latch trySetCount java:l{b 1").await.unwrap(), "false");
    assert_eq!(latch.count_down().await.unwrap(), 0);
    for name in ["a}b", "}a", "{}a", "a{}b", "b{x}c"] {
        let latch = scene.redisson().count_down_latch(name);
        for refused in [latch.try_set_count(1).await.map(drop), latch.count().await.map(drop), latch.wait().await] {
            let refused = refused.unwrap_err();
            assert_eq!(refused.kind(), bowline::ErrorKind::InvalidInput, "{name}: {refused}");
        }
        let error = scene.java.ask("a", &format!("latch trySetCount {name} 1")).await.unwrap_err();
        assert!(error.contains("CROSSSLOT"), "{name}: {error}");
    }
    let guard = scene.redisson().lock("a{b}c").lock().await.unwrap();
    assert_eq!(scene.java.ask("a", "lock tryLock a{b}c").await.unwrap(), "false");
    guard.release().await.unwrap();
}

/// A process of its own, which a test kills: see `processes`.
#[tokio::test]
async fn holder() {
    processes::hold_until_killed().await;
}

/// As [`holder`].
#[tokio::test]
async fn counter() {
    processes::count_until_killed().await;
}

/// As [`holder`].
#[tokio::test]
async fn taker() {
    processes::take_until_killed().await;
}

/// As [`holder`].
#[tokio::test]
async fn renewer() {
    processes::renew_until_killed().await;
}
