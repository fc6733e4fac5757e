//! Holds that end otherwise than by the release of their owner.

use std::time::Duration;

use bowline::{ErrorKind, Loss};

use crate::scene::{LEASE, Scene, within, woken};

everywhere! {
    a_lease_of_either_ends_for_the_other,
    the_wrong_side_cannot_release,
    either_takes_the_lock_by_force,
}

async fn a_lease_of_either_ends_for_the_other(scene: &Scene) {
    let lock = scene.redisson().lock("ends");
    let short = Duration::from_secs(1);
    lock.lock().expires_after(short).await.unwrap().keep().unwrap();
    within(LEASE / 3, "our lease has ended", scene.java.ask("a", "lock lock ends 1000")).await.unwrap();
    let guard = within(LEASE / 3, "Java's lease has ended", lock.lock().into_future()).await.unwrap();
    guard.release().await.unwrap();
}

async fn the_wrong_side_cannot_release(scene: &Scene) {
    let lock = scene.redisson().lock("wrong");
    let guard = lock.lock().await.unwrap();
    let error = scene.java.ask("a", "lock unlock wrong").await.unwrap_err();
    assert!(error.starts_with("IllegalMonitorStateException"), "{error}");
    assert!(lock.try_lock().await.unwrap().is_none());
    guard.release().await.unwrap();
    // Our lease ends, and Java holds.
    let late = lock.lock().expires_after(Duration::from_millis(500)).await.unwrap();
    within(LEASE / 3, "our lease has ended", scene.java.ask("a", "lock lock wrong")).await.unwrap();
    assert_eq!(late.release().await.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(scene.java.ask("a", "lock isHeldByThread wrong").await.unwrap(), "true");
    scene.java.ask("a", "lock unlock wrong").await.unwrap();
}

async fn either_takes_the_lock_by_force(scene: &Scene) {
    let lock = scene.redisson().lock("force");
    let guard = lock.lock().await.unwrap();
    assert_eq!(scene.java.ask("a", "lock forceUnlock force").await.unwrap(), "true");
    assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
    // The watchdog finds out before the holder looks.
    let guard = lock.lock().lease(Duration::from_secs(2)).await.unwrap();
    assert_eq!(scene.java.ask("a", "lock forceUnlock force").await.unwrap(), "true");
    assert_eq!(woken("the loss is told", guard.lost()).await, Loss::Gone);
    scene.java.ask("a", "lock lock force").await.unwrap();
    assert!(lock.force_release().await.unwrap());
    let error = scene.java.ask("a", "lock unlock force").await.unwrap_err();
    assert!(error.starts_with("IllegalMonitorStateException"), "{error}");
    lock.try_lock().await.unwrap().unwrap().release().await.unwrap();
    assert_eq!(scene.java.ask("a", "lock forceUnlock force").await.unwrap(), "false");
}
