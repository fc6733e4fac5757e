//! What the tests look at, and what they do again and again.

use std::time::Duration;

use bowline::{Client, LockGuard, Token};
use futures::future::{BoxFuture, Either, select};

use crate::support::env::Env;

pub const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// What a busy machine may take on top of any time that a test asserts.
pub const SLACK: Duration = Duration::from_secs(3);

pub fn key(name: &str) -> String {
    format!("bowline:lock:{{{name}}}")
}

/// Attempt ids that hold the lock.
pub fn holders(env: &Env, name: &str) -> Vec<String> {
    env.redis(&["HKEYS", &key(name)])
}

pub fn is_free(env: &Env, name: &str) -> bool {
    env.redis::<u64>(&["EXISTS", &key(name)]) == 0
}

/// The token of the hold in Redis.
pub fn stored_token(env: &Env, name: &str) -> Option<u64> {
    let held: Vec<String> = env.redis(&["HVALS", &key(name)]);
    // An extension stores the longest lease behind the token.
    held.first().map(|held| held.split(' ').next().unwrap_or(held).parse().unwrap())
}

/// The highest token reserved.
pub fn fence(env: &Env, name: &str) -> Option<u64> {
    env.redis(&["GET", &format!("{}:fence", key(name))])
}

/// How many tickets wait. List and zset must agree.
pub fn waiting(env: &Env, name: &str) -> u64 {
    let (queue, tickets) = (format!("{}:queue", key(name)), format!("{}:tickets", key(name)));
    let script = "return {redis.call('LLEN', KEYS[1]), redis.call('ZCARD', KEYS[2])}";
    let (list, zset): (u64, u64) = env.redis(&["EVAL", script, "2", &queue, &tickets]);
    assert_eq!(list, zset, "list and zset disagree");
    list
}

pub async fn until_waiting(env: &Env, name: &str, n: u64) {
    env.eventually(&format!("{n} tickets wait"), async || waiting(env, name) == n).await;
}

pub async fn until_free(env: &Env, name: &str) {
    env.eventually("the lock is free", async || is_free(env, name)).await;
}

pub type Waiting = BoxFuture<'static, bowline::Result<LockGuard>>;

/// Acquires as a task of its own.
pub fn acquiring(env: &Env, client: &Client, name: &str) -> Waiting {
    let lock = client.lock(name);
    env.spawn(async move { lock.lock().await })
}

/// `holder` holds the lock, and `client` waits for it.
pub async fn contended(env: &Env, holder: &Client, client: &Client) -> (LockGuard, Waiting) {
    let held = holder.lock("a").lock().await.unwrap();
    let waiter = acquiring(env, client, "a");
    until_waiting(env, "a", 1).await;
    (held, waiter)
}

/// Releases to the one who waits, who releases too.
pub async fn hand_over(env: &Env, held: LockGuard, waiter: Waiting) {
    let token = held.token();
    held.release().await.unwrap();
    let next = env.soon("the waiter", waiter).await.unwrap();
    assert!(next.token() > token);
    next.release().await.unwrap();
}

/// The guard is what the server has.
pub fn assert_holds(env: &Env, guard: &LockGuard) {
    assert!(guard.is_valid());
    assert_eq!(holders(env, guard.name()).len(), 1);
    assert_eq!(stored_token(env, guard.name()), Some(guard.token().get()));
}

/// Acquires and releases, and says with which token.
pub async fn pass(env: &Env, client: &Client, name: &str) -> Token {
    let guard = env.soon("the lock", client.lock(name).lock().into_future()).await.unwrap();
    assert_holds(env, &guard);
    let token = guard.token();
    guard.release().await.unwrap();
    token
}

/// Polls `future` until `condition` holds, and drops it then.
pub async fn drop_when<F: IntoFuture>(env: &Env, what: &str, future: F, condition: impl AsyncFnMut() -> bool)
where
    F::Output: std::fmt::Debug,
{
    let (future, condition) = (std::pin::pin!(future.into_future()), std::pin::pin!(env.eventually(what, condition)));
    if let Either::Left((output, _)) = select(future, condition).await {
        panic!("done before it was dropped: {output:?}");
    }
}
