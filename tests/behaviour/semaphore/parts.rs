//! Permits that are split and merged.

use std::time::Duration;

use bowline::{ErrorKind, Loss, Whose};
use futures::FutureExt;

use super::waiter;
use crate::lab::{Env, Permit, on_every_server};
use crate::support::polled::begun_at_once;

on_every_server! {
    parts_are_released_one_by_one,
    each_part_has_at_least_one_permit,
    a_part_that_is_dropped_comes_back,
    a_waiter_gets_what_one_part_gives_back,
    merged_parts_are_one_again,
    permits_of_several_acquisitions_are_merged,
    merged_permits_are_split_again,
    merged_permits_are_lost_with_the_first_of_them,
    merged_permits_are_kept_and_extended_together,
    permits_of_another_name_or_client_are_not_merged,
    a_part_that_is_kept_stays_alone,
    parts_share_their_lease,
    a_hold_that_became_smaller_is_not_handed_off,
    closing_ends_all_parts,
    parts_released_at_the_same_time_are_all_back,
    a_part_released_while_another_is_kept_is_back,
}

const LIMIT: u32 = 6;

fn parted(permit: &mut Permit, count: u32) -> Permit {
    permit.split(count).expect("it has more")
}

async fn parts_are_released_one_by_one(env: Env) {
    let (client, other) = (env.client().await, env.client().await.semaphore("a", LIMIT));
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let mut one = client.semaphore("a", LIMIT).acquire_many(6).await.unwrap();
        client.counts.reset();
        let mut two = parted(&mut one, 5);
        let three = parted(&mut two, 3);
        assert_eq!([one.count(), two.count(), three.count()], [1, 2, 3]);
        assert_eq!(client.counts.total(), 0, "{:?}", client.counts.all());
        let mut parts = [Some(one), Some(two), Some(three)];
        let mut free = 0;
        for n in order {
            let part = parts[n].take().unwrap();
            assert!(part.is_valid());
            free += part.count();
            part.release().await.unwrap();
            assert_eq!(other.available().await.unwrap(), free);
        }
        assert_eq!((client.counts.of("permit_give_back"), client.counts.of("permit_release")), (2, 1));
        assert_eq!(client.counts.total(), 3);
    }
}

async fn each_part_has_at_least_one_permit(env: Env) {
    let client = env.client().await;
    let mut permit = client.semaphore("a", LIMIT).acquire_many(2).await.unwrap();
    for count in [0, 2, 3, u32::MAX] {
        assert!(permit.split(count).is_none(), "{count} of 2");
    }
    let other = parted(&mut permit, 1);
    assert!(permit.split(1).is_none());
    assert_eq!((permit.count(), other.count()), (1, 1));
    permit.release().await.unwrap();
    other.release().await.unwrap();
}

async fn a_part_that_is_dropped_comes_back(env: Env) {
    let (client, other) = (env.client().await, env.client().await.semaphore("a", LIMIT));
    let mut permit = client.semaphore("a", LIMIT).acquire_many(4).await.unwrap();
    drop(parted(&mut permit, 3));
    env.eventually("three are back", async || other.available().await.unwrap() == 5).await;
    assert!(permit.is_valid());
    let part = client.semaphore("a", LIMIT).acquire_many(3).await.unwrap();
    assert_eq!(other.inspect().await.unwrap().used, 4);
    drop(permit);
    env.eventually("the last one, too", async || other.available().await.unwrap() == 3).await;
    part.release().await.unwrap();
}

async fn a_waiter_gets_what_one_part_gives_back(env: Env) {
    let (a, b) = (env.client().await.semaphore("a", LIMIT), env.client().await.semaphore("a", LIMIT));
    let mut permit = a.acquire_many(6).await.unwrap();
    let waiting = waiter(&env, &b, 2).await;
    let own = waiter(&env, &a, 1).await;
    parted(&mut permit, 2).release().await.unwrap();
    let two = env.soon("the waiter", waiting).await.unwrap();
    drop(parted(&mut permit, 1));
    let one = env.soon("a waiter of the same client", own).await.unwrap();
    assert_eq!((permit.count(), b.inspect().await.unwrap().used), (3, 6));
    for permit in [permit, two, one] {
        permit.release().await.unwrap();
    }
    assert_eq!(b.available().await.unwrap(), LIMIT);
}

