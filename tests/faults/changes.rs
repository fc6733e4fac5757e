//! Streams of changes whose connections end, whose requests and answers get lost, and users without the right.

use bowline::{ErrorKind, HoldChange, HoldChanges, NameInUse, PrimitiveKind, Token};
use futures::StreamExt;

use crate::faulty::{Fault, faulty_client};
use crate::scene::{ms, pass};
use crate::support::env::{Env, on_every_runtime};

on_every_runtime! {
    without_the_right_there_are_no_changes_and_all_else_works,
    a_watch_goes_on_after_its_connection_was_closed,
    a_stream_goes_on_after_an_error_that_passes,
    a_dropped_stream_leaves_no_connection,
    a_key_of_another_program_is_an_error,
    a_run_is_over_when_others_may_run,
    so_many_holders_cannot_be_watched,
}

/// What a change says: `+` a hold was granted, `-` it was released, `!` it was lost.
fn shown(change: HoldChange) -> (char, Option<Token>) {
    match change {
        HoldChange::Granted(hold) => ('+', hold.token),
        HoldChange::Released(hold) => ('-', hold.token),
        HoldChange::Lost(hold) => ('!', hold.token),
        other => panic!("{other:?}"),
    }
}

async fn next(env: &Env, changes: &mut HoldChanges) -> (char, Option<Token>) {
    shown(env.soon("a change", changes.next()).await.unwrap().unwrap())
}

/// The connections that watch keys, by their numbers.
fn watches(env: &Env) -> Vec<String> {
    let list: String = env.redis(&["CLIENT", "LIST"]);
    let field = |line: &str, name: &str| line.split(' ').find_map(|field| field.strip_prefix(name).map(str::to_owned));
    let watching = list.lines().filter(|line| field(line, "flags=").unwrap().contains('t'));
    watching.map(|line| field(line, "id=").unwrap()).collect()
}

async fn without_the_right_there_are_no_changes_and_all_else_works(env: Env) {
    env.redis::<()>(&["ACL", "SETUSER", "poor", "reset", "on", ">secret", "allkeys", "allchannels", "allcommands"]);
    env.redis::<()>(&["ACL", "SETUSER", "poor", "-client"]);
    let url = env.url().replace("redis://", "redis://poor:secret@");
    let client = env.client_at(&url, |config| config).await.unwrap();
    let mut changes = client.lock("a").changes();
    let error = env.soon("an error", changes.next()).await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.name()), (ErrorKind::Denied, Some("a")));
    assert!(error.to_string().contains("+client|tracking"), "{error}");
    assert!(changes.next().await.is_none());
    pass(&env, &client, "a").await;
}

/// The leases are so long that nobody looks without being told.
async fn a_watch_goes_on_after_its_connection_was_closed(env: Env) {
    let (client, observer) = (env.client().await, env.client_with(|config| config.lease(ms(90_000))).await);
    let lock = client.lock("a");
    let mut changes = observer.lock("a").changes();
    for _ in 0..3 {
        let guard = lock.lock().await.unwrap();
        assert_eq!(next(&env, &mut changes).await, ('+', Some(guard.token())));
        env.eventually("it watches", async || watches(&env).len() == 1).await;
        let watch = watches(&env).remove(0);
        env.redis::<()>(&["CLIENT", "KILL", "ID", &watch]);
        let token = guard.token();
        guard.release().await.unwrap();
        assert_eq!(next(&env, &mut changes).await, ('-', Some(token)));
    }
}

async fn a_stream_goes_on_after_an_error_that_passes(env: Env) {
    let client = env.client().await;
    let (observer, faults) = faulty_client(&env, |config| config.retry_timeout(ms(0))).await;
    let mut changes = observer.lock("a").changes();
    let guard = client.lock("a").lock().await.unwrap();
    assert_eq!(next(&env, &mut changes).await, ('+', Some(guard.token())));
    for fault in [Fault::LoseRequest, Fault::LoseReply, Fault::Unreachable] {
        faults.next("lock_inspect", [fault.clone()]);
        // A heartbeat of the lock is enough of a change.
        env.redis::<()>(&["PEXPIRE", "bowline:lock:{a}", "60000"]);
        let error = env.soon("an error", changes.next()).await.unwrap().unwrap_err();
        assert!(error.is_retryable(), "{fault:?}: {error}");
    }
    let token = guard.token();
    guard.release().await.unwrap();
    assert_eq!(next(&env, &mut changes).await, ('-', Some(token)));
}

async fn a_dropped_stream_leaves_no_connection(env: Env) {
    let observer = env.client().await;
    let mut streams: Vec<HoldChanges> = (0..3).map(|_| observer.lock("a").changes()).collect();
    let guard = observer.lock("a").lock().await.unwrap();
    for changes in &mut streams {
        assert_eq!(next(&env, changes).await.0, '+');
    }
    env.eventually("they watch", async || watches(&env).len() == 1).await;
    drop(streams.pop());
    drop(streams.pop());
    guard.release().await.unwrap();
    assert_eq!(next(&env, &mut streams[0]).await.0, '-');
    assert_eq!(watches(&env).len(), 1, "one stream is left");
    drop(streams);
    env.eventually("nobody watches", async || watches(&env).is_empty()).await;
    // A stream that was never polled watches nothing.
    let _unused = observer.lock("a").changes();
    env.sleep(ms(200)).await;
    assert_eq!(watches(&env), Vec::<String>::new());
}

async fn a_key_of_another_program_is_an_error(env: Env) {
    let observer = env.client().await;
    env.redis::<()>(&["SET", "bowline:lock:{a}", "1", "PX", "60000"]);
    let mut changes = observer.lock("a").changes();
    let error = env.soon("an error", changes.next()).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WrongType);
    assert!(changes.next().await.is_none());
    env.redis::<()>(&["DEL", "bowline:lock:{a}"]);
}

/// Its period is kept from others for a while, which is no hold of its own.
async fn a_run_is_over_when_others_may_run(env: Env) {
    let (client, observer) = (env.client().await, env.client().await);
    let mut changes = observer.changes(NameInUse::new(PrimitiveKind::Once, "report"));
    let once = client.once("report", ms(2_000)).at_least(ms(500));
    let ran = env.soon("it runs", once.run(|_| async {})).await.unwrap();
    assert!(ran.is_some());
    assert_eq!(next(&env, &mut changes).await.0, '+');
    assert_eq!(next(&env, &mut changes).await.0, '-');
}

async fn so_many_holders_cannot_be_watched(env: Env) {
    let client = env.client().await;
    let semaphore = client.semaphore("a", 1000);
    let mut permits = Vec::new();
    for _ in 0..999 {
        permits.push(semaphore.acquire().await.unwrap());
    }
    let mut changes = semaphore.changes();
    for _ in 0..999 {
        assert_eq!(next(&env, &mut changes).await.0, '+');
    }
    permits.push(semaphore.acquire().await.unwrap());
    let error = env.soon("an error", changes.next()).await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.name()), (ErrorKind::Unsupported, Some("a")));
    assert!(changes.next().await.is_none());
    for permit in permits {
        permit.release().await.unwrap();
    }
}
