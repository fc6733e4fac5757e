//! The end of a hold whose caller waits for it, and the end of the client.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::engine::Engine;
use crate::engine::cleanup::Cleanup;
use crate::engine::heartbeats::unread::{UNREAD, UnreadId};
use crate::engine::lease::Hold;
use crate::protocol::key::Keys;
use crate::until::until;

/// While it exists, a caller is releasing or changing a hold.
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

/// As [`Ending`], of a caller who releases. Until this is dropped, the reply is not read.
#[derive(Debug)]
pub(crate) struct Releasing<'a> {
    engine: &'a Engine,
    n: u64,
    keys: Arc<Keys>,
    unread: UnreadId,
}

impl Drop for Releasing<'_> {
    fn drop(&mut self) {
        self.engine.change(|state| {
            state.attempts.heartbeats.read(&self.keys, self.unread);
            state.cleanups.ended(self.n);
        });
    }
}

impl Engine {
    /// Called when the caller begins to release or change the hold. Closing waits until the returned value is dropped,
    /// and if the runtime ends before, the release is finished without it.
    pub(crate) fn ending(&self, hold: &Arc<Hold>, now: Instant) -> Ending<'_> {
        let n = self.change(|state| state.cleanups.begin_ending(hold, now));
        Ending { engine: self, n }
    }

    /// As [`ending`](Self::ending), [`release`](Self::release) and [`unread_reply`](Self::unread_reply) together.
    pub(crate) fn releasing(&self, hold: &Arc<Hold>, now: Instant) -> Releasing<'_> {
        let keys = hold.keys.clone();
        let (n, unread) = self.change(|state| {
            let n = state.cleanups.begin_ending(hold, now);
            state.release(hold, now);
            (n, state.attempts.heartbeats.unread(&keys, now + UNREAD))
        });
        Releasing { engine: self, n, keys, unread }
    }

    /// Ends everything: waiting attempts fail, holds are lost, both are cleaned up in Redis.
    pub(crate) fn close(&self, now: Instant) {
        self.change(|state| {
            self.set_closed();
            state.close(now);
        });
        self.closing.notify(usize::MAX);
    }

    /// Resolves when the client is closed.
    pub(crate) async fn closed(&self) {
        loop {
            let listener = self.closing.listen();
            if self.is_closed() {
                return;
            }
            listener.await;
        }
    }

    /// Resolves when no clean-up waits or is under way.
    pub(crate) async fn cleaned(&self) {
        until(&self.idle, || self.look().cleanups.is_idle().then_some(())).await;
    }

    /// Resolves when the server has answered all clean-ups of parties at this name.
    pub(crate) async fn all_have_left(&self, keys: &Keys) {
        until(&self.idle, || (!self.look().cleanups.has_parties(keys.main())).then_some(())).await;
    }

    /// Lets the watchdog end once nothing is left to clean up. Idle holds are released.
    pub(crate) fn end(&self, now: Instant) {
        self.change(|state| {
            self.set_closed();
            state.is_ending = true;
            state.close_idles(now);
        });
        self.closing.notify(usize::MAX);
        self.work.notify(usize::MAX);
    }

    /// Lets the watchdog end at once. What is not cleaned up by now is left to its lease, because the connection is
    /// closed next.
    pub(crate) fn end_now(&self, now: Instant) {
        self.change(|state| drop(state.cleanups.finish(now)));
        self.end(now);
    }

    /// Called when the runtime has dropped the watchdog. From then on nothing is renewed, kept alive or cleaned up.
    /// Returns everything that is, or may be, left in Redis.
    pub(crate) fn die(&self, now: Instant) -> Vec<Cleanup> {
        let left = self.change(|state| {
            self.set_closed();
            state.close(now);
            state.cleanups.finish(now)
        });
        self.closing.notify(usize::MAX);
        left
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Called while the tables are locked, so that a change which finds the client open is complete before the client
    /// is closed.
    fn set_closed(&self) {
        self.closed.store(true, Ordering::Release);
    }
}
