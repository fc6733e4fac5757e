//! Futures dropped at every point: nothing of them stays, and the next acquisition is served.

use std::future::IntoFuture;

use bowline::embedded::Server;
use bowline::tokio::Tokio;
use bowline::{ErrorKind, RedLock};
use futures::FutureExt;
use tokio::runtime::Builder;

use crate::masters::{Master, Masters, Program, ms};
use crate::support::env::{Env, on_runtime, on_the_embedded_server};
use crate::support::polled::{self, polled};
use crate::support::server::Server as RealServer;

on_the_embedded_server! {
    an_acquisition_dropped_after_any_number_of_polls_leaves_nothing,
    a_release_dropped_after_any_number_of_polls_is_finished,
    a_waiter_dropped_after_any_number_of_polls_leaves_nothing,
}

on_runtime! { run, tokio_multi, TokioMulti, an_acquisition_dropped_after_any_number_of_polls_leaves_nothing }

/// The lock `a` must be free after each call, and nothing of it may be left.
async fn sweep<T>(masters: &Masters, other: &Program, attempt: impl AsyncFnMut(usize) -> Option<T>) {
    let is_free = async || {
        let guard = masters.env.soon("it is free", other.locks.lock("a")).await.unwrap();
        guard.release().await.unwrap();
        masters.nothing_is_left().await;
    };
    polled::sweep(attempt, is_free).await;
}

async fn an_acquisition_dropped_after_any_number_of_polls_leaves_nothing(env: Env) {
    let masters = Masters::three(&env);
    let (program, other) = (masters.program().await, masters.program().await);
    sweep(&masters, &other, async |polls| {
        polled(program.locks.lock("a").into_future(), polls, async || {}).await.map(Result::unwrap)
    })
    .await;
}

async fn a_release_dropped_after_any_number_of_polls_is_finished(env: Env) {
    let masters = Masters::three(&env);
    let (program, other) = (masters.program().await, masters.program().await);
    sweep(&masters, &other, async |polls| {
        let guard = program.locks.lock("a").await.unwrap();
        // Another thread may finish the release within one poll, but not before the masters answer.
        if polls == 1 {
            masters.all.iter().for_each(Master::freeze);
        }
        let released = polled(guard.release(), polls, async || {}).await;
        masters.all.iter().for_each(Master::thaw);
        released.map(Result::unwrap)
    })
    .await;
}

async fn a_waiter_dropped_after_any_number_of_polls_leaves_nothing(env: Env) {
    let masters = Masters::three(&env);
    let (program, other) = (masters.program().await, masters.program().await);
    sweep(&masters, &other, async |polls| {
        let first = other.locks.lock("a").await.unwrap();
        let release = env.spawn({
            let env = env.clone();
            async move {
                env.sleep(ms(3)).await;
                first.release().await.unwrap();
            }
        });
        let polled = polled(program.locks.lock("a").into_future(), polls, async || {}).await.map(Result::unwrap);
        release.await;
        polled
    })
    .await;
}

/// The future is polled elsewhere. The embedded server needs no runtime for its answers.
#[test]
fn a_release_that_was_begun_outlives_its_runtime() {
    let servers = [(); 3].map(|()| Server::new());
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let guard = runtime.block_on(async {
        let mut clients = Vec::new();
        for server in &servers {
            clients.push(server.client(Tokio::current().unwrap()).await.unwrap());
        }
        RedLock::new(clients).unwrap().lock("a").await.unwrap()
    });
    let mut release = Box::pin(guard.release());
    assert!(release.as_mut().now_or_never().is_none(), "no task has run");
    drop(runtime);
    release.now_or_never().expect("it is over").unwrap();
    assert!(servers.iter().all(|server| !is_held(server.dump().into_keys())));
}

/// As above, but nobody reads the answers any more. The last words of the clients release it.
#[test]
fn a_release_that_was_begun_ends_with_its_runtime() {
    let servers = [(); 3].map(|()| RealServer::start());
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let guard = runtime.block_on(async {
        let mut clients = Vec::new();
        for server in &servers {
            clients.push(bowline::tokio::connect(&server.url()).await.unwrap());
        }
        RedLock::builder(clients).durable(true).build().unwrap().lock("a").await.unwrap()
    });
    let mut release = Box::pin(guard.release());
    assert!(release.as_mut().now_or_never().is_none(), "no task has run");
    drop(runtime);
    let released = release.now_or_never().expect("it is over");
    assert_eq!(released.unwrap_err().kind(), ErrorKind::Closed);
    assert!(servers.iter().all(|server| !is_held(server.keys().into_iter().map(String::into_bytes))));
}

fn is_held(keys: impl IntoIterator<Item = Vec<u8>>) -> bool {
    keys.into_iter().any(|key| key.ends_with(b"{a}"))
}
