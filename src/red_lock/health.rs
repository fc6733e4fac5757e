//! What an answer, or its absence, says about a master: for all names, for one name, or for one request.
//!
//! | cause | the master is passed over |
//! |---|---|
//! | no answer within the node timeout, no connection, or a refusal such as `OOM` or `READONLY` | for all names, until it has answered a probe: a script that may need memory |
//! | no answer within the shorter time that a short lease or a short retry timeout leaves | for that name, until it has answered a probe; for all, if it does not |
//! | a denial, or an answer that makes no sense | for that name and for a second; for all, if a probe is denied too |

use std::slice::from_ref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::{Either, select};

use crate::backoff::Backoff;
use crate::error::ErrorKind;
use crate::protocol::dispatch::Failure;
use crate::protocol::key::Keys;
use crate::protocol::kind::Kind;
use crate::red_lock::doubts::Why;
use crate::red_lock::masters::Masters;
use crate::runtime::timeout;
use crate::tuning::{MASTER_CHECK, REQUEST};

impl Masters {
    /// The usable answer of a master to a request with these keys, whose time limit was `limit`. Without one, the
    /// master is not asked again for a while.
    pub(super) fn answered<T>(
        self: &Arc<Self>,
        master: usize,
        keys: &Arc<Keys>,
        answer: Option<Result<T, Failure>>,
        (sent, limit): (Instant, Duration),
    ) -> Option<T> {
        match answer {
            Some(Ok(answer)) => {
                self.all[master].served(keys);
                return Some(answer);
            }
            Some(Err(failure)) => {
                self.set_failed(master, keys, (failure.kind(), failure.to_string()), (sent, limit));
            }
            None => self.set_silent(master, keys, None, (sent, limit)),
        }
        None
    }

    /// A master gave no usable answer to a request with these keys, which was sent at `sent` and could wait for
    /// `limit`. `false`: the answer is not about the master.
    pub(super) fn set_failed(
        self: &Arc<Self>,
        n: usize,
        keys: &Arc<Keys>,
        why: Why,
        (sent, limit): (Instant, Duration),
    ) -> bool {
        match why.0 {
            ErrorKind::Unavailable => self.set_silent(n, keys, Some(why), (sent, limit)),
            ErrorKind::Refused => self.set_down(n, Some(why), sent),
            ErrorKind::Denied
            | ErrorKind::Certificate
            | ErrorKind::WrongType
            | ErrorKind::Unsupported
            | ErrorKind::Protocol => {
                self.add_doubt(n, keys, Some(why), (sent, MASTER_CHECK));
                self.check(n, Some(MASTER_CHECK));
            }
            _ => return false,
        }
        true
    }

    /// A master left a request with these keys, which was sent at `sent`, unanswered for `limit`.
    pub(super) fn set_silent(
        self: &Arc<Self>,
        n: usize,
        keys: &Arc<Keys>,
        why: Option<Why>,
        (sent, limit): (Instant, Duration),
    ) {
        let longest = self.settings.node_timeout;
        if limit >= longest {
            return self.set_down(n, why, sent);
        }
        // What one request can wait for says nothing about a master.
        self.add_doubt(n, keys, None, (sent, longest));
        self.check(n, None);
    }

    fn add_doubt(&self, n: usize, keys: &Arc<Keys>, why: Option<Why>, (since, time): (Instant, Duration)) {
        let now = self.now();
        self.all[n].add_doubt(keys, why, (since, now, now + time));
        // There may be no majority for the name any more.
        self.changed.notify(usize::MAX);
    }

    /// Marks a master as down since then, whatever the name. It is not asked again until it has answered a probe in the
    /// background.
    pub(super) fn set_down(self: &Arc<Self>, n: usize, why: Option<Why>, since: Instant) {
        let counts = self.counts_from(n).is_none_or(|from| from <= since);
        if !self.all[n].set_down(why, counts, since) {
            return;
        }
        self.changed.notify(usize::MAX);
        let (executor, seed) = (self.executor().clone(), self.all[n].context().engine.jitter_seed());
        let (masters, clock) = (Arc::downgrade(self), executor.clone());
        let mut connecting = self.all[n].context().connecting().map(Box::pin);
        executor.spawn(Box::pin(async move {
            let mut backoff = Backoff::new(REQUEST, seed);
            loop {
                let pause = clock.sleep(backoff.pause());
                match connecting.take() {
                    None => pause.await,
                    // A client that has just connected is probed at once, without the pause.
                    Some(mut made) => {
                        if let Either::Right(_) = select(&mut made, pause).await {
                            connecting = Some(made);
                        }
                    }
                }
                let Some(masters) = masters.upgrade() else { return };
                if masters.all[n].context().engine.is_closed() {
                    return;
                }
                match masters.probe(n, masters.settings.node_timeout).await {
                    Ok(()) => {
                        masters.all[n].set_up();
                        masters.changed.notify(usize::MAX);
                        return;
                    }
                    Err(why) => masters.all[n].set_refusal(why),
                }
            }
        }));
    }

    /// Probes a master in the background, and marks it as down if it gives no usable answer within the node timeout.
    /// With `pause`, it is not probed if the last check began within that time.
    pub(super) fn check(self: &Arc<Self>, n: usize, pause: Option<Duration>) {
        let now = self.now();
        if !self.all[n].begin_check(pause.and_then(|pause| now.checked_sub(pause)), now) {
            return;
        }
        // Made here: the runtime may drop the task before its first poll.
        let checked = Checked { masters: self.clone(), n };
        self.executor().spawn(Box::pin(async move {
            let masters = &checked.masters;
            match masters.probe(n, masters.settings.node_timeout).await {
                Ok(()) => drop(masters.changed.notify(usize::MAX)),
                Err(why) => masters.set_down(n, why, now),
            }
        }));
    }

    /// Succeeds if the master answers within that time and accepts writes that need memory. Otherwise returns its
    /// answer, if there was one.
    pub(super) async fn probe(&self, n: usize, within: Duration) -> Result<(), Option<Why>> {
        if self.all[n].unusable().is_some() {
            return Err(None);
        }
        let context = self.all[n].context();
        let keys = Keys::scratch(&context.config.prefix, Kind::Lock, context.client);
        match timeout(self.executor(), within, context.scripts().try_rights(from_ref(&keys), context.client)).await {
            Some(Ok(_)) => {
                self.all[n].set_heard(self.now());
                Ok(())
            }
            Some(Err(failure)) => Err(Some((failure.kind(), failure.to_string()))),
            None => Err(None),
        }
    }
}

/// Ends the check of a master, also if the runtime drops the task.
struct Checked {
    masters: Arc<Masters>,
    n: usize,
}

impl Drop for Checked {
    fn drop(&mut self) {
        self.masters.all[self.n].end_check();
    }
}

#[cfg(test)]
mod tests;
