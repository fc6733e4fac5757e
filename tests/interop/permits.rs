//! Permits that both sides set, take and give back.

use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bowline::ErrorKind;

use crate::processes::Killed;
use crate::scene::{Scene, eventually, woken};

everywhere! {
    each_side_sees_the_permits_of_the_other,
    java_gets_permits_that_we_release,
    we_get_permits_that_java_releases,
    drains_and_additions_are_exact,
    never_more_are_out_than_there_are,
    permits_of_a_java_that_is_killed_are_lost,
    permits_of_a_process_of_ours_that_is_killed_are_lost,
    an_acquisition_of_ours_that_is_dropped_leaves_java_all_permits,
    what_is_no_semaphore_is_an_error,
}

pub(crate) fn channel(name: &str) -> String {
    if name.contains('{') { format!("redisson_sc:{name}") } else { format!("redisson_sc:{{{name}}}") }
}

async fn each_side_sees_the_permits_of_the_other(scene: &Scene) {
    // The name of a semaphore may have a hash tag.
    for name in ["java:seen:p", "java:{seen}:p"] {
        let semaphore = scene.redisson().semaphore(name);
        let java = |command: &str| {
            let (operation, rest) = command.split_once(' ').unwrap_or((command, ""));
            scene.java.ask("a", format!("semaphore {operation} {name} {rest}").trim_end())
        };
        assert!(semaphore.try_set_permits(5).await.unwrap());
        assert_eq!(java("trySetPermits 9").await.unwrap(), "false");
        assert_eq!(java("availablePermits").await.unwrap(), "5");
        let two = semaphore.acquire_many(2).await.unwrap();
        assert_eq!(java("availablePermits").await.unwrap(), "3");
        assert_eq!(java("tryAcquire 4").await.unwrap(), "false");
        java("acquire 3").await.unwrap();
        assert!(semaphore.try_acquire().await.unwrap().is_none());
        two.release().await.unwrap();
        assert_eq!(java("tryAcquire 2").await.unwrap(), "true");
        java("release 5").await.unwrap();
        assert_eq!(semaphore.available().await.unwrap(), 5);
        java("delete").await.unwrap();
        assert_eq!((semaphore.available().await.unwrap(), semaphore.try_acquire().await.unwrap().is_none()), (0, true));
        assert_eq!(java("trySetPermits 2").await.unwrap(), "true");
        assert!(!semaphore.try_set_permits(1).await.unwrap());
        java("delete").await.unwrap();
    }
}

async fn java_gets_permits_that_we_release(scene: &Scene) {
    let semaphore = scene.redisson().semaphore("java:ours:p");
    assert!(semaphore.try_set_permits(2).await.unwrap());
    for way in 0..4 {
        let both = semaphore.acquire_many(2).await.unwrap();
        let waiting = ["a", "b"].map(|worker| scene.java.ask(worker, "semaphore acquire java:ours:p 1"));
        scene.heard_by(&channel("java:ours:p"), 1).await;
        match way {
            0 => both.release().await.unwrap(),
            1 => drop(both),
            2 => semaphore.release(both.forget()).await.unwrap(),
            _ => semaphore.add_permits(both.forget().try_into().unwrap()).await.unwrap(),
        }
        for waiting in waiting {
            woken("Java gets one", waiting).await.unwrap();
        }
        assert_eq!(semaphore.available().await.unwrap(), 0);
        scene.java.ask("a", "semaphore release java:ours:p 2").await.unwrap();
        scene.heard_by(&channel("java:ours:p"), 0).await;
    }
    // It waits for a semaphore that is set.
    scene.java.ask("a", "semaphore delete java:ours:p").await.unwrap();
    let waiting = scene.java.ask("a", "semaphore acquire java:ours:p 1");
    scene.heard_by(&channel("java:ours:p"), 1).await;
    assert!(semaphore.try_set_permits(1).await.unwrap());
    woken("Java gets one", waiting).await.unwrap();
    scene.java.ask("a", "semaphore delete java:ours:p").await.unwrap();
}

async fn we_get_permits_that_java_releases(scene: &Scene) {
    let semaphore = scene.redisson().semaphore("java:theirs:p");
    assert_eq!(scene.java.ask("a", "semaphore trySetPermits java:theirs:p 3").await.unwrap(), "true");
    for command in ["release java:theirs:p 3", "addPermits java:theirs:p 3"] {
        scene.java.ask("a", "semaphore acquire java:theirs:p 3").await.unwrap();
        let waiting = [1, 2].map(|n| {
            let semaphore = semaphore.clone();
            tokio::spawn(async move { semaphore.acquire_many(n).await })
        });
        scene.heard_by(&channel("java:theirs:p"), 1).await;
        scene.java.ask("a", &format!("semaphore {command}")).await.unwrap();
        for waiting in waiting {
            woken("we get them", waiting).await.unwrap().unwrap().release().await.unwrap();
        }
        scene.heard_by(&channel("java:theirs:p"), 0).await;
    }
    assert_eq!(scene.java.ask("a", "semaphore availablePermits java:theirs:p").await.unwrap(), "3");
    scene.java.ask("a", "semaphore delete java:theirs:p").await.unwrap();
}

