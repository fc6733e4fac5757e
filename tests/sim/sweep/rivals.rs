//! The others: they hold the lock, wait for it, take it away, and must come to an end whatever is dropped.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline::{Client, ErrorKind, Executor, Result};

use super::NAME;
use crate::guard::What;

/// Tasks of others.
#[derive(Clone)]
pub struct Rivals {
    world: Arc<dyn Executor>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    unbegun: usize,
    unended: usize,
    failed: Vec<(&'static str, ErrorKind)>,
}

impl Rivals {
    pub fn new(world: &Arc<dyn Executor>) -> Self {
        Self { world: world.clone(), state: Arc::default() }
    }

    pub fn spawn(&self, who: &'static str, delay: Duration, does: impl Future<Output = Result<()>> + Send + 'static) {
        let (state, sleep) = (self.state.clone(), self.world.sleep(delay));
        {
            let mut state = state.lock().unwrap();
            state.unbegun += 1;
            state.unended += 1;
        }
        self.world.spawn(Box::pin(async move {
            if !delay.is_zero() {
                sleep.await;
            }
            state.lock().unwrap().unbegun -= 1;
            let ended = does.await;
            let mut state = state.lock().unwrap();
            state.unended -= 1;
            state.failed.extend(ended.err().map(|error| (who, error.kind())));
        }));
    }

    /// Waits for it, and gives it back at once.
    pub fn wait(&self, who: &'static str, delay: Duration, client: &Client, what: What) {
        let client = client.clone();
        self.spawn(who, delay, async move { what.acquire(client, NAME).await?.release().await });
    }

    pub fn have_begun(&self) -> bool {
        self.state.lock().unwrap().unbegun == 0
    }

    pub fn have_ended(&self) -> bool {
        self.state.lock().unwrap().unended == 0
    }

    pub fn failed(&self) -> Vec<(&'static str, ErrorKind)> {
        self.state.lock().unwrap().failed.clone()
    }
}
