//! Labels, and what operators ask, with requests and answers that get lost, and servers that come late.

use std::future::IntoFuture;
use std::pin::pin;

use bowline::{ErrorKind, Loss, Whose};
use futures::future::{join_all, select};

use crate::faulty::{Fault, faulty_client};
use crate::scene::{drop_when, ms};
use crate::support::env::{Env, on_every_runtime};

/// As many looks at a time as `src/tuning.rs` lets a client have.
const MOST_LOOKS: usize = 16;

on_every_runtime! {
    without_an_answer_about_labels_the_state_is_read,
    a_timeout_whose_look_fails_says_what_it_would_say_otherwise,
    a_close_that_is_dropped_removes_the_label,
    a_lost_removal_leaves_the_label_to_its_life,
    a_client_that_starts_before_its_server_stores_its_label_later,
    a_look_that_is_dropped_with_its_acquisition_leaves_nothing,
    what_an_operator_takes_is_taken_once_if_the_answer_is_lost,
}

async fn labels(env: &Env) -> u64 {
    env.redis(&["HLEN", "bowline:client:{labels}"])
}

async fn without_an_answer_about_labels_the_state_is_read(env: Env) {
    let holder = env.client_with(|config| config.label("web-7")).await;
    let (client, faults) = faulty_client(&env, |config| config).await;
    env.eventually("the label", async || labels(&env).await == 1).await;
    let guard = holder.lock("a").lock().await.unwrap();
    let lock = client.lock("a");
    for fault in [Fault::LoseReply, Fault::LoseRequest, Fault::Unreachable, Fault::Refuse("NOPERM no")] {
        let calls = faults.calls("client_labels");
        faults.next("client_labels", [fault.clone()]);
        let held = lock.inspect().await.unwrap().holder.unwrap();
        assert_eq!((held.client, held.label), (Some(holder.id()), None), "{fault:?}");
        assert_eq!(faults.calls("client_labels"), calls + 1, "it is asked once: {fault:?}");
    }
    assert_eq!(lock.inspect().await.unwrap().holder.unwrap().label.as_deref(), Some("web-7"));
    guard.release().await.unwrap();
}

async fn a_timeout_whose_look_fails_says_what_it_would_say_otherwise(env: Env) {
    let holder = env.client().await;
    let (client, faults) = faulty_client(&env, |config| config.label("web-8")).await;
    let guard = holder.lock("a").lock().await.unwrap();
    for fault in [Fault::LoseReply, Fault::Unreachable, Fault::Hang] {
        faults.next("lock_inspect", [fault.clone()]);
        let error = client.lock("a").lock().timeout(ms(300)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{fault:?}");
        assert!(!error.to_string().contains("held by"), "{fault:?}: {error}");
    }
    faults.release();
    // Without the label of the holder, its client is named.
    faults.next("client_labels", [Fault::LoseReply]);
    let error = client.lock("a").lock().timeout(ms(300)).await.unwrap_err().to_string();
    assert!(error.contains(&format!("held by client {} (for ", holder.id())), "{error}");
    guard.release().await.unwrap();
}

/// A handle lives on, so that nothing else ends the client.
async fn a_close_that_is_dropped_removes_the_label(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.label("web-8")).await;
    let lock = client.lock("a");
    env.eventually("the label", async || labels(&env).await == 1).await;
    let guard = lock.lock().await.unwrap();
    // The close waits for the clean-up of the hold.
    faults.next("lock_cancel", [Fault::Hang]);
    drop_when(&env, "it is closing", client.close(), async || faults.calls("lock_cancel") == 1).await;
    assert_eq!(labels(&env).await, 1);
    faults.release();
    env.eventually("the label is gone", async || labels(&env).await == 0).await;
    drop((guard, lock));
}

