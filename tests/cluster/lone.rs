//! Holds that are alone, so that not all keys of their name exist, in a slot that moves.

use std::time::Duration;

use crate::support::cluster::Cluster;
use crate::support::env::Env;
use crate::tests;

tests! {
    lone_holds_are_renewed_while_their_slot_moves,
}

/// All primitives have this name, so that all their keys are in one slot.
const NAME: &str = "a";

/// For longer than the lease, the old master has the slot and the keys, and then the new one has the keys.
async fn lone_holds_are_renewed_while_their_slot_moves(env: Env) {
    let cluster = Cluster::start_with(2, 0, &["--cluster-node-timeout", "15000"]);
    let client = env.client_at(&cluster.user_url(), |config| config.lease(Duration::from_secs(3))).await.unwrap();
    let lock = client.lock(NAME).lock().await.unwrap();
    let permit = client.semaphore(NAME, 3).acquire().await.unwrap();
    let writer = client.rw_lock(NAME).write().await.unwrap();
    let leader = client.election(NAME).try_campaign().await.unwrap().unwrap();
    let are_valid = || [lock.is_valid(), permit.is_valid(), writer.is_valid(), leader.is_valid()];
    let renewed_again = async |what: &str| {
        let before = client.stats().renewals;
        // Four holds, each of which is renewed three times per lease.
        env.eventually(what, async || client.stats().renewals >= before + 5 * 4).await;
        assert_eq!(are_valid(), [true; 4], "{what}");
    };
    let slot = cluster.slot_of(&format!("{{{NAME}}}"));
    let from = cluster.owner_of_slot(slot);
    cluster.open_slot(slot, from, 1 - from);
    renewed_again("the slot is open").await;
    while cluster.move_keys(slot, from, 1 - from, 100) > 0 {}
    renewed_again("the keys have moved").await;
    cluster.close_slot(slot, from, 1 - from);
    renewed_again("the slot has moved").await;
    assert_eq!(client.stats().lost, 0);
    lock.release().await.unwrap();
    permit.release().await.unwrap();
    writer.release().await.unwrap();
    leader.resign().await.unwrap();
    client.close().await;
}
