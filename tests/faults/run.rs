//! Scoped use whose release does not go through.

use bowline::ErrorKind;

use crate::faulty::{Fault, faulty_client};
use crate::scene::{ms, until_free};
use crate::support::env::{Env, on_every_runtime};

on_every_runtime! {
    work_that_its_lease_covered_is_done_whatever_the_server_says_afterwards,
    work_beside_a_foreign_value_is_an_error,
}

async fn work_that_its_lease_covered_is_done_whatever_the_server_says_afterwards(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config.retry_timeout(ms(1000))).await;
    for fault in [
        Fault::LoseRequest,
        Fault::LoseReply,
        Fault::Refuse("BUSY Redis is busy running a script"),
        Fault::Refuse("NOPERM not any more"),
    ] {
        faults.always("lock_release", fault);
        assert_eq!(client.lock("a").lock().run(|_| async { 7 }).await.unwrap(), 7);
        let tried = client.lock("b").try_lock().run(|_| async { 7 }).await.unwrap();
        assert_eq!(tried, Some(7));
        // Other scripts than the release free the lock.
        until_free(&env, "a").await;
        until_free(&env, "b").await;
        faults.heal();
    }
}

async fn work_beside_a_foreign_value_is_an_error(env: Env) {
    let (client, faults) = faulty_client(&env, |config| config).await;
    faults.next("lock_release", [Fault::Refuse("WRONGTYPE Operation against a key holding the wrong kind of value")]);
    let error = client.lock("a").lock().run(|_| async { 7 }).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WrongType);
    until_free(&env, "a").await;
}