async fn merged_parts_are_one_again(env: Env) {
    let (client, other) = (env.client().await, env.client().await.semaphore("a", LIMIT));
    let mut permit = client.semaphore("a", LIMIT).acquire_many(5).await.unwrap();
    client.counts.reset();
    let mut two = parted(&mut permit, 2);
    let three = parted(&mut permit, 1);
    two.merge(three).unwrap();
    assert_eq!((permit.count(), two.count()), (2, 3));
    permit.merge(two).unwrap();
    assert_eq!((permit.count(), client.counts.total()), (5, 0));
    assert_eq!(other.available().await.unwrap(), 1);
    permit.release().await.unwrap();
    assert_eq!((client.counts.of("permit_release"), client.counts.total()), (1, 1));
    assert_eq!(other.available().await.unwrap(), LIMIT);
}

async fn permits_of_several_acquisitions_are_merged(env: Env) {
    let (client, other) = (env.client().await, env.client().await.semaphore("a", LIMIT));
    // Handles of one semaphore may have different limits.
    let (semaphore, again) = (client.semaphore("a", LIMIT), client.semaphore("a", LIMIT + 1));
    let mut permit = semaphore.acquire_many(3).await.unwrap();
    let part = parted(&mut permit, 1);
    let mut two = again.acquire_many(2).await.unwrap();
    client.counts.reset();
    two.merge(part).unwrap();
    permit.merge(two).unwrap();
    assert_eq!((permit.count(), permit.name(), permit.is_valid()), (5, "a", true));
    assert_eq!(client.counts.total(), 0);
    assert_eq!(other.available().await.unwrap(), 1);
    permit.release().await.unwrap();
    assert_eq!((client.counts.of("permit_release"), client.counts.total()), (2, 2), "{:?}", client.counts.all());
    assert_eq!(other.available().await.unwrap(), LIMIT);
    // Dropped together.
    let mut permit = semaphore.acquire().await.unwrap();
    permit.merge(semaphore.acquire_many(4).await.unwrap()).unwrap();
    drop(permit);
    env.eventually("all are back", async || other.available().await.unwrap() == LIMIT).await;
}

async fn merged_permits_are_split_again(env: Env) {
    let (client, other) = (env.client().await, env.client().await.semaphore("a", LIMIT));
    let semaphore = client.semaphore("a", LIMIT);
    for taken in 1..=5 {
        let mut permit = semaphore.acquire_many(3).await.unwrap();
        for count in [1, 2] {
            permit.merge(semaphore.acquire_many(count).await.unwrap()).unwrap();
        }
        assert!(permit.split(0).is_none() && permit.split(6).is_none());
        let part = parted(&mut permit, taken);
        assert_eq!((permit.count(), part.count()), (6 - taken, taken));
        part.release().await.unwrap();
        assert_eq!(other.available().await.unwrap(), taken);
        assert!(permit.is_valid());
        permit.release().await.unwrap();
        assert_eq!(other.available().await.unwrap(), LIMIT);
    }
}

async fn merged_permits_are_lost_with_the_first_of_them(env: Env) {
    let (client, other) = (env.client().await, env.client().await.semaphore("a", LIMIT));
    let semaphore = client.semaphore("a", LIMIT);
    for short_first in [true, false] {
        let long = semaphore.acquire_many(2).await.unwrap();
        let short = semaphore.acquire_many(3).expires_after(Duration::from_millis(200)).await.unwrap();
        let (mut permit, more) = if short_first { (short, long) } else { (long, short) };
        permit.merge(more).unwrap();
        assert!(permit.remaining() <= Duration::from_millis(200));
        assert_eq!(env.soon("the loss", permit.lost()).await, Loss::Expired);
        assert!(!permit.is_valid());
        // By the server's clock the lease ends a little later.
        env.eventually("the others are held", async || other.inspect().await.unwrap().used == 2).await;
        assert_eq!(permit.release().await.unwrap_err().kind(), ErrorKind::Lost);
        assert_eq!(other.available().await.unwrap(), LIMIT);
    }
}

