//! The scripts that the server behind a connection is known to have.

use std::sync::Mutex;

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::mutex::lock;
use crate::protocol::Script;

/// The scripts that were sent over a connection.
///
/// A script is sent whole the first time, and by its SHA1 from then on: the server executes the commands of one
/// connection in order, so it has the script when the next call arrives. Sending the source until the first answer
/// arrives would mean ten thousand copies after a reconnect with as many waiters. Sending the SHA1 first would cost one
/// more round trip, and would break the order of calls: while the answer `NOSCRIPT` is on its way, a later call with
/// another script is executed, for instance the cancellation of the call that is about to be sent again.
#[derive(Default)]
pub(in crate::redis) struct Loaded(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// Each script with the number of the last time at which its source was sent.
    scripts: Vec<(&'static Script, u64)>,
    sent: u64,
    kept: Vec<BoxFuture<'static, ()>>,
}

impl Loaded {
    /// The number of the last time at which the source was sent. `None` if it was never sent, or if that is known to
    /// have failed.
    pub(in crate::redis) fn sent(&self, script: &'static Script) -> Option<u64> {
        let known = lock(&self.0);
        known.scripts.iter().find(|(other, _)| std::ptr::eq(*other, script)).map(|(_, time)| *time)
    }

    /// Records that the source was handed to the connection. Returns the number of that time.
    pub(in crate::redis) fn add(&self, script: &'static Script) -> u64 {
        let mut known = lock(&self.0);
        known.sent += 1;
        let time = known.sent;
        known.scripts.retain(|(other, _)| !std::ptr::eq(*other, script));
        known.scripts.push((script, time));
        time
    }

    /// Records that the server does not have the script, although its source was sent that time. Does nothing if it was
    /// sent again later.
    pub(in crate::redis) fn remove(&self, script: &'static Script, time: u64) {
        lock(&self.0).scripts.retain(|(other, at)| !std::ptr::eq(*other, script) || *at != time);
    }

    /// Keeps a call that was handed to the connection after its caller is gone. If the call were dropped before it is
    /// written, it would never be sent, and later calls that rely on it would fail.
    pub(in crate::redis) fn keep(&self, call: BoxFuture<'static, ()>) {
        let mut kept = std::mem::take(&mut lock(&self.0).kept);
        // Removes the calls that are done.
        kept.retain_mut(|call| call.now_or_never().is_none());
        kept.push(call);
        lock(&self.0).kept.append(&mut kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_counts_against_the_time_it_is_of() {
        let (loaded, script) = (Loaded::default(), Script::all().next().unwrap());
        assert_eq!(loaded.sent(script), None);
        let first = loaded.add(script);
        assert_eq!(loaded.sent(script), Some(first));
        let second = loaded.add(script);
        loaded.remove(script, first);
        assert_eq!(loaded.sent(script), Some(second));
        let other = Script::all().last().unwrap();
        assert_eq!(loaded.sent(other), None);
        let third = loaded.add(other);
        assert_eq!((loaded.sent(script), loaded.sent(other)), (Some(second), Some(third)), "each script counts alone");
        loaded.remove(script, second);
        assert_eq!((loaded.sent(script), loaded.sent(other)), (None, Some(third)));
    }
}
