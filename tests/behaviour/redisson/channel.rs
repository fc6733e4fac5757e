//! The subscription of a client to the channel of a lock that it waits for.

use std::time::Duration;

use bowline::ErrorKind;

use super::{HOUR, client, waits};
use crate::lab::{Env, on_every_server};

on_every_server! {
    tasks_of_a_client_share_one_subscription_which_ends_after_them,
    a_try_and_a_free_lock_subscribe_nothing,
}

const CHANNEL: &str = "redisson_lock__channel:{a}";

async fn tasks_of_a_client_share_one_subscription_which_ends_after_them(env: Env) {
    let (a, b) = (client(&env).await, client(&env).await);
    for _ in 0..2 {
        let held = a.redisson().lock("a").lock().await.unwrap();
        let before = b.counts.subscribes();
        // Those with leases of their own are in no cohort.
        let tasks: Vec<_> = (1..=6)
            .map(|n| {
                let lock = b.redisson().lock("a");
                env.spawn(async move { lock.lock().lease(HOUR / n).timeout(Duration::from_millis(700)).await })
            })
            .collect();
        waits(&env, &b, 6).await;
        env.eventually("it is subscribed", async || b.counts.subscribes() == before + 1).await;
        for task in tasks {
            assert_eq!(env.soon("its time ends", task).await.unwrap_err().kind(), ErrorKind::TimedOut);
        }
        assert_eq!(b.counts.subscribes(), before + 1);
        held.release().await.unwrap();
        // It ends 1 s after the last wait. In a cluster it is another kind of channel, which this does not count.
        env.sleep(Duration::from_millis(2500)).await;
        assert_eq!(env.listeners(CHANNEL), 0);
    }
}

async fn a_try_and_a_free_lock_subscribe_nothing(env: Env) {
    let (a, b) = (client(&env).await, client(&env).await);
    let before = (a.counts.subscribes(), b.counts.subscribes());
    let held = a.redisson().lock("a").lock().await.unwrap();
    assert!(b.redisson().lock("a").try_lock().await.unwrap().is_none());
    held.release().await.unwrap();
    assert_eq!((a.counts.subscribes(), b.counts.subscribes()), before);
}
