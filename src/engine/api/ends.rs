//! The end of a hold whose caller waits for it, and the end of the client.

use std::sync::Arc;
use std::time::Instant;

use crate::engine::Engine;
use crate::engine::cleanups::Cleanup;
use crate::engine::lease::Hold;

/// Until this is dropped, a caller is releasing or changing a hold.
#[derive(Debug)]
pub(crate) struct Ending<'a> {
    engine: &'a Engine,
    n: u64,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.engine.change(|state| state.cleanups.ended(self.n));
    }
}

impl Engine {
    /// The caller releases or changes the hold. Closing waits for that, and the end of the runtime finishes it.
    pub(crate) fn ending(&self, hold: &Arc<Hold>) -> Ending<'_> {
        let n = self.change(|state| state.cleanups.begin_ending(hold));
        Ending { engine: self, n }
    }

    /// Ends everything: waiting attempts fail, holds are lost, both are cleaned up in Redis.
    pub(crate) fn close(&self, now: Instant) {
        self.change(|state| state.close(now));
    }

    /// Resolves once no clean-up waits or is under way.
    pub(crate) async fn cleaned(&self) {
        loop {
            let listener = self.idle.listen();
            if self.look().cleanups.is_idle() {
                return;
            }
            listener.await;
        }
    }

    /// Lets the watchdog end once nothing is left to clean up.
    pub(crate) fn end(&self) {
        self.change(|state| {
            state.is_closed = true;
            state.is_ending = true;
        });
        self.work.notify(usize::MAX);
    }

    /// The watchdog is gone with its runtime, so nothing is renewed, kept alive or cleaned up any more. Returns what is left
    /// in Redis, or may be.
    pub(crate) fn die(&self, now: Instant) -> Vec<Cleanup> {
        self.change(|state| {
            state.close(now);
            state.cleanups.finish(now)
        })
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.look().is_closed
    }
}
