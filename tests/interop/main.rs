//! One lock with Java: bowline beside the real Redisson, which `interop/java` drives. `scripts/interop` builds that program
//! and runs this suite; without it (`BOWLINE_JAVA` is not set) the tests say that they were skipped.
#![cfg(feature = "tokio")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests panic, and have clocks and threads of their own"
)]

use bowline_testkit as support;

mod contention;
mod ends;
mod java;
mod processes;
mod scene;
mod taking_turns;

use scene::Scene;

/// Each scenario on a single server, and all of them one after the other behind sentinels and in a cluster, whose
/// servers start more slowly.
macro_rules! everywhere {
    ($($scenario:path => $test:ident),+ $(,)?) => {
        mod single {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $test() {
                    if let Some(scene) = super::Scene::single().await {
                        $scenario(&scene).await;
                    }
                }
            )+
        }

        async fn all(scene: &Scene) {
            $(
                println!("{}", stringify!($test));
                $scenario(scene).await;
            )+
        }
    };
}

everywhere! {
    crate::taking_turns::each_side_keeps_the_other_out => each_side_keeps_the_other_out,
    crate::taking_turns::java_is_woken_by_our_release => java_is_woken_by_our_release,
    crate::taking_turns::we_are_woken_by_a_release_of_java => we_are_woken_by_a_release_of_java,
    crate::taking_turns::both_watchdogs_keep_their_holds => both_watchdogs_keep_their_holds,
    crate::taking_turns::names_are_those_of_java => names_are_those_of_java,
    crate::taking_turns::tokens_are_in_one_order => tokens_are_in_one_order,
    crate::ends::a_lease_of_either_ends_for_the_other => a_lease_of_either_ends_for_the_other,
    crate::ends::the_wrong_side_cannot_release => the_wrong_side_cannot_release,
    crate::ends::either_takes_the_lock_by_force => either_takes_the_lock_by_force,
    crate::contention::a_counter_loses_nothing => a_counter_loses_nothing,
    crate::contention::tokens_grow_under_contention => tokens_grow_under_contention,
    crate::processes::a_java_that_is_killed_leaves_one_lease => a_java_that_is_killed_leaves_one_lease,
    crate::processes::a_process_of_ours_that_is_killed_leaves_one_lease => a_process_of_ours_that_is_killed_leaves_one_lease,
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
    let guard = scene.redisson().lock("a{b}c").lock().await.unwrap();
    assert_eq!(scene.java.ask("a", "lock tryLock a{b}c").await.unwrap(), "false");
    guard.release().await.unwrap();
}

/// A process of its own, which a test kills: see `processes`.
#[tokio::test]
async fn holder() {
    processes::hold_until_killed().await;
}
