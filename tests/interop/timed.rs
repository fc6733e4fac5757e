//! Permits with leases that both sides set, take, prolong and give back.

use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bowline::{ErrorKind, Loss, RedissonPermitSemaphore};

use crate::permits::channel;
use crate::processes::{Killed, SHORT};
use crate::scene::{LEASE, Scene, eventually, within, woken};

everywhere! {
    each_side_sees_the_leases_of_the_other,
    java_gets_permits_with_leases_that_we_give_back,
    we_get_permits_with_leases_that_java_gives_back,
    a_lease_of_either_ends_for_the_other,
    our_watchdog_keeps_a_permit_that_java_wants,
    each_side_gives_back_what_the_other_has_by_its_id,
    a_permit_of_ours_is_handed_over_to_java,
    never_more_with_leases_are_out_than_there_are,
    what_a_java_that_is_killed_had_comes_back_with_its_lease_or_by_its_id,
    what_a_process_of_ours_that_is_killed_had_comes_back_with_its_lease,
    an_acquisition_with_a_lease_that_is_dropped_leaves_java_all_permits,
    what_is_no_such_semaphore_is_an_error,
}

/// A semaphore with so many permits, and Java's commands for it.
async fn begun<'a>(scene: &'a Scene, name: &'static str, permits: u32) -> (RedissonPermitSemaphore, Java<'a>) {
    let semaphore = scene.redisson().permit_semaphore(name);
    assert!(semaphore.try_set_permits(permits).await.unwrap());
    (semaphore, Java { scene, name })
}

struct Java<'a> {
    scene: &'a Scene,
    name: &'static str,
}

impl Java<'_> {
    fn begins(&self, worker: &str, command: &str) -> futures::future::BoxFuture<'static, Result<String, String>> {
        let (operation, rest) = command.split_once(' ').unwrap_or((command, ""));
        self.scene.java.ask(worker, format!("permits {operation} {} {rest}", self.name).trim_end())
    }

    async fn ask(&self, command: &str) -> String {
        self.begins("a", command).await.unwrap()
    }

    /// How many are free and how many are taken.
    async fn counts(&self) -> (u64, u64) {
        let [free, taken] = ["availablePermits", "acquiredPermits"].map(|command| self.begins("a", command));
        (free.await.unwrap().parse().unwrap(), taken.await.unwrap().parse().unwrap())
    }

    async fn ends(self) {
        self.ask("delete").await;
    }
}

async fn counts(semaphore: &RedissonPermitSemaphore) -> (u64, u64) {
    (semaphore.available().await.unwrap(), semaphore.acquired().await.unwrap())
}

