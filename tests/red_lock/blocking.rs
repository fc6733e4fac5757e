//! The blocking facade: threads as holders, drops that wait, the same settings.

use std::thread;

use bowline::blocking::{Client, MultiLock, RedLock, RedLockBuilder};
use bowline::{ErrorKind, Holder};
use futures::channel::oneshot;

use crate::masters::{Masters, Program, ms};
use crate::on_masters;
use crate::support::env::{Env, on_runtime};

on_masters! {
    a_thread_re_enters_what_it_holds_and_others_do_not,
    a_dropped_guard_has_released,
    a_guard_of_a_holder_moves_to_another_thread,
    work_is_run_and_the_lock_released,
    it_is_acquired_together_with_others,
    the_settings_are_those_of_the_async_builder,
}

on_runtime! { run_embedded, refused, TokioMulti, a_thread_that_drives_tasks_may_not_block }

/// Makes blocking calls on a thread of its own.
pub(crate) async fn on_a_thread<T: Send + 'static>(calls: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, output) = oneshot::channel();
    thread::spawn(move || done.send(calls()));
    output.await.expect("the thread panicked")
}

fn blocking(program: &Program) -> RedLock {
    RedLock::from(program.locks.clone())
}

async fn a_thread_re_enters_what_it_holds_and_others_do_not(env: Env) {
    let masters = Masters::three(&env);
    let locks = blocking(&masters.program().await);
    on_a_thread(move || {
        let guard = locks.lock("a").timeout(ms(20_000)).block().unwrap();
        assert!(guard.is_valid());
        assert_eq!(locks.inspect("a").unwrap().token(), Some(guard.token()));
        let again = locks.try_lock("a").block().unwrap().expect("the thread holds it");
        assert_eq!(again.token(), guard.token());
        thread::scope(|scope| {
            scope.spawn(|| assert!(locks.try_lock("a").block().unwrap().is_none(), "another thread"));
        });
        assert_eq!((locks.stats().held, locks.stats().acquired), (1, 1));
        again.release().unwrap();
        assert!(guard.is_valid());
        guard.release().unwrap();
    })
    .await;
    masters.nothing_is_left().await;
}

async fn a_dropped_guard_has_released(env: Env) {
    let masters = Masters::three(&env);
    let [locks, others] = [&masters.program().await, &masters.program().await].map(blocking);
    // The turn is released after the votes, so a release in the background would take a while.
    masters.all.iter().for_each(|master| master.answer_after(ms(50)));
    on_a_thread(move || {
        drop(locks.lock("a").block().unwrap());
        others.try_lock("a").block().unwrap().expect("the drop waits for the masters").release().unwrap();
    })
    .await;
    masters.nothing_is_left().await;
}

async fn a_guard_of_a_holder_moves_to_another_thread(env: Env) {
    let masters = Masters::three(&env);
    let locks = blocking(&masters.program().await);
    let guard = on_a_thread(move || locks.lock("a").holder(&Holder::new()).block().unwrap()).await;
    on_a_thread(move || {
        assert_eq!(guard.lost_within(ms(1)).unwrap(), None);
        guard.release().unwrap();
    })
    .await;
    masters.nothing_is_left().await;
}

async fn work_is_run_and_the_lock_released(env: Env) {
    let masters = Masters::three(&env);
    let locks = blocking(&masters.program().await);
    on_a_thread(move || {
        let token = locks.lock("a").run(|guard| guard.token()).unwrap();
        let next = locks.try_lock("a").run(|guard| guard.token()).unwrap().expect("it is released");
        assert!(next > token);
    })
    .await;
    masters.nothing_is_left().await;
}

async fn it_is_acquired_together_with_others(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    let (locks, client) = (blocking(&program), Client::new(program.clients[0].clone()));
    on_a_thread(move || {
        let both = MultiLock::new().red_lock(&locks, "b").lock(&client.lock("a"));
        let guard = both.acquire().block().unwrap();
        assert_eq!(guard.names().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(guard.token("b"), locks.inspect("b").unwrap().token());
        guard.release().unwrap();
    })
    .await;
    masters.nothing_is_left().await;
}

async fn the_settings_are_those_of_the_async_builder(env: Env) {
    let masters = Masters::three(&env);
    let program = masters.program().await;
    let clients = || program.clients.iter().cloned().map(Client::new);
    let refused = |builder: RedLockBuilder| builder.build().unwrap_err().to_string();
    let error = RedLock::new(clients().take(2)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(refused(RedLock::builder(clients()).node_timeout(ms(0))).contains("node_timeout"));
    assert!(refused(RedLock::builder(clients()).longest_lease(ms(0))).contains("lease"));
    let locks = RedLock::builder(clients()).longest_lease(ms(1000)).durable(true).build().unwrap();
    let durable = RedLock::builder(clients()).durable(true).build().unwrap();
    on_a_thread(move || {
        let error = locks.lock("a").lease(ms(1001)).block().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        // Real masters that were just started would not count yet.
        durable.lock("a").block().unwrap().release().unwrap();
    })
    .await;
    masters.nothing_is_left().await;
}

async fn a_thread_that_drives_tasks_may_not_block(env: Env) {
    let masters = Masters::three(&env);
    let locks = blocking(&masters.program().await);
    let errors = [
        locks.lock("a").holder(&Holder::new()).block().map(drop).unwrap_err(),
        locks.try_lock("a").holder(&Holder::new()).block().map(drop).unwrap_err(),
        locks.inspect("a").map(drop).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains("tokio::task::spawn_blocking"), "{error}");
    }
    masters.nothing_is_left().await;
}
