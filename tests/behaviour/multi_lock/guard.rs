//! The guard of all holds: what it tells, the loss of one of them, and its end.

use std::time::Duration;

use bowline::{ErrorKind, Holder, Loss};

use super::{LONG, nothing_is_left};
use crate::lab::{Env, on_every_server};

on_every_server! {
    it_has_the_tokens_by_name,
    a_token_of_an_ambiguous_name_is_not_guessed,
    the_loss_of_one_is_told_by_name,
    a_release_and_a_drop_end_all_holds,
    the_lease_that_ends_first_counts,
    fixed_leases_are_extended_together,
    a_holder_re_enters_what_it_holds,
    a_denied_re_entry_of_any_name_is_an_error_at_once,
    re_entry_of_all_costs_no_command,
}

async fn it_has_the_tokens_by_name(env: Env) {
    let client = env.client().await;
    let (lock, prices, stock) = (client.lock("orders"), client.rw_lock("prices"), client.rw_lock("stock"));
    let semaphore = client.semaphore("uploads", 3);
    let all = client.multi_lock().permits(&semaphore, 2).write(&stock).read(&prices).lock(&lock);
    let guard = all.acquire().await.unwrap();
    assert_eq!(guard.names(), ["orders", "prices", "stock", "uploads"]);
    assert_eq!(guard.name(), "orders, prices, stock, uploads");
    let held = lock.inspect().await.unwrap().holder.unwrap();
    let reader = prices.inspect().await.unwrap().readers.remove(0);
    let writer = stock.inspect().await.unwrap().writer.unwrap();
    assert_eq!((guard.token("orders"), held.client), (Some(held.token), Some(client.id())));
    assert_eq!((guard.token("prices"), guard.token("stock")), (Some(reader.token), Some(writer.token)));
    assert_eq!((guard.token("uploads"), guard.token("other")), (None, None));
    let tokens = [("orders", held.token), ("prices", reader.token), ("stock", writer.token)];
    assert_eq!(guard.tokens(), tokens.map(|(name, token)| (name.to_owned(), token)));
    assert_eq!(semaphore.available().await.unwrap(), 1);
    let shown = format!("{guard:?}");
    assert!(shown.contains("orders") && shown.contains(&held.token.to_string()), "{shown}");
    guard.release().await.unwrap();
    assert!(env.keys().is_empty(), "{:?}", env.keys());
}

async fn a_token_of_an_ambiguous_name_is_not_guessed(env: Env) {
    let client = env.client().await;
    let all = client.multi_lock().lock(&client.lock("a")).write(&client.rw_lock("a"));
    // Permits have no token, so the token is that of the lock.
    let with_permits = client.multi_lock().lock(&client.lock("b")).permits(&client.semaphore("b", 1), 1);
    let (both, one) = (all.acquire().await.unwrap(), with_permits.acquire().await.unwrap());
    assert_eq!((both.token("a"), both.tokens().len()), (None, 2));
    assert_eq!((one.token("b"), one.tokens().len()), (Some(one.tokens()[0].1), 1));
    both.release().await.unwrap();
    one.release().await.unwrap();
}

async fn the_loss_of_one_is_told_by_name(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let guard = client.lock_all(&["a", "b", "c"]).acquire().await.unwrap();
    let signal = guard.lost_signal();
    assert!(!signal.is_lost() && guard.is_valid());
    assert_eq!((signal.name(), signal.lost_name()), ("a, b, c", None));
    other.lock("b").force_release().await.unwrap().expect("it is held");
    let lost = env.soon("the loss is told", guard.lost()).await;
    assert_eq!((lost.name(), lost.loss()), ("b", Loss::Revoked));
    assert_eq!((Loss::from(lost.clone()), lost.to_string()), (Loss::Revoked, format!("\"b\": {}", Loss::Revoked)));
    assert!(!guard.is_valid() && guard.remaining().is_zero());
    assert_eq!((signal.lost_name(), signal.reason()), (Some("b"), Some(Loss::Revoked)));
    assert_eq!(env.soon("the signal", signal.wait()).await, Some(Loss::Revoked));
    // The other holds last until the guard ends.
    assert!(other.lock("a").try_lock().await.unwrap().is_none());
    let error = guard.release().await.unwrap_err();
    assert_eq!((error.kind(), error.name()), (ErrorKind::Lost, Some("b")));
    assert!(env.keys().is_empty(), "they are released in any case: {:?}", env.keys());
}

async fn a_release_and_a_drop_end_all_holds(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let all = client.lock_all(&["a", "b", "c"]);
    let (guard, others) = (all.acquire().await.unwrap(), other.lock_all(&["c", "b"]));
    let signal = guard.lost_signal();
    guard.release().await.unwrap();
    assert_eq!(env.soon("the signal", signal.wait()).await, None);
    others.try_acquire().await.unwrap().expect("free at once").release().await.unwrap();
    drop(all.acquire().await.unwrap());
    env.soon("free in the background", others.acquire()).await.unwrap().release().await.unwrap();
    nothing_is_left(&env).await;
}