async fn each_side_sees_the_leases_of_the_other(scene: &Scene) {
    // The name may have a hash tag.
    for name in ["java:seen:t", "java:{seen}:t"] {
        let (semaphore, java) = begun(scene, name, 3).await;
        assert_eq!(java.ask("trySetPermits 9").await, "false");
        let ours = semaphore.acquire().await.unwrap();
        assert_eq!((java.counts().await, counts(&semaphore).await), ((2, 1), (2, 1)));
        let left: u128 = java.ask(&format!("getLeaseTime {}", ours.id())).await.parse().unwrap();
        assert!(left > 0 && left <= LEASE.as_millis(), "{left}");
        let with_lease = java.ask("acquire 20000").await;
        let for_ever = java.ask("acquire").await;
        assert_eq!((java.counts().await, counts(&semaphore).await), ((0, 3), (0, 3)));
        assert!(semaphore.try_acquire().await.unwrap().is_none());
        assert_eq!(java.ask("tryAcquire").await, "null");
        let state = semaphore.inspect().await.unwrap();
        let rest_of = |id: &str| state.permits.iter().find(|permit| permit.id == id).unwrap().remaining;
        assert!((1..=20_000).contains(&rest_of(&with_lease).unwrap().as_millis()));
        assert_eq!(rest_of(&for_ever), None);
        assert!(rest_of(&ours.id()).unwrap() > LEASE / 3);
        // Java prolongs and gives back its own.
        assert_eq!(java.ask(&format!("updateLeaseTime {with_lease} 90000")).await, "true");
        let state = semaphore.inspect().await.unwrap();
        assert!(state.permits.iter().any(|permit| permit.remaining.is_some_and(|rest| rest > 2 * LEASE)));
        for id in [&with_lease, &for_ever] {
            java.ask(&format!("release {id}")).await;
        }
        ours.release().await.unwrap();
        assert_eq!((java.counts().await, counts(&semaphore).await), ((3, 0), (3, 0)));
        // Both count the taken ones in when they set the number.
        let ours = semaphore.acquire().await.unwrap();
        java.ask("setPermits 5").await;
        assert_eq!(counts(&semaphore).await, (4, 1));
        semaphore.set_permits(2).await.unwrap();
        java.ask("addPermits 2").await;
        semaphore.add_permits(-1).await.unwrap();
        assert_eq!(java.counts().await, (2, 1));
        ours.release().await.unwrap();
        assert_eq!(java.ask("delete").await, "true");
        assert_eq!((counts(&semaphore).await, semaphore.try_acquire().await.unwrap().is_none()), ((0, 0), true));
        assert_eq!(java.ask("trySetPermits 1").await, "true");
        assert!(!semaphore.try_set_permits(7).await.unwrap());
        semaphore.acquire().await.unwrap().release().await.unwrap();
        java.ends().await;
    }
}

async fn java_gets_permits_with_leases_that_we_give_back(scene: &Scene) {
    let (semaphore, java) = begun(scene, "java:ours:t", 1).await;
    for way in 0..5 {
        let mut ours = Some(semaphore.acquire().await.unwrap());
        let waiting = java.begins("a", "acquire 60000");
        scene.heard_by(&channel("java:ours:t"), 1).await;
        match way {
            0 => ours.take().unwrap().release().await.unwrap(),
            1 => drop(ours.take()),
            2 => assert!(semaphore.release_id(&ours.take().unwrap().id()).await.unwrap()),
            3 => semaphore.set_permits(2).await.unwrap(),
            _ => semaphore.add_permits(1).await.unwrap(),
        }
        let id = woken("Java gets it", waiting).await.unwrap();
        java.ask(&format!("release {id}")).await;
        if let Some(ours) = ours {
            ours.release().await.unwrap();
            semaphore.add_permits(-1).await.unwrap();
        }
        scene.heard_by(&channel("java:ours:t"), 0).await;
    }
    // It waits for a semaphore that is set.
    java.ask("delete").await;
    let waiting = java.begins("a", "acquire 60000");
    scene.heard_by(&channel("java:ours:t"), 1).await;
    assert!(semaphore.try_set_permits(1).await.unwrap());
    woken("Java gets it", waiting).await.unwrap();
    java.ends().await;
}

async fn we_get_permits_with_leases_that_java_gives_back(scene: &Scene) {
    let (semaphore, java) = begun(scene, "java:theirs:t", 1).await;
    for way in ["release", "tryRelease", "setPermits 2", "addPermits 1"] {
        // Without a lease, so that nothing but a message and a third of our lease wakes us.
        let id = java.ask("acquire").await;
        let client = scene.client(20 * LEASE).await;
        let ours = client.redisson().permit_semaphore(java.name);
        let waiting = tokio::spawn(async move { ours.acquire().await });
        scene.heard_by(&channel("java:theirs:t"), 1).await;
        let has_number = way.contains(' ');
        java.ask(if has_number { way.to_owned() } else { format!("{way} {id}") }.as_str()).await;
        woken("we get it", waiting).await.unwrap().unwrap().release().await.unwrap();
        if has_number {
            java.ask(&format!("release {id}")).await;
            java.ask("setPermits 1").await;
        }
        client.close().await;
        scene.heard_by(&channel("java:theirs:t"), 0).await;
    }
    assert_eq!(counts(&semaphore).await, (1, 0));
    java.ends().await;
}

