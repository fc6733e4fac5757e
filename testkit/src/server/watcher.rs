//! Looks for keys without a TTL as long as a server runs.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use redis::{Connection, RedisResult};

use super::process::connect;
use crate::memory::is_forever;

/// Looks at every key all the time: none may ever be without a TTL.
pub(super) struct Watcher {
    pub(super) watch: Arc<Watch>,
    thread: JoinHandle<()>,
}

#[derive(Default)]
pub(super) struct Watch {
    stop: AtomicBool,
    pub(super) allowed: Mutex<BTreeSet<String>>,
    pub(super) seen: Mutex<BTreeSet<String>>,
}

impl Watcher {
    pub(super) fn start(url: String) -> Self {
        let watch = Arc::new(Watch::default());
        let thread = thread::spawn({
            let watch = Arc::clone(&watch);
            move || watch.run(&url)
        });
        Self { watch, thread }
    }

    /// What was seen, after a last look.
    pub(super) fn stop(self) -> BTreeSet<String> {
        self.watch.end();
        let _ = self.thread.join();
        std::mem::take(&mut self.watch.seen.lock().unwrap())
    }
}

impl Watch {
    /// The next look is the last.
    pub(super) fn end(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    fn run(&self, url: &str) {
        let mut connection = None;
        loop {
            let last = self.stop.load(Ordering::SeqCst);
            let start = Instant::now();
            // If the server is paused, dead or busy, it is asked again over a new connection.
            let looked = match connection.take() {
                Some(open) => Ok(open),
                None => open(url),
            }
            .and_then(|mut open| self.look(&mut open).map(|()| connection = Some(open)));
            if last {
                return;
            }
            // With many keys, looking without a pause would use a whole processor.
            let pause = if looked.is_ok() { start.elapsed() * 5 } else { Duration::from_millis(20) };
            thread::sleep(pause.clamp(Duration::from_millis(5), Duration::from_millis(100)));
        }
    }

    fn look(&self, connection: &mut Connection) -> RedisResult<()> {
        let mut cursor = 0_u64;
        loop {
            let (next, keys): (u64, Vec<Vec<u8>>) =
                redis::cmd("SCAN").arg(cursor).arg("COUNT").arg(1000).query(connection)?;
            let mut pipeline = redis::pipe();
            for key in &keys {
                pipeline.cmd("PTTL").arg(key);
            }
            let ttls: Vec<i64> = if keys.is_empty() { Vec::new() } else { pipeline.query(connection)? };
            for (key, _) in keys.iter().zip(ttls).filter(|(_, ttl)| *ttl == -1) {
                let key = String::from_utf8_lossy(key).into_owned();
                if !is_forever(&key) && !self.allowed.lock().unwrap().contains(&key) {
                    self.seen.lock().unwrap().insert(key);
                }
            }
            if next == 0 {
                return Ok(());
            }
            cursor = next;
        }
    }
}

/// A replica in a cluster would send the reader to its master; a server without a cluster refuses, which changes
/// nothing.
fn open(url: &str) -> RedisResult<Connection> {
    let mut connection = connect(url, Duration::from_millis(250))?;
    let _ = redis::cmd("READONLY").exec(&mut connection);
    Ok(connection)
}
