//! Latches that both sides set, count down and wait for.

use std::future::IntoFuture;
use std::time::Duration;

use bowline::ErrorKind;

use crate::processes::Killed;
use crate::scene::{Scene, eventually, woken};

everywhere! {
    each_side_sees_the_count_of_the_other,
    java_is_let_through_by_us,
    we_are_let_through_by_java,
    java_waits_for_a_new_count,
    calls_of_both_sides_count_once,
    a_java_that_is_killed_leaves_the_latch_as_it_is,
    a_process_of_ours_that_is_killed_counts_no_more,
    what_is_no_count_is_an_error,
}

async fn each_side_sees_the_count_of_the_other(scene: &Scene) {
    let latch = scene.redisson().count_down_latch("java:seen");
    let java = |command: &str| scene.java.ask("a", &format!("latch {command}"));
    assert!(latch.try_set_count(3).await.unwrap());
    assert_eq!(java("getCount java:seen").await.unwrap(), "3");
    assert_eq!(java("trySetCount java:seen 5").await.unwrap(), "false");
    java("countDown java:seen").await.unwrap();
    assert_eq!((latch.count().await.unwrap(), latch.count_down().await.unwrap()), (2, 1));
    assert_eq!(java("await java:seen 100").await.unwrap(), "false");
    java("countDown java:seen").await.unwrap();
    assert_eq!((latch.count().await.unwrap(), latch.count_down().await.unwrap()), (0, 0));
    assert_eq!(java("trySetCount java:seen 2").await.unwrap(), "true");
    assert!(!latch.try_set_count(9).await.unwrap());
    assert_eq!((latch.count_down().await.unwrap(), latch.count_down().await.unwrap()), (1, 0));
    assert_eq!(java("getCount java:seen").await.unwrap(), "0");
    assert_eq!(java("await java:seen 100").await.unwrap(), "true");
}

/// Where Java subscribes, it sleeps until the message.
async fn java_is_let_through_by_us(scene: &Scene) {
    let latch = scene.redisson().count_down_latch("java:ours");
    for _ in 0..3 {
        assert!(latch.try_set_count(2).await.unwrap());
        let waiting = ["a", "b"].map(|worker| scene.java.ask(worker, "latch await java:ours"));
        scene.heard_by(&channel("java:ours"), 1).await;
        assert_eq!((latch.count_down().await.unwrap(), latch.count_down().await.unwrap()), (1, 0));
        for waiting in waiting {
            woken("Java is let through", waiting).await.unwrap();
        }
        scene.heard_by(&channel("java:ours"), 0).await;
    }
}

async fn we_are_let_through_by_java(scene: &Scene) {
    let latch = scene.redisson().count_down_latch("java:theirs");
    for _ in 0..3 {
        assert_eq!(scene.java.ask("a", "latch trySetCount java:theirs 1").await.unwrap(), "true");
        let waiting = tokio::spawn({
            let latch = latch.clone();
            async move { latch.wait().await }
        });
        scene.heard_by(&channel("java:theirs"), 1).await;
        scene.java.ask("a", "latch countDown java:theirs").await.unwrap();
        woken("we are let through", waiting).await.unwrap().unwrap();
        scene.heard_by(&channel("java:theirs"), 0).await;
    }
}

/// A thread that waits while the latch is open and set again: Redisson closes its own gate by our message.
async fn java_waits_for_a_new_count(scene: &Scene) {
    let latch = scene.redisson().count_down_latch("java:again");
    assert!(latch.try_set_count(1).await.unwrap());
    let first = scene.java.ask("a", "latch await java:again");
    scene.heard_by(&channel("java:again"), 1).await;
    assert_eq!(latch.count_down().await.unwrap(), 0);
    assert!(latch.try_set_count(1).await.unwrap());
    let second = scene.java.ask("b", "latch await java:again 300");
    assert_eq!(second.await.unwrap(), "false", "it waits for the new count");
    assert_eq!(latch.count_down().await.unwrap(), 0);
    woken("Java is let through", first).await.unwrap();
}

async fn calls_of_both_sides_count_once(scene: &Scene) {
    let latch = scene.redisson().count_down_latch("java:many");
    assert!(latch.try_set_count(400).await.unwrap());
    let waiting = scene.java.ask("waiter", "latch await java:many");
    let ours = (0..4).map(|_| {
        let latch = latch.clone();
        tokio::spawn(async move {
            for _ in 0..50 {
                latch.count_down().await.unwrap();
            }
        })
    });
    let ours: Vec<_> = ours.collect();
    let theirs: Vec<_> =
        (0..200).map(|n| scene.java.ask(&format!("w{}", n % 4), "latch countDown java:many")).collect();
    for ours in ours {
        ours.await.unwrap();
    }
    for theirs in theirs {
        theirs.await.unwrap();
    }
    woken("all have counted", waiting).await.unwrap();
    woken("all have counted", latch.wait().into_future()).await.unwrap();
    assert_eq!(latch.count().await.unwrap(), 0);
}

async fn a_java_that_is_killed_leaves_the_latch_as_it_is(scene: &Scene) {
    let mut java = scene.another_java(&[]);
    assert_eq!(java.ask("a", "latch trySetCount java:killed 2").await.unwrap(), "true");
    java.ask("a", "latch countDown java:killed").await.unwrap();
    java.kill();
    let latch = scene.redisson().count_down_latch("java:killed");
    assert_eq!(latch.wait().timeout(Duration::from_millis(300)).await.unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!((latch.count().await.unwrap(), latch.count_down().await.unwrap()), (1, 0));
}

/// It counts down until it is killed, and each number is there once.
async fn a_process_of_ours_that_is_killed_counts_no_more(scene: &Scene) {
    let latch = scene.redisson().count_down_latch("java:counted");
    assert!(latch.try_set_count(u32::MAX).await.unwrap());
    let child = Killed::start("counter", &scene.url());
    let begun = async || latch.count().await.unwrap() < u64::from(u32::MAX) - 20;
    eventually("it counts", begun).await;
    drop(child);
    let left = latch.count().await.unwrap();
    assert_eq!(scene.java.ask("a", "latch getCount java:counted").await.unwrap(), left.to_string());
    assert_eq!(latch.count_down().await.unwrap(), left - 1);
    scene.java.ask("a", "latch delete java:counted").await.unwrap();
}

async fn what_is_no_count_is_an_error(scene: &Scene) {
    scene.java.ask("a", "lock lock java:wrong 20000").await.unwrap();
    let latch = scene.redisson().count_down_latch("java:wrong");
    assert_eq!(latch.try_set_count(1).await.unwrap_err().kind(), ErrorKind::WrongType);
    assert_eq!(latch.count_down().await.unwrap_err().kind(), ErrorKind::WrongType);
    assert_eq!(latch.wait().await.unwrap_err().kind(), ErrorKind::WrongType);
    scene.java.ask("a", "lock unlock java:wrong").await.unwrap();
    // The other way round.
    assert!(latch.try_set_count(1).await.unwrap());
    let lock = scene.redisson().lock("java:wrong").try_lock().await.unwrap_err();
    assert_eq!(lock.kind(), ErrorKind::WrongType);
    assert_eq!(latch.count_down().await.unwrap(), 0);
}

fn channel(name: &str) -> String {
    format!("redisson_countdownlatch__channel__{{{name}}}")
}