async fn a_lease_of_either_ends_for_the_other(scene: &Scene) {
    let (semaphore, java) = begun(scene, "java:ends:t", 1).await;
    let short = Duration::from_secs(1);
    semaphore.acquire().expires_after(short).await.unwrap().keep().unwrap();
    let id = within(LEASE / 3, "our lease has ended", java.begins("a", "acquire 1000")).await.unwrap();
    let ours = within(LEASE / 3, "Java's lease has ended", semaphore.acquire().into_future()).await.unwrap();
    assert_eq!(java.ask(&format!("tryRelease {id}")).await, "false");
    assert_eq!((java.counts().await, counts(&semaphore).await), ((0, 1), (0, 1)));
    // A look of Java gives back what is over, too.
    ours.release().await.unwrap();
    let late = semaphore.acquire().expires_after(short).await.unwrap();
    eventually("our lease has ended", async || java.counts().await == (1, 0)).await;
    assert_eq!(late.release().await.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(counts(&semaphore).await, (1, 0));
    java.ends().await;
}

async fn our_watchdog_keeps_a_permit_that_java_wants(scene: &Scene) {
    let (_, java) = begun(scene, "java:renewed:t", 1).await;
    let lease = Duration::from_secs(2);
    let client = scene.client(lease).await;
    let ours = client.redisson().permit_semaphore(java.name).acquire().await.unwrap();
    let waiting = java.begins("w", "acquire 60000");
    for _ in 0..10 {
        tokio::time::sleep(lease / 4).await;
        assert!(ours.is_valid());
        assert_eq!(java.ask("tryAcquire").await, "null");
    }
    ours.release().await.unwrap();
    woken("Java gets it", waiting).await.unwrap();
    java.ends().await;
}

async fn each_side_gives_back_what_the_other_has_by_its_id(scene: &Scene) {
    let (semaphore, java) = begun(scene, "java:ids:t", 1).await;
    let id = java.ask("acquire").await;
    assert!(semaphore.release_id(&id).await.unwrap());
    assert!(!semaphore.release_id(&id).await.unwrap());
    let error = java.begins("a", &format!("release {id}")).await.unwrap_err();
    assert!(error.starts_with("IllegalArgumentException"), "{error}");
    let ours = semaphore.acquire().await.unwrap();
    java.ask(&format!("release {}", ours.id())).await;
    let theirs = java.ask("acquire 60000").await;
    assert_eq!(ours.release().await.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(counts(&semaphore).await, (0, 1), "the late release frees nothing");
    java.ask(&format!("release {theirs}")).await;
    // The watchdog finds out before the holder looks.
    let ours = semaphore.acquire().lease(Duration::from_secs(2)).await.unwrap();
    java.ask(&format!("release {}", ours.id())).await;
    assert_eq!(woken("the loss is told", ours.lost()).await, Loss::Gone);
    java.ends().await;
}

async fn a_permit_of_ours_is_handed_over_to_java(scene: &Scene) {
    let (semaphore, java) = begun(scene, "java:given:t", 1).await;
    let client = scene.client(LEASE).await;
    let ours = client.redisson().permit_semaphore(java.name).acquire().expires_after(LEASE).await.unwrap();
    let id = ours.id();
    ours.keep().unwrap();
    client.close().await;
    assert_eq!(java.ask(&format!("updateLeaseTime {id} 90000")).await, "true");
    assert!(semaphore.inspect().await.unwrap().permits[0].remaining.unwrap() > 2 * LEASE);
    assert!(semaphore.try_acquire().await.unwrap().is_none());
    java.ask(&format!("release {id}")).await;
    assert_eq!(counts(&semaphore).await, (1, 0));
    java.ends().await;
}

/// Four tasks and four threads share three permits, and note how many are out.
async fn never_more_with_leases_are_out_than_there_are(scene: &Scene) {
    let (semaphore, java) = begun(scene, "java:shared:t", 3).await;
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
        let (out, java) = (out.clone(), &java);
        async move {
            let worker = format!("w{n}");
            for _ in 0..25 {
                let id = java.begins(&worker, "acquire 60000").await.unwrap();
                enter(&out);
                tokio::time::sleep(Duration::from_millis(1)).await;
                out.fetch_sub(1, Ordering::SeqCst);
                java.begins(&worker, &format!("release {id}")).await.unwrap();
            }
        }
    });
    futures::future::join_all(theirs).await;
    for ours in ours {
        ours.await.unwrap();
    }
    assert_eq!((counts(&semaphore).await, java.counts().await), ((3, 0), (3, 0)));
    java.ends().await;
}

