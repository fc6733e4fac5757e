//! Permits that are given back in the background, and calls that have taken none for certain.

use std::time::Duration;

use bowline::ErrorKind;
use redis::Value;

use super::{PERMITS, end_permits, other};
use crate::faulty::{Fault, faulty_client};
use crate::scene::ms;
use crate::support::env::{Env, on_every_runtime};

on_every_runtime! {
    a_lease_shorter_than_the_retry_timeout_leaves_time_for_the_background,
    a_call_that_was_refused_gives_nothing_back,
    a_call_that_was_never_sent_gives_nothing_back,
    a_release_that_is_denied_is_not_sent_again,
    permits_are_given_back_when_a_login_is_right_again,
    the_right_to_each_kind_of_channel_is_tried_once,
}

/// The bowline user, whose key is its own, with rights to what is counted, but not to Redisson's channels.
const NAME: &str = "bowline:s";

fn rule(env: &Env, rights: &[&str]) {
    env.redis::<()>(&[&["ACL", "SETUSER", "bowline"], rights].concat());
}

/// What a request that should not be sent would take to arrive.
async fn a_while(env: &Env) {
    env.sleep(ms(100)).await;
}

/// The release of the caller fails after the retry timeout, when a lease has passed long since.
async fn a_lease_shorter_than_the_retry_timeout_leaves_time_for_the_background(env: Env) {
    let (client, faults) =
        faulty_client(&env, |config| config.lease(ms(2500)).retry_timeout(ms(3000)).command_timeout(ms(500))).await;
    let semaphore = client.redisson().semaphore(PERMITS);
    assert!(semaphore.try_set_permits(2).await.unwrap());
    let both = semaphore.acquire_many(2).await.unwrap();
    faults.always("shared_release", Fault::Unreachable);
    assert_eq!(both.release().await.unwrap_err().kind(), ErrorKind::Unavailable);
    faults.heal();
    env.eventually("they are given back", async || semaphore.available().await.unwrap() == 2).await;
    end_permits(&env);
}

async fn a_call_that_was_refused_gives_nothing_back(env: Env) {
    let (client, others) = (env.client().await, other(&env).await);
    env.allow_forever(NAME);
    rule(&env, &["+incrby"]);
    assert!(others.redisson().semaphore(NAME).try_set_permits(2).await.unwrap());
    // What others have left but the semaphore is the mark of the call that has set it.
    let keys = || env.redis::<i64>(&["DBSIZE"]);
    let before = keys();
    let semaphore = client.redisson().semaphore(NAME);
    for error in [semaphore.try_acquire().await.map(drop), semaphore.drain().await.map(drop)] {
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Denied);
    }
    a_while(&env).await;
    assert_eq!((client.counts.of("shared_take"), client.counts.of("shared_release"), keys()), (2, 0, before));
    env.redis::<i64>(&["DEL", NAME]);
}

/// But one that may have been executed before it was refused, does.
async fn a_call_that_was_never_sent_gives_nothing_back(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.retry_timeout(ms(300))).await;
    let semaphore = client.redisson().semaphore(PERMITS);
    assert!(semaphore.try_set_permits(2).await.unwrap());
    faults.always("shared_take", Fault::Unreachable);
    assert_eq!(semaphore.try_acquire().await.unwrap_err().kind(), ErrorKind::Unavailable);
    a_while(&env).await;
    assert_eq!(faults.calls("shared_release"), 0);
    faults.heal();
    faults.next("shared_take", [Fault::LoseReply, Fault::Refuse("NOPERM no")]);
    assert_eq!(semaphore.try_acquire().await.unwrap_err().kind(), ErrorKind::Denied);
    env.eventually("it gives back", async || faults.answered("shared_release") == 1).await;
    assert_eq!(semaphore.available().await.unwrap(), 2);
    end_permits(&env);
}

/// The right is taken away when the permits are out.
/// The password is another one for a while, and all connections are lost meanwhile.
async fn permits_are_given_back_when_a_login_is_right_again(env: Env) {
    let rule = ["ACL", "SETUSER", "u", "reset", "on", ">secret", "allkeys", "allchannels", "allcommands"];
    env.redis::<()>(&rule);
    let url = env.url().replace("redis://", "redis://u:secret@");
    let client = env.client_at(&url, |config| config.command_timeout(ms(300))).await.unwrap();
    let (semaphore, fresh) = (client.redisson().semaphore(PERMITS), other(&env).await.redisson().semaphore(PERMITS));
    assert!(fresh.try_set_permits(2).await.unwrap());
    let (released, dropped) = (semaphore.acquire().await.unwrap(), semaphore.acquire().await.unwrap());
    env.redis::<()>(&["ACL", "SETUSER", "u", "resetpass", ">other"]);
    env.redis::<u64>(&["CLIENT", "KILL", "USER", "u"]);
    env.eventually("the login is refused", async || {
        semaphore.available().await.is_err_and(|error| error.kind() == ErrorKind::Denied)
    })
    .await;
    drop(dropped);
    assert_eq!(released.release().await.unwrap_err().kind(), ErrorKind::Denied);
    env.redis::<()>(&rule);
    env.eventually("they are given back", async || fresh.available().await.unwrap() == 2).await;
    end_permits(&env);
}