async fn a_lost_removal_leaves_the_label_to_its_life(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.label("web-8")).await;
    env.eventually("the label", async || labels(&env).await == 1).await;
    let calls = faults.calls("client_label");
    faults.next("client_label", [Fault::LoseRequest]);
    let lock = client.lock("a");
    drop(client);
    drop(lock);
    env.eventually("it is asked", async || faults.calls("client_label") > calls).await;
    env.sleep(ms(200)).await;
    // A client that is dropped asks once. The label is there for the rest of its life.
    assert_eq!((faults.calls("client_label"), labels(&env).await), (calls + 1, 1));
    // The faults keep the connection.
    drop(faults);
    env.eventually("nothing runs", async || env.live() == (0, 0)).await;
    env.redis::<()>(&["DEL", "bowline:client:{labels}", "bowline:client:{labels}:leases"]);
}

async fn a_client_that_starts_before_its_server_stores_its_label_later(env: Env) {
    let url = env.server().user_url();
    env.server().kill();
    let background = |config: bowline::ConfigBuilder| config.connect_in_background(true).label("web-7");
    let client = env.client_at(&url, background).await.unwrap();
    // One that is closed, and one that is dropped, before there is a server.
    env.client_at(&url, background).await.unwrap().close().await;
    drop(env.client_at(&url, background).await.unwrap());
    assert_eq!(client.counts.of("client_label"), 0);
    env.server().restart();
    env.eventually("the label", async || labels(&env).await == 1).await;
    assert_eq!(client.counts.of("client_label"), 1);
    client.close().await;
    assert_eq!(labels(&env).await, 0);
}

async fn a_look_that_is_dropped_with_its_acquisition_leaves_nothing(env: Env) {
    let holder = env.client().await;
    let (client, faults) = faulty_client(&env, |config| config.label("web-8")).await;
    let guard = holder.lock("a").lock().await.unwrap();
    // More than may ask at a time. On a slow machine some end by their timeout, which drops the look as well.
    faults.next("lock_inspect", vec![Fault::Hang; MOST_LOOKS]);
    let waits = (0..MOST_LOOKS + 4).map(|_| client.lock("a").lock().timeout(ms(1_000)).into_future());
    let asked = env.eventually("they ask", async || faults.calls("lock_inspect") >= MOST_LOOKS as u64);
    drop(select(pin!(join_all(waits)), pin!(asked)).await);
    assert!(faults.calls("lock_inspect") >= MOST_LOOKS as u64);
    faults.release();
    let error = client.lock("a").lock().timeout(ms(300)).await.unwrap_err().to_string();
    assert!(error.contains("held by client"), "{error}");
    guard.release().await.unwrap();
}

async fn what_an_operator_takes_is_taken_once_if_the_answer_is_lost(env: Env) {
    let holder = env.client().await;
    let (client, faults) = faulty_client(&env, |config| config).await;
    let (semaphore, lock) = (client.semaphore("a", 3), client.rw_lock("a"));
    for (fault, taken) in [(Fault::LoseReply, 0), (Fault::LoseRequest, 1), (Fault::Unreachable, 1)] {
        let permit = holder.semaphore("a", 3).acquire_many(2).await.unwrap();
        faults.next("permit_force_release", [fault.clone()]);
        let revoked = semaphore.force_release(Whose::Everybody).await.unwrap();
        assert_eq!(revoked.holds, taken, "{fault:?}");
        assert_eq!(env.soon("the holder is told", permit.lost()).await, Loss::Revoked);
        assert_eq!(semaphore.available().await.unwrap(), 3);
        let guard = holder.rw_lock("a").write().await.unwrap();
        faults.next("permit_force_release", [fault.clone()]);
        let revoked = lock.force_release(Whose::Client(holder.id())).await.unwrap();
        assert_eq!((revoked.holds, revoked.token.is_some()), (taken, taken > 0), "{fault:?}");
        assert_eq!(env.soon("the writer is told", guard.lost()).await, Loss::Revoked);
    }
    // A request that comes late takes nothing from the next holder.
    let permit = holder.semaphore("a", 3).acquire().await.unwrap();
    faults.next("permit_force_release", [Fault::Late]);
    semaphore.force_release(Whose::Everybody).await.unwrap();
    assert_eq!(env.soon("the holder is told", permit.lost()).await, Loss::Revoked);
    let next = holder.semaphore("a", 3).acquire().await.unwrap();
    faults.send_late().await;
    assert_eq!(semaphore.available().await.unwrap(), 2);
    next.release().await.unwrap();
}
