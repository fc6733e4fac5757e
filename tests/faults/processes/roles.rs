//! What the processes do.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use bowline::{Client, LockGuard};
use rustix::time::{ClockId, clock_gettime};

use super::ms;
use super::process::FILE;
use super::registers::Registers;

pub(crate) fn say(what: &str) {
    println!("> {what}");
}

pub(crate) fn listen() -> String {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    line.trim().to_owned()
}

pub(crate) fn acquire(runtime: &tokio::runtime::Runtime, client: &Client) -> LockGuard {
    let lock = client.lock("a");
    let guard = runtime.block_on(async { lock.lock().await }).unwrap();
    say(&format!("granted {}", guard.token()));
    guard
}

/// Acquires, holds until told to release, and releases.
pub(crate) fn holder(runtime: &tokio::runtime::Runtime, client: &Client) {
    let guard = acquire(runtime, client);
    assert_eq!(listen(), "release");
    runtime.block_on(guard.release()).unwrap();
    say("released");
}

pub(crate) type Guard = Box<dyn Send>;

pub(crate) fn drop_later(guard: impl Send + 'static) -> Guard {
    Box::new(guard)
}

/// Acquires, and holds until told to go.
pub(crate) fn keeper(
    runtime: &tokio::runtime::Runtime,
    client: &Client,
    acquired: impl Future<Output = bowline::Result<Guard>>,
) {
    let guard = runtime.block_on(acquired).unwrap();
    say("holds");
    assert_eq!(listen(), "go");
    drop(guard);
    runtime.block_on(client.close());
}

/// Acquires, and notices when it wakes from a sleep longer than its lease. Then it says whether it believes that it
/// holds the lock, writes all the same, and says how that went and why it lost the lock.
pub(crate) fn sleeper(runtime: &tokio::runtime::Runtime, client: &Client, url: &str, lease: Duration) {
    let mut registers = Registers::open(url);
    let guard = acquire(runtime, client);
    // Read once per round, so that a sleep anywhere after this shows.
    let mut last = Instant::now();
    registers.write(guard.token().get());
    loop {
        let now = Instant::now();
        if now - last >= lease {
            break;
        }
        last = now;
        thread::sleep(ms(5));
    }
    let valid = guard.is_valid();
    let accepted = registers.write(guard.token().get());
    let loss = runtime.block_on(guard.lost());
    say(&format!("valid {valid}"));
    say(&format!("accepted {accepted}"));
    say(&format!("lost {loss:?}"));
}

pub(crate) const TASKS: usize = 8;

/// Tasks that acquire again and again for three seconds. Each writes down what it did and when.
pub(crate) async fn compete(client: &Client) {
    say("ready");
    tokio::task::spawn_blocking(listen).await.unwrap();
    let start = Instant::now();
    let tasks = (0..TASKS).map(|task| {
        let lock = client.lock("a");
        tokio::spawn(async move {
            let mut history = String::new();
            while start.elapsed() < ms(3000) {
                history += &format!("invoke {} {task} 0\n", nanoseconds());
                let guard = lock.lock().await.unwrap();
                history += &format!("grant {} {task} {}\n", nanoseconds(), guard.token());
                tokio::task::yield_now().await;
                assert!(guard.is_valid());
                history += &format!("release {} {task} {}\n", nanoseconds(), guard.token());
                guard.release().await.unwrap();
            }
            history
        })
    });
    let mut history = String::new();
    for task in tasks.collect::<Vec<_>>() {
        history += &task.await.unwrap();
    }
    fs::write(std::env::var(FILE).unwrap(), history).unwrap();
    client.close().await;
}

/// The clock that all processes of a machine share.
pub(crate) fn nanoseconds() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap() * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap()
}