async fn a_release_that_is_denied_is_not_sent_again(env: Env) {
    let (client, others) = (env.client().await, other(&env).await);
    env.allow_forever(NAME);
    rule(&env, &["+incrby", "&redisson_sc:*"]);
    let (semaphore, fresh) = (client.redisson().semaphore(NAME), others.redisson().semaphore(NAME));
    assert!(fresh.try_set_permits(2).await.unwrap());
    let (released, dropped) = (semaphore.acquire().await.unwrap(), semaphore.acquire().await.unwrap());
    rule(&env, &["resetchannels", "&bowline:inbox:*"]);
    assert_eq!(released.release().await.unwrap_err().kind(), ErrorKind::Denied);
    a_while(&env).await;
    assert_eq!(client.counts.of("shared_release"), 1);
    drop(dropped);
    env.eventually("it is sent", async || client.counts.of("shared_release") == 2).await;
    a_while(&env).await;
    assert_eq!((client.counts.of("shared_release"), fresh.available().await.unwrap()), (2, 0));
    env.redis::<i64>(&["DEL", NAME]);
}

/// Those to whom the right is tried.
struct Tries(redis::Connection);

const LOCK: &str = "bowline:l";
const TRIES: [&str; 2] = ["redisson_lock__channel:{bowline:l}:check", "redisson_sc:{bowline:s}:check"];

impl Tries {
    fn listen(env: &Env) -> Self {
        let mut connection = env.server().client();
        for channel in TRIES {
            let _: Value = redis::cmd("SUBSCRIBE").arg(channel).query(&mut connection).unwrap();
        }
        connection.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        Self(connection)
    }

    /// How often it was tried for locks and for permits, since the last call.
    fn heard(&mut self, env: &Env) -> [usize; 2] {
        env.redis::<i64>(&["PUBLISH", TRIES[0], "end"]);
        let mut heard = [0; 2];
        loop {
            let Value::Array(message) = self.0.recv_response().unwrap() else { panic!("no message") };
            let [_, Value::BulkString(channel), Value::BulkString(payload)] = &*message else { panic!("{message:?}") };
            if payload == b"end" {
                return heard;
            }
            heard[TRIES.iter().position(|try_| try_.as_bytes() == channel).unwrap()] += 1;
        }
    }
}

/// That of locks says nothing of that of permits, and neither does a refusal.
async fn the_right_to_each_kind_of_channel_is_tried_once(env: Env) {
    env.allow_forever(NAME);
    rule(&env, &["+incrby"]);
    let mut tries = Tries::listen(&env);
    let others = other(&env).await;
    assert!(others.redisson().semaphore(NAME).try_set_permits(2).await.unwrap());
    for locks_first in [true, false] {
        let client = env.client().await;
        let lock = async || client.redisson().lock(LOCK).try_lock().await.map(|guard| guard.unwrap());
        let permits = async || client.redisson().semaphore(NAME).try_acquire().await.map(|permits| permits.unwrap());
        for of_locks in [locks_first, !locks_first] {
            let (right, once) =
                if of_locks { ("&redisson_lock__channel:*", [1, 0]) } else { ("&redisson_sc:*", [0, 1]) };
            for (granted, expected) in [(false, [0, 0]), (true, once), (true, [0, 0])] {
                if granted {
                    rule(&env, &[right]);
                }
                let kind = match of_locks {
                    true => async { lock().await?.release().await }.await,
                    false => async { permits().await?.release().await }.await,
                };
                assert_eq!(kind.map_err(|error| error.kind()), if granted { Ok(()) } else { Err(ErrorKind::Denied) });
                assert_eq!(tries.heard(&env), expected, "{locks_first} {of_locks} {granted}");
            }
        }
        rule(&env, &["resetchannels", "&bowline:inbox:*"]);
    }
    env.redis::<i64>(&["DEL", NAME]);
}
