//! A key that something else wrote.

use std::time::Duration;

use bowline::{ErrorKind, Loss};

use crate::lab::{Env, on_every_runtime};

on_every_runtime! {
    a_key_of_another_type_is_a_typed_error,
    in_a_renewal_only_the_lock_with_the_wrong_type_is_lost,
}

async fn a_key_of_another_type_is_a_typed_error(env: Env) {
    let client = env.client().await;
    let lock = client.lock("a");
    for key in ["bowline:lock:{a}", "bowline:lock:{a}:queue"] {
        env.allow_forever(key);
        let () = env.redis(&["SET", key, "mine"]);
        let errors = [
            env.soon("lock", lock.lock()).await.unwrap_err(),
            env.soon("try_lock", lock.try_lock()).await.unwrap_err(),
        ];
        for error in errors {
            assert_eq!((error.kind(), error.name()), (ErrorKind::WrongType, Some("a")), "{key}: {error}");
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