async fn merged_permits_are_kept_and_extended_together(env: Env) {
    let (client, other) = (env.client().await, env.client().await.semaphore("a", LIMIT));
    let semaphore = client.semaphore("a", LIMIT);
    let fixed = Duration::from_secs(5);
    let mut permit = semaphore.acquire_many(2).expires_after(fixed).await.unwrap();
    permit.merge(semaphore.acquire_many(3).expires_after(fixed).await.unwrap()).unwrap();
    client.counts.reset();
    permit.extend(Duration::from_secs(60)).await.unwrap();
    // Only the first extension finds out that they are not alone.
    assert_eq!((client.counts.of("permit_renew_short"), client.counts.of("permit_renew")), (2, 2));
    permit.extend(Duration::from_secs(60)).await.unwrap();
    assert_eq!((client.counts.of("permit_renew_short"), client.counts.of("permit_renew")), (2, 4));
    assert!(permit.remaining() > Duration::from_secs(30), "{:?}", permit.remaining());
    permit.keep().unwrap();
    client.close().await;
    let state = other.inspect().await.unwrap();
    assert_eq!((state.used, state.holders.len()), (5, 2));
    env.leaves_keys();
}

async fn permits_of_another_name_or_client_are_not_merged(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let semaphore = client.semaphore("a", LIMIT);
    let mut permit = semaphore.acquire_many(2).await.unwrap();
    for (foreign, name) in [
        (other.semaphore("a", LIMIT).acquire().await.unwrap(), "a"),
        (client.semaphore("b", LIMIT).acquire().await.unwrap(), "b"),
    ] {
        let (foreign, error) = permit.merge(foreign).unwrap_err();
        assert_eq!(
            (error.kind(), error.operation(), error.name()),
            (ErrorKind::InvalidInput, "merge", Some(name)),
            "{error}"
        );
        assert_eq!((permit.count(), foreign.count(), foreign.is_valid()), (2, 1, true));
        foreign.release().await.unwrap();
    }
    permit.release().await.unwrap();
    assert_eq!(semaphore.available().await.unwrap(), LIMIT);
}

/// Whether it is kept before or after the other part goes.
async fn a_part_that_is_kept_stays_alone(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    for (name, kept_first, drops) in [("a", true, false), ("b", false, false), ("c", true, true), ("d", false, true)] {
        let semaphore = client.semaphore(name, LIMIT);
        let mut permit = semaphore.acquire_many(5).expires_after(Duration::from_secs(60)).await.unwrap();
        let kept = parted(&mut permit, 2);
        let end = async |permit: Permit| if drops { drop(permit) } else { permit.release().await.unwrap() };
        if kept_first {
            kept.keep().unwrap();
            end(permit).await;
        } else {
            end(permit).await;
            kept.keep().unwrap();
        }
        let seen = other.semaphore(name, LIMIT);
        env.eventually("two are kept", async || seen.inspect().await.unwrap().used == 2).await;
        let rest = seen.try_acquire_all().await.unwrap().expect("the others are free");
        assert_eq!(rest.count(), 4);
        rest.release().await.unwrap();
    }
    client.close().await;
    for name in ["a", "b", "c", "d"] {
        let state = other.semaphore(name, LIMIT).inspect().await.unwrap();
        assert_eq!((state.used, state.holders.len()), (2, 1));
        assert!(state.holders[0].remaining > Duration::from_secs(30));
    }
    env.leaves_keys();
}

