//! A key that something else wrote.

use std::error::Error as _;
use std::time::Duration;

use bowline::{ErrorKind, Loss};

use crate::lab::{Env, on_every_runtime};

on_every_runtime! {
    a_key_of_another_type_is_a_typed_error,
    every_primitive_names_a_key_of_another_type,
    in_a_renewal_only_the_lock_with_the_wrong_type_is_lost,
}

async fn a_key_of_another_type_is_a_typed_error(env: Env) {
    let client = env.client().await;
    let lock = client.lock("a");
    for (key, written) in [("bowline:lock:{a}", "a hash"), ("bowline:lock:{a}:queue", "a list")] {
        env.allow_forever(key);
        let () = env.redis(&["SET", key, "mine"]);
        let errors = [
            env.soon("lock", lock.lock()).await.unwrap_err(),
            env.soon("try_lock", lock.try_lock()).await.unwrap_err(),
        ];
        for error in errors {
            assert_eq!((error.kind(), error.name()), (ErrorKind::WrongType, Some("a")), "{key}: {error}");
            assert_names(&error, key, "a string", written);
        }
        if !key.ends_with("queue") {
            assert_eq!(lock.inspect().await.unwrap_err().kind(), ErrorKind::WrongType);
            assert_eq!(lock.force_release().await.unwrap_err().kind(), ErrorKind::WrongType);
        }
        assert_eq!(env.redis::<String>(&["GET", key]), "mine", "the stranger's value");
        let () = env.redis(&["DEL", key]);
        super::free_at_once(&env, &lock).await;
    }
}

/// The error names the key and both types, and neither another key, nor a script, nor a line.
fn assert_names(error: &bowline::Error, key: &str, found: &str, written: &str) {
    assert_eq!(error.kind(), ErrorKind::WrongType, "{error}");
    let told = error.source().map(ToString::to_string).unwrap_or_default();
    assert_eq!(told, format!("WRONGTYPE the key {key} holds {found}, where bowline writes {written}"));
}

async fn every_primitive_names_a_key_of_another_type(env: Env) {
    let client = env.client().await;
    let lists = ["bowline:rw:{a}", "bowline:sem:{a}:leases", "bowline:latch:{a}", "bowline:lock:{a}:fence"];
    let set = "bowline:latch:{b}:calls";
    for key in lists {
        env.allow_forever(key);
        let () = env.redis(&["RPUSH", key, "mine"]);
    }
    env.allow_forever(set);
    let () = env.redis(&["SADD", set, "mine"]);
    let a_list = |error: bowline::Error, key, written| assert_names(&error, key, "a list", written);
    a_list(client.rw_lock("a").read().await.map(drop).unwrap_err(), lists[0], "a hash");
    a_list(client.rw_lock("a").write().await.map(drop).unwrap_err(), lists[0], "a hash");
    a_list(client.semaphore("a", 2).acquire().await.map(drop).unwrap_err(), lists[1], "a sorted set");
    a_list(client.latch("a").count_down().await.map(drop).unwrap_err(), lists[2], "a hash");
    a_list(client.latch("a").inspect().await.map(drop).unwrap_err(), lists[2], "a hash");
    a_list(client.lock("a").lock().await.map(drop).unwrap_err(), lists[3], "a string");
    let error = client.latch("b").try_set(1, Duration::from_secs(1)).await.unwrap_err();
    assert_names(&error, set, "a value of another type", "a sorted set");
    for key in lists.iter().chain([&set]) {
        let () = env.redis(&["DEL", key]);
    }
}

async fn in_a_renewal_only_the_lock_with_the_wrong_type_is_lost(env: Env) {
    let client = env.client_with(|config| config.lease(Duration::from_millis(900))).await;
    let good = client.lock("good").lock().await.unwrap();
    let bad = client.lock("bad").lock().await.unwrap();
    let more = client.lock("more").lock().await.unwrap();
    let key = "bowline:lock:{bad}";
    env.allow_forever(key);
    let () = env.redis(&["SET", key, "mine"]);
    assert_eq!(env.soon("the loss is told", bad.lost()).await, Loss::Gone);
    client.counts.reset();
    env.eventually("several more renewals", async || client.counts.of("lock_renew") >= 5).await;
    assert!(good.is_valid() && more.is_valid());
    assert_eq!(bad.release().await.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(env.redis::<String>(&["GET", key]), "mine", "the stranger's value");
    let () = env.redis(&["DEL", key]);
    good.release().await.unwrap();
    more.release().await.unwrap();
}