async fn what_a_java_that_is_killed_had_comes_back_with_its_lease_or_by_its_id(scene: &Scene) {
    let (semaphore, java) = begun(scene, "java:lost:t", 2).await;
    let mut killed = scene.another_java(&[]);
    killed.ask("a", "permits acquire java:lost:t 2000").await.unwrap();
    let for_ever = killed.ask("a", "permits acquire java:lost:t").await.unwrap();
    let waiting = [(); 2].map(|()| {
        let semaphore = semaphore.clone();
        tokio::spawn(async move { semaphore.acquire().await })
    });
    scene.heard_by(&channel("java:lost:t"), 1).await;
    killed.kill();
    let [one, other] = waiting;
    let (first, second) = match within(LEASE / 3, "one lease ends", futures::future::select(one, other)).await {
        futures::future::Either::Left((first, second)) | futures::future::Either::Right((first, second)) => {
            (first.unwrap().unwrap(), second)
        }
    };
    assert_eq!(counts(&semaphore).await, (0, 2));
    assert!(!second.is_finished(), "the other one never ends");
    assert!(semaphore.release_id(&for_ever).await.unwrap());
    woken("it is given back", second).await.unwrap().unwrap().release().await.unwrap();
    first.release().await.unwrap();
    java.ends().await;
}

async fn what_a_process_of_ours_that_is_killed_had_comes_back_with_its_lease(scene: &Scene) {
    let (semaphore, java) = begun(scene, "java:taken:t", 1).await;
    let child = Killed::start("renewer", &scene.url());
    eventually("it has one", async || counts(&semaphore).await == (0, 1)).await;
    // It is renewed for longer than its lease.
    tokio::time::sleep(2 * SHORT).await;
    assert_eq!(counts(&semaphore).await, (0, 1));
    let waiting = java.begins("a", "acquire 60000");
    scene.heard_by(&channel("java:taken:t"), 1).await;
    drop(child);
    within(LEASE / 3, "its lease has ended", waiting).await.unwrap();
    java.ends().await;
}

async fn an_acquisition_with_a_lease_that_is_dropped_leaves_java_all_permits(scene: &Scene) {
    let (semaphore, java) = begun(scene, "java:dropped:t", 1).await;
    for n in 0..40_u64 {
        let acquire = semaphore.acquire().into_future();
        drop(tokio::time::timeout(Duration::from_micros(n * 50), acquire).await);
        let id = woken("Java gets it", java.begins("a", "acquire 60000")).await.unwrap();
        java.ask(&format!("release {id}")).await;
    }
    assert_eq!(counts(&semaphore).await, (1, 0));
    java.ends().await;
}

async fn what_is_no_such_semaphore_is_an_error(scene: &Scene) {
    scene.java.ask("a", "lock lock java:wrong:t 20000").await.unwrap();
    let semaphore = scene.redisson().permit_semaphore("java:wrong:t");
    let errors = [
        semaphore.try_set_permits(1).await.map(drop),
        semaphore.set_permits(1).await,
        semaphore.acquire().await.map(drop),
        semaphore.try_acquire().await.map(drop),
        semaphore.available().await.map(drop),
    ];
    for error in errors {
        assert_eq!(error.unwrap_err().kind(), ErrorKind::WrongType);
    }
    scene.java.ask("a", "lock unlock java:wrong:t").await.unwrap();
}