async fn the_lease_that_ends_first_counts(env: Env) {
    let client = env.client().await;
    let holder = Holder::new();
    let short = client.lock("b").lock().holder(&holder).expires_after(Duration::from_secs(5)).await.unwrap();
    let guard = client.lock_all(&["a", "b", "c"]).acquire().holder(&holder).await.unwrap();
    assert!(guard.remaining() <= Duration::from_secs(5), "{:?}", guard.remaining());
    assert!(guard.lost_signal().remaining() <= Duration::from_secs(5), "{:?}", guard.lost_signal().remaining());
    guard.release().await.unwrap();
    short.release().await.unwrap();
}

async fn fixed_leases_are_extended_together(env: Env) {
    let client = env.client().await;
    let guard = client.lock_all(&["a", "b"]).acquire().expires_after(Duration::from_secs(5)).await.unwrap();
    client.counts.reset();
    guard.extend(Duration::from_secs(60)).await.unwrap();
    assert!(guard.remaining() > Duration::from_secs(30), "{:?}", guard.remaining());
    assert_eq!(client.counts.of("lock_renew"), 2);
    guard.release().await.unwrap();
    let renewed = client.lock_all(&["a", "b"]).acquire().await.unwrap();
    assert_eq!(renewed.extend(Duration::from_secs(60)).await.unwrap_err().kind(), ErrorKind::InvalidInput);
    renewed.release().await.unwrap();
}

async fn a_holder_re_enters_what_it_holds(env: Env) {
    let client = env.client().await;
    let (holder, all) = (Holder::new(), client.lock_all(&["a", "b", "c"]));
    let outer = client.lock("b").lock().holder(&holder).await.unwrap();
    client.counts.reset();
    let guard = all.acquire().holder(&holder).timeout(LONG).await.unwrap();
    assert_eq!((guard.token("b"), client.counts.of("lock_acquire")), (Some(outer.token()), 2));
    guard.release().await.unwrap();
    assert!(outer.is_valid());
    assert_eq!(env.keys(), ["bowline:lock:{b}"], "what was held before stays");
    // The reverse order works as well.
    let guard = all.try_acquire().holder(&holder).await.unwrap().expect("re-entered");
    outer.release().await.unwrap();
    assert!(guard.is_valid());
    assert!(all.try_acquire().await.unwrap().is_none(), "without the holder");
    guard.release().await.unwrap();
}

async fn re_entry_of_all_costs_no_command(env: Env) {
    let client = env.client().await;
    let (holder, semaphore) = (Holder::new(), client.semaphore("s", 4));
    let all = client.multi_lock().lock(&client.lock("a")).write(&client.rw_lock("a"));
    let guard = all.acquire().holder(&holder).await.unwrap();
    client.counts.reset();
    let again = all.acquire().holder(&holder).timeout(LONG).await.unwrap();
    assert_eq!((again.tokens(), client.counts.total()), (guard.tokens(), 0));
    // A writer may read at once. A reader that asks to write gets an error.
    let reads = client.multi_lock().read(&client.rw_lock("a")).permits(&semaphore, 1);
    let reading = reads.acquire().holder(&holder).timeout(LONG).await.unwrap();
    for guard in [reading, again, guard] {
        guard.release().await.unwrap();
    }
    let reading = reads.acquire().holder(&holder).await.unwrap();
    let error = all.acquire().holder(&holder).await.unwrap_err();
    assert_eq!((error.kind(), error.name()), (ErrorKind::WouldDeadlock, Some("a")));
    reading.release().await.unwrap();
    nothing_is_left(&env).await;
}

/// Also if the name comes last, and another holder has the first one.
async fn a_denied_re_entry_of_any_name_is_an_error_at_once(env: Env) {
    let (client, other) = (env.client().await, env.client().await);
    let (holder, all) = (Holder::new(), client.lock_all(&["a", "b", "c"]));
    let outer = client.lock("c").lock().holder(&holder).await.unwrap();
    let held = other.lock("a").lock().await.unwrap();
    client.counts.reset();
    for error in [
        env.soon("the error", all.acquire().holder(&holder).deny_reentry()).await.map(drop).unwrap_err(),
        all.try_acquire().holder(&holder).deny_reentry().await.map(drop).unwrap_err(),
    ] {
        assert_eq!((error.kind(), error.name()), (ErrorKind::WouldDeadlock, Some("c")), "{error}");
    }
    assert_eq!(client.counts.total(), 0);
    held.release().await.unwrap();
    outer.release().await.unwrap();
    let guard = all.acquire().holder(&holder).deny_reentry().timeout(LONG).await.unwrap();
    assert_eq!(all.acquire().holder(&holder).deny_reentry().await.unwrap_err().kind(), ErrorKind::WouldDeadlock);
    guard.release().await.unwrap();
    nothing_is_left(&env).await;
}
