//! Programs that are killed while they hold.

use std::future::pending;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use bowline::{Client, Config};

use crate::scene::{LEASE, Scene, within};

everywhere! {
    a_java_that_is_killed_leaves_one_lease,
    a_process_of_ours_that_is_killed_leaves_one_lease,
}

/// The URL, for the process that [`hold_until_killed`].
const CHILD: &str = "BOWLINE_INTEROP_CHILD";

pub(crate) const SHORT: Duration = Duration::from_secs(2);

/// The lock is free when one lease is over, and not before its time: less a renewal that was on its way.
#[track_caller]
fn assert_one_lease(killed: Instant) {
    assert!(killed.elapsed() > SHORT / 4 && killed.elapsed() < SHORT * 4, "{:?}", killed.elapsed());
}

async fn a_java_that_is_killed_leaves_one_lease(scene: &Scene) {
    let mut java = scene.another_java(&["watchdog=2000"]);
    java.ask("a", "lock lock killed:java").await.unwrap();
    let lock = scene.redisson().lock("killed:java");
    let waiting = tokio::spawn(async move { lock.lock().await });
    scene.listened_to("killed:java", 1).await;
    java.kill();
    let killed = Instant::now();
    within(LEASE / 2, "its lease has ended", waiting).await.unwrap().unwrap().release().await.unwrap();
    assert_one_lease(killed);
}

async fn a_process_of_ours_that_is_killed_leaves_one_lease(scene: &Scene) {
    let mut holder = Killed::start("holder", &scene.url());
    crate::scene::eventually("it holds", async || {
        scene.java.ask("a", "lock isLocked killed:ours").await.unwrap() == "true"
    })
    .await;
    let waiting = scene.java.ask("a", "lock lock killed:ours");
    scene.listened_to("killed:ours", 1).await;
    holder.0.kill().unwrap();
    let killed = Instant::now();
    within(LEASE / 2, "its lease has ended", waiting).await.unwrap();
    assert_one_lease(killed);
    scene.java.ask("a", "lock unlock killed:ours").await.unwrap();
}

/// A process of ours. Ends with the test, also if that fails.
pub(crate) struct Killed(Child);

impl Killed {
    /// Runs the test of that name in a process of its own.
    pub(crate) fn start(test: &str, url: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", test, "--nocapture"]).env(CHILD, url).stdout(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// In the process that is killed. `None` in any other.
async fn in_a_child() -> Option<Client> {
    let url = std::env::var(CHILD).ok()?;
    let config = Config::builder().lease(SHORT).build().unwrap();
    Some(bowline::tokio::connect_with(&*url, config).await.unwrap())
}

pub(crate) async fn count_until_killed() {
    let Some(client) = in_a_child().await else { return };
    let latch = client.redisson().count_down_latch("java:counted");
    loop {
        latch.count_down().await.unwrap();
    }
}

pub(crate) async fn take_until_killed() {
    let Some(client) = in_a_child().await else { return };
    let _taken = client.redisson().semaphore("java:taken:p").acquire().await.unwrap();
    pending::<()>().await;
}

pub(crate) async fn renew_until_killed() {
    let Some(client) = in_a_child().await else { return };
    let _taken = client.redisson().permit_semaphore("java:taken:t").acquire().await.unwrap();
    pending::<()>().await;
}

pub(crate) async fn hold_until_killed() {
    let Some(client) = in_a_child().await else { return };
    let _held = client.redisson().lock("killed:ours").lock().await.unwrap();
    pending::<()>().await;
}
