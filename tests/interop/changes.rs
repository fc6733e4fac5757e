//! The server changes while one side holds and the other one waits: a failover, a slot that moves.

use std::future::IntoFuture;

use futures::future::BoxFuture;

use crate::scene::{LEASE, Scene, WOKEN, within, woken};

/// A lock and a permit: what Java releases after the change, at the new master, we get by a message. Our subscriptions
/// were made at the old one.
async fn we_wait_through(scene: &Scene, change: impl FnOnce(&Scene)) {
    scene.java.ask("a", "lock lock {java:c}:l").await.unwrap();
    let semaphore = scene.redisson().permit_semaphore("{java:c}:p");
    semaphore.set_permits(1).await.unwrap();
    let id = scene.java.ask("b", "permits acquire {java:c}:p 60000").await.unwrap();
    let lock = scene.redisson().lock("{java:c}:l");
    let waiting =
        tokio::spawn(async move { futures::join!(lock.lock().into_future(), semaphore.acquire().into_future()) });
    scene.listened_to("{java:c}:l", 1).await;
    scene.heard_by("redisson_sc:{java:c}:p", 1).await;
    change(scene);
    scene.listened_to("{java:c}:l", 1).await;
    scene.heard_by("redisson_sc:{java:c}:p", 1).await;
    asked_until_done(scene, "a", "lock unlock {java:c}:l").await;
    asked_until_done(scene, "b", &format!("permits release {{java:c}}:p {id}")).await;
    let (guard, permit) = woken("we get both", waiting).await.unwrap();
    let (guard, permit) = (guard.unwrap(), permit.unwrap());
    assert_eq!(scene.java.ask("a", "lock tryLock {java:c}:l").await.unwrap(), "false");
    assert_eq!(scene.java.ask("a", "permits tryAcquire {java:c}:p").await.unwrap(), "null");
    guard.release().await.unwrap();
    permit.release().await.unwrap();
    scene.java.ask("a", "permits delete {java:c}:p").await.unwrap();
}

/// The reverse. `is_woken`: Redisson subscribes the channels at the new master. If it does not, Java has what it waits
/// for when the lease has passed of which it has heard last.
async fn java_waits_through(scene: &Scene, change: impl FnOnce(&Scene), is_woken: bool) {
    let semaphore = scene.redisson().permit_semaphore("{java:c}:p");
    semaphore.set_permits(1).await.unwrap();
    let guard = scene.redisson().lock("{java:c}:l").lock().await.unwrap();
    let permit = semaphore.acquire().await.unwrap();
    let waiting: [BoxFuture<'_, _>; 2] =
        [scene.java.ask("a", "lock lock {java:c}:l 60000"), scene.java.ask("b", "permits acquire {java:c}:p 60000")];
    scene.listened_to("{java:c}:l", 1).await;
    scene.heard_by("redisson_sc:{java:c}:p", 1).await;
    change(scene);
    if is_woken {
        scene.listened_to("{java:c}:l", 1).await;
        scene.heard_by("redisson_sc:{java:c}:p", 1).await;
    }
    assert!(guard.is_valid() && permit.is_valid());
    guard.release().await.unwrap();
    permit.release().await.unwrap();
    let limit = if is_woken { WOKEN } else { LEASE + WOKEN };
    for waiting in waiting {
        within(limit, "Java gets it", waiting).await.unwrap();
    }
    assert!(scene.redisson().lock("{java:c}:l").try_lock().await.unwrap().is_none());
    assert!(semaphore.try_acquire().await.unwrap().is_none());
    scene.java.ask("a", "lock unlock {java:c}:l").await.unwrap();
    scene.java.ask("a", "permits delete {java:c}:p").await.unwrap();
}

/// A command may meet the old master.
async fn asked_until_done(scene: &Scene, worker: &str, command: &str) {
    let start = std::time::Instant::now();
    while let Err(error) = scene.java.ask(worker, command).await {
        // What was executed without an answer is done.
        if error.starts_with("IllegalMonitorState") || error.starts_with("IllegalArgument") {
            return;
        }
        assert!(start.elapsed() < LEASE, "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_while_we_wait() {
    let Some(scene) = Scene::sentinels().await else { return };
    we_wait_through(&scene, Scene::fail_over).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_while_java_waits() {
    let Some(scene) = Scene::sentinels().await else { return };
    java_waits_through(&scene, Scene::fail_over, true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_that_moves_while_we_wait() {
    let Some(scene) = Scene::cluster().await else { return };
    we_wait_through(&scene, |scene| scene.move_slot("{java:c}:l")).await;
}

/// Redisson 4.7.0 makes no subscription to a shard channel at the master to which its slot has moved.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_that_moves_while_java_waits() {
    let Some(scene) = Scene::cluster().await else { return };
    java_waits_through(&scene, |scene| scene.move_slot("{java:c}:l"), !scene.has_shard_channels()).await;
}
