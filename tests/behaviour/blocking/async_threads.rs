//! On a thread that drives async tasks, blocking is an error that says so, and beside one it works.

use std::thread;
use std::time::Duration;

use bowline::blocking::{Client, connect};
use bowline::{Error, ErrorKind, Holder, Result};

use crate::blocking::lab::{LONG, Lab, Place};
use crate::support::server::Server;

fn refused<T: std::fmt::Debug>(result: Result<T>, instead: &str) {
    let error: Error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let text = error.to_string();
    assert!(text.contains(instead), "{text}");
}

/// Everything that blocks, where it must not.
fn all_refused(client: &Client, instead: &str) {
    refused(client.lock("a").lock().block(), instead);
    refused(client.lock("a").try_lock().block(), instead);
    refused(client.lock("a").inspect(), instead);
    refused(client.rw_lock("a").read().block(), instead);
    refused(client.semaphore("a", 1).acquire().block(), instead);
    refused(client.latch("a").wait().block(), instead);
    refused(client.latch("a").count(), instead);
    refused(client.close(), instead);
}

fn works(client: &Client) {
    let guard = client.lock("a").lock().timeout(LONG).block().unwrap();
    assert!(guard.is_valid());
    guard.release().unwrap();
}

#[test]
fn on_tokio() {
    let server = Server::start();
    for runtime in [tokio::runtime::Builder::new_multi_thread(), tokio::runtime::Builder::new_current_thread()] {
        let runtime = { runtime }.enable_all().build().unwrap();
        let url = server.url();
        runtime.block_on(async {
            let client = Client::new(bowline::tokio::connect(&url).await.unwrap());
            all_refused(&client, "tokio::task::spawn_blocking");
            let here = client.clone();
            tokio::spawn(async move { all_refused(&here, "tokio::task::spawn_blocking") }).await.unwrap();
            let here = client.clone();
            tokio::task::spawn_blocking(move || works(&here)).await.unwrap();
            // A guard that is dropped on such a thread is released all the same.
            let here = client.clone();
            let job = move || here.lock("a").lock().holder(&Holder::new()).block().unwrap();
            drop(tokio::task::spawn_blocking(job).await.unwrap());
            client.as_async().lock("a").lock().timeout(LONG).await.unwrap().release().await.unwrap();
        });
    }
}

/// The pool has one thread, which runs both jobs. The first returns its guard: the compiler asks for a holder, because
/// the thread would enter what it holds for the second job too.
#[test]
fn two_jobs_of_one_pool_thread_exclude_each_other() {
    let server = Server::start();
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).max_blocking_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::new(bowline::tokio::connect(&server.url()).await.unwrap());
        let job = || {
            let lock = client.lock("a");
            tokio::task::spawn_blocking(move || {
                (thread::current().id(), lock.try_lock().holder(&Holder::new()).block().unwrap())
            })
        };
        let (first_thread, first) = job().await.unwrap();
        let first = first.expect("it is free");
        let (second_thread, second) = job().await.unwrap();
        assert_eq!(first_thread, second_thread, "the pool has one thread");
        assert!(second.is_none(), "two jobs hold it, with token {}", first.token());
        assert!(first.is_valid());
        drop(first);
        // Dropped on an async thread, it is released in the background.
        let lock = client.lock("a");
        let waits = move || lock.lock().timeout(Duration::from_secs(10)).holder(&Holder::new()).block().map(drop);
        tokio::task::spawn_blocking(waits).await.unwrap().expect("released");
    });
}

#[test]
fn on_smol() {
    let server = Server::start();
    let client = smol::block_on(bowline::smol::connect(&server.url())).unwrap();
    let client = Client::new(client);
    let here = client.clone();
    smol::block_on(smol::spawn(async move {
        all_refused(&here, "smol::unblock");
        let there = here.clone();
        smol::unblock(move || works(&there)).await;
        refused(connect("redis://127.0.0.1:1/"), "smol::unblock");
    }));
    works(&client);
}

#[test]
fn on_async_std() {
    let server = Server::start();
    let client = async_std::task::block_on(bowline::async_std::connect(&server.url())).unwrap();
    let client = Client::new(client);
    let here = client.clone();
    async_std::task::block_on(async_std::task::spawn(async move {
        all_refused(&here, "async_std::task::spawn_blocking");
        let there = here.clone();
        async_std::task::spawn_blocking(move || works(&there)).await;
    }));
    works(&client);
}

/// A runtime that goes away is an error of those who wait, not a hang.
#[test]
fn a_runtime_that_shuts_down_is_an_error() {
    let lab = Lab::new(Place::NoRuntime);
    let holder = lab.client();
    let guard = holder.lock("a").lock().block().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let client = Client::new(runtime.block_on(bowline::tokio::connect(&lab.url())).unwrap());
    let waits = client.lock("a");
    let waiter = thread::spawn(move || waits.lock().block().map(drop).unwrap_err().kind());
    crate::blocking::lab::eventually("it waits", || holder.lock("a").inspect().unwrap().waiters == 1);
    runtime.shutdown_timeout(Duration::from_secs(5));
    assert_eq!(waiter.join().unwrap(), ErrorKind::Closed);
    assert_eq!(client.lock("a").lock().block().unwrap_err().kind(), ErrorKind::Closed);
    guard.release().unwrap();
}