async fn drains_and_additions_are_exact(scene: &Scene) {
    let semaphore = scene.redisson().semaphore("java:drained:p");
    let java = |command: &str| scene.java.ask("a", &format!("semaphore {command}"));
    assert!(semaphore.try_set_permits(7).await.unwrap());
    java("acquire java:drained:p 2").await.unwrap();
    assert_eq!(semaphore.drain().await.unwrap().unwrap().forget(), 5);
    assert_eq!(java("drainPermits java:drained:p").await.unwrap(), "0");
    semaphore.release(4).await.unwrap();
    assert_eq!(java("drainPermits java:drained:p").await.unwrap(), "4");
    semaphore.add_permits(6).await.unwrap();
    semaphore.add_permits(-2).await.unwrap();
    assert_eq!(java("availablePermits java:drained:p").await.unwrap(), "4");
    java("delete java:drained:p").await.unwrap();
}

/// Four tasks and four threads share three permits, and note how many are out.
async fn never_more_are_out_than_there_are(scene: &Scene) {
    let semaphore = scene.redisson().semaphore("java:shared:p");
    assert!(semaphore.try_set_permits(3).await.unwrap());
    let out = Arc::new(AtomicU32::new(0));
    let enter = |out: &AtomicU32| assert!(out.fetch_add(1, Ordering::SeqCst) < 3, "more are out than there are");
    let ours: Vec<_> = (0..4)
        .map(|_| {
            let (semaphore, out) = (semaphore.clone(), out.clone());
            tokio::spawn(async move {
                for _ in 0..25 {
                    let permit = semaphore.acquire().await.unwrap();
                    enter(&out);
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    out.fetch_sub(1, Ordering::SeqCst);
                    permit.release().await.unwrap();
                }
            })
        })
        .collect();
    let theirs = (0..4).map(|n| {
        let out = out.clone();
        async move {
            let worker = format!("w{n}");
            for _ in 0..25 {
                scene.java.ask(&worker, "semaphore acquire java:shared:p 1").await.unwrap();
                enter(&out);
                tokio::time::sleep(Duration::from_millis(1)).await;
                out.fetch_sub(1, Ordering::SeqCst);
                scene.java.ask(&worker, "semaphore release java:shared:p 1").await.unwrap();
            }
        }
    });
    futures::future::join_all(theirs).await;
    for ours in ours {
        ours.await.unwrap();
    }
    assert_eq!(semaphore.available().await.unwrap(), 3);
    scene.java.ask("a", "semaphore delete java:shared:p").await.unwrap();
}

async fn permits_of_a_java_that_is_killed_are_lost(scene: &Scene) {
    let semaphore = scene.redisson().semaphore("java:lost:p");
    assert!(semaphore.try_set_permits(2).await.unwrap());
    let mut java = scene.another_java(&[]);
    java.ask("a", "semaphore acquire java:lost:p 2").await.unwrap();
    java.kill();
    let late = semaphore.acquire().timeout(Duration::from_millis(500)).await.unwrap_err();
    assert_eq!(late.kind(), ErrorKind::TimedOut);
    // Until somebody gives as many.
    semaphore.release(2).await.unwrap();
    semaphore.acquire_many(2).await.unwrap().release().await.unwrap();
    scene.java.ask("a", "semaphore delete java:lost:p").await.unwrap();
}

async fn permits_of_a_process_of_ours_that_is_killed_are_lost(scene: &Scene) {
    let semaphore = scene.redisson().semaphore("java:taken:p");
    assert!(semaphore.try_set_permits(2).await.unwrap());
    let child = Killed::start("taker", &scene.url());
    eventually("it has one", async || semaphore.available().await.unwrap() == 1).await;
    drop(child);
    assert_eq!(scene.java.ask("a", "semaphore tryAcquire java:taken:p 2").await.unwrap(), "false");
    scene.java.ask("a", "semaphore release java:taken:p 1").await.unwrap();
    assert_eq!(scene.java.ask("a", "semaphore tryAcquire java:taken:p 2").await.unwrap(), "true");
    scene.java.ask("a", "semaphore delete java:taken:p").await.unwrap();
}

async fn an_acquisition_of_ours_that_is_dropped_leaves_java_all_permits(scene: &Scene) {
    let semaphore = scene.redisson().semaphore("java:dropped:p");
    assert!(semaphore.try_set_permits(1).await.unwrap());
    for n in 0..40_u64 {
        let acquire = semaphore.acquire().into_future();
        drop(tokio::time::timeout(Duration::from_micros(n * 50), acquire).await);
        woken("Java gets it", scene.java.ask("a", "semaphore acquire java:dropped:p 1")).await.unwrap();
        scene.java.ask("a", "semaphore release java:dropped:p 1").await.unwrap();
    }
    assert_eq!(semaphore.available().await.unwrap(), 1);
    scene.java.ask("a", "semaphore delete java:dropped:p").await.unwrap();
}

async fn what_is_no_semaphore_is_an_error(scene: &Scene) {
    scene.java.ask("a", "lock lock java:wrong:p 20000").await.unwrap();
    let semaphore = scene.redisson().semaphore("java:wrong:p");
    let errors = [
        semaphore.try_set_permits(1).await.map(drop),
        semaphore.acquire().await.map(drop),
        semaphore.try_acquire().await.map(drop),
        semaphore.release(1).await,
        semaphore.available().await.map(drop),
    ];
    for error in errors {
        assert_eq!(error.unwrap_err().kind(), ErrorKind::WrongType);
    }
    scene.java.ask("a", "lock unlock java:wrong:p").await.unwrap();
}
