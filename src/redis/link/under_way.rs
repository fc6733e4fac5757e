//! The calls that wait for their answers, and the one timer for all of them.
//!
//! Each call may take equally long, so the oldest one is due first. The timer is set for the oldest call and stays set
//! when that call is answered; when it fires, it is set for the call that is the oldest by then. So a client that calls
//! again and again sets one timer per time limit, and no call sets a timer or wakes the task that keeps the time. In a
//! cluster, the limit is the time after which a call is slow.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Mutex;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use event_listener::Event;

use crate::mutex::lock;
use crate::runtime::Executor;

/// The calls of one connection.
pub(in crate::redis) struct UnderWay {
    /// The time limit of each call.
    limit: Duration,
    calls: Mutex<Calls>,
    /// Notified when there is a call but no timer.
    untimed: Event,
}

#[derive(Default)]
struct Calls {
    /// The calls, oldest first. The first call has not ended. A later call that has ended stays until all older calls
    /// have ended. A call ends when its time limit passes, whether or not its future is polled.
    queue: VecDeque<Call>,
    /// The number of the first call in the queue.
    first: u64,
    /// Whether the timer is set, or about to be.
    is_timed: bool,
}

struct Call {
    ends: Instant,
    /// `None`: the call has ended.
    waker: Option<Waker>,
}

impl UnderWay {
    pub(in crate::redis) fn new(limit: Duration) -> Self {
        Self { limit, calls: Mutex::default(), untimed: Event::new() }
    }

    pub(in crate::redis) fn limit(&self) -> Duration {
        self.limit
    }

    /// Runs a call that began at `started`. `None` after its time limit, or after the runtime was shut down.
    pub(in crate::redis) async fn within<F: Future>(&self, started: Instant, call: F) -> Option<F::Output> {
        let mut call = pin!(call);
        let mut entry = None;
        poll_fn(|context| {
            if let Poll::Ready(output) = call.as_mut().poll(context) {
                return Poll::Ready(Some(output));
            }
            // Cloned before and dropped after the lock is held, because a waker is foreign code.
            let waker = context.waker().clone();
            match &entry {
                None => entry = Some(self.add(started + self.limit, waker)),
                Some(entry) if entry.is_late(waker) => return Poll::Ready(None),
                Some(_) => {}
            }
            Poll::Pending
        })
        .await
    }

    fn add(&self, ends: Instant, waker: Waker) -> Entry<'_> {
        let mut calls = lock(&self.calls);
        // Another thread may have read the clock later and added its call earlier.
        let ends = calls.queue.back().map_or(ends, |last| last.ends.max(ends));
        let number = calls.first + calls.queue.len() as u64;
        calls.queue.push_back(Call { ends, waker: Some(waker) });
        let was_timed = std::mem::replace(&mut calls.is_timed, true);
        drop(calls);
        if !was_timed {
            self.untimed.notify(usize::MAX);
        }
        Entry { under_way: self, number }
    }

    /// Ends the calls whose time limit has passed. Runs until the runtime is shut down.
    pub(in crate::redis) async fn keep_time(&self, executor: &dyn Executor) {
        loop {
            let untimed = self.untimed.listen();
            let Some(ends) = lock(&self.calls).set_timer() else {
                untimed.await;
                continue;
            };
            executor.sleep(ends.saturating_duration_since(executor.now())).await;
            let now = executor.now();
            // A sleep that returns before its end means that the runtime was shut down. No call can be answered any
            // more.
            let is_shut_down = now < ends;
            let late = lock(&self.calls).end(|call| is_shut_down || call.ends <= now);
            late.into_iter().for_each(Waker::wake);
            if is_shut_down {
                return;
            }
        }
    }
}

impl Calls {
    /// The time at which the timer must fire. `None` if no call waits, so that no timer is needed.
    fn set_timer(&mut self) -> Option<Instant> {
        let oldest = self.queue.front().map(|call| call.ends);
        self.is_timed = oldest.is_some();
        oldest
    }

    /// Ends the oldest waiting calls, as long as `is_late` says so. Returns the wakers of their futures.
    fn end(&mut self, is_late: impl Fn(&Call) -> bool) -> Vec<Waker> {
        let mut late = Vec::new();
        self.drop_first(|call| {
            let ends = call.waker.is_none() || is_late(call);
            late.extend(call.waker.take_if(|_| ends));
            ends
        });
        late
    }

    /// The waker of a call that has not ended.
    fn waker(&mut self, number: u64) -> Option<&mut Option<Waker>> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.queue.get_mut(index).map(|call| &mut call.waker)
    }

    /// Drops the first calls, as long as they have ended.
    fn drop_first(&mut self, mut has_ended: impl FnMut(&mut Call) -> bool) {
        while self.queue.front_mut().is_some_and(&mut has_ended) {
            self.queue.pop_front();
            self.first += 1;
        }
    }
}

/// The entry of a call, removed when its future is dropped.
struct Entry<'a> {
    under_way: &'a UnderWay,
    number: u64,
}

impl Entry<'_> {
    /// Whether the time limit has passed. If not, `waker` is woken when it does.
    fn is_late(&self, mut waker: Waker) -> bool {
        let mut calls = lock(&self.under_way.calls);
        let known = calls.waker(self.number).and_then(Option::as_mut);
        let is_late = known.is_none();
        if let Some(known) = known {
            std::mem::swap(known, &mut waker);
        }
        drop(calls);
        is_late
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        let mut calls = lock(&self.under_way.calls);
        let waker = calls.waker(self.number).and_then(Option::take);
        calls.drop_first(|call| call.waker.is_none());
        drop(calls);
        // Dropped after the lock.
        drop(waker);
    }
}

#[cfg(test)]
mod tests;