async fn parts_share_their_lease(env: Env) {
    let client = env.client().await;
    let semaphore = client.semaphore("a", LIMIT);
    let mut one = semaphore.acquire_many(3).expires_after(Duration::from_secs(5)).await.unwrap();
    let two = parted(&mut one, 1);
    one.extend(Duration::from_secs(60)).await.unwrap();
    assert!(two.remaining() > Duration::from_secs(30), "{:?}", two.remaining());
    one.release().await.unwrap();
    assert!(two.remaining() > Duration::from_secs(30), "{:?}", two.remaining());
    two.release().await.unwrap();
    // Renewed after one of them has gone, past the first lease.
    let mut one = semaphore.acquire_many(3).lease(Duration::from_millis(300)).await.unwrap();
    parted(&mut one, 1).release().await.unwrap();
    env.sleep(Duration::from_millis(700)).await;
    assert!(one.is_valid());
    assert_eq!(semaphore.inspect().await.unwrap().used, 2);
    one.release().await.unwrap();
    // Lost together.
    let mut one = semaphore.acquire_many(3).expires_after(Duration::from_millis(150)).await.unwrap();
    let (two, three) = (parted(&mut one, 1), parted(&mut one, 1));
    assert_eq!(env.soon("the loss", two.lost()).await, Loss::Expired);
    assert_eq!(env.soon("the loss", one.lost()).await, Loss::Expired);
    drop(three);
    for part in [one, two] {
        assert_eq!(part.release().await.unwrap_err().kind(), ErrorKind::Lost);
    }
    env.eventually("all are free", async || semaphore.available().await.unwrap() == LIMIT).await;
}

/// A member of its cohort would hold fewer permits in Redis than it has asked for.
async fn a_hold_that_became_smaller_is_not_handed_off(env: Env) {
    let (client, other) = (env.client().await, env.client().await.semaphore("a", LIMIT));
    let semaphore = client.semaphore("a", LIMIT);
    for drops in [false, true] {
        let mut permit = semaphore.acquire_many(4).non_fair().await.unwrap();
        let next = env.spawn({
            let semaphore = semaphore.clone();
            async move { semaphore.acquire_many(4).non_fair().await.unwrap() }
        });
        super::queued(&env, &other, 1).await;
        let part = parted(&mut permit, 1);
        if drops {
            drop((part, permit));
        } else {
            part.release().await.unwrap();
            permit.release().await.unwrap();
        }
        let next = env.soon("the next member", next).await;
        assert_eq!((next.count(), other.inspect().await.unwrap().used), (4, 4));
        next.release().await.unwrap();
        env.eventually("all are back", async || other.available().await.unwrap() == LIMIT).await;
    }
}

async fn closing_ends_all_parts(env: Env) {
    let (client, other) = (env.client().await, env.client().await.semaphore("a", LIMIT));
    let mut one = client.semaphore("a", LIMIT).acquire_many(5).await.unwrap();
    let two = parted(&mut one, 1);
    drop(parted(&mut one, 1));
    client.close().await;
    assert_eq!(other.available().await.unwrap(), LIMIT);
    for part in [one, two] {
        assert!(!part.is_valid());
        assert_eq!(part.release().await.unwrap_err().kind(), ErrorKind::Lost);
    }
}

async fn parts_released_at_the_same_time_are_all_back(env: Env) {
    const ROUNDS: u32 = 100;
    let (client, other) = (env.client().await, env.client().await.semaphore("a", LIMIT));
    for round in 0..ROUNDS {
        let mut one = client.semaphore("a", LIMIT).acquire_many(5).await.unwrap();
        let two = parted(&mut one, 2);
        let [one, two] = begun_at_once(one.release().boxed(), two.release().boxed());
        let (one, two) = futures::join!(one, two);
        one.and(two).unwrap();
        assert_eq!(other.available().await.unwrap(), LIMIT, "round {round}");
    }
}

async fn a_part_released_while_another_is_kept_is_back(env: Env) {
    const ROUNDS: u32 = 100;
    let (client, other) = (env.client().await, env.client().await.semaphore("a", LIMIT));
    for round in 0..ROUNDS {
        let mut one = client.semaphore("a", LIMIT).acquire_many(5).await.unwrap();
        let two = parted(&mut one, 2);
        let [one, two] = begun_at_once(one.release().boxed(), async move { two.keep() }.boxed());
        let (one, two) = futures::join!(one, two);
        one.and(two).unwrap();
        assert_eq!(other.inspect().await.unwrap().used, 2, "round {round}");
        assert_eq!(other.force_release(Whose::Everybody).await.unwrap().holds, 1);
    }
}
