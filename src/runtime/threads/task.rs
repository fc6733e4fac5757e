//! A spawned task.

use std::mem;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use futures::future::BoxFuture;

use crate::mutex::lock;

type Work = BoxFuture<'static, ()>;

/// What polls tasks.
pub(super) trait Queue: Send + Sync {
    /// Has the task polled once more.
    fn push(&self, task: Arc<Task>);

    /// The task with this number is being dropped.
    fn forget(&self, id: u64);
}

/// Owned by the queue while it is queued, and by its wakers while it waits. One that waits without a waker is dropped.
pub(super) struct Task {
    id: u64,
    queue: Arc<dyn Queue>,
    state: Mutex<State>,
}

enum State {
    /// It was not woken since its last poll.
    Waiting(Work),
    /// It is in the pool's queue.
    Queued(Work),
    /// A thread polls it.
    Polled,
    /// A thread polls it, and it was woken meanwhile.
    Woken,
    /// It is done, or the pool was shut down.
    Ended,
}

impl Task {
    /// A task that is about to be queued.
    pub(super) fn queued(id: u64, queue: Arc<dyn Queue>, work: Work) -> Self {
        Self { id, queue, state: Mutex::new(State::Queued(work)) }
    }

    /// Polls the task, which was taken from its queue.
    pub(super) fn poll(self: Arc<Self>) {
        let mut work = {
            let mut state = lock(&self.state);
            match mem::replace(&mut *state, State::Polled) {
                State::Queued(work) => work,
                // The pool was shut down meanwhile.
                other => return *state = other,
            }
        };
        let waker = Waker::from(Arc::clone(&self));
        if work.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Ready(()) {
            return self.end();
        }
        let mut state = lock(&self.state);
        match *state {
            State::Polled => *state = State::Waiting(work),
            State::Woken => {
                *state = State::Queued(work);
                drop(state);
                self.push();
            }
            // It has ended. The mutex is free when the work is dropped, which may wake this task.
            State::Waiting(_) | State::Queued(_) | State::Ended => drop(state),
        }
    }

    /// Drops the work. If a thread polls it, that thread drops it after the poll.
    pub(super) fn end(&self) {
        let ended = mem::replace(&mut *lock(&self.state), State::Ended);
        // The mutex is free by now: what the work owns may wake this task.
        drop(ended);
    }

    fn push(self: Arc<Self>) {
        let queue = Arc::clone(&self.queue);
        queue.push(self);
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        let mut state = lock(&self.state);
        *state = match mem::replace(&mut *state, State::Ended) {
            State::Waiting(work) => State::Queued(work),
            State::Polled => State::Woken,
            unchanged => return *state = unchanged,
        };
        let is_queued = matches!(*state, State::Queued(_));
        drop(state);
        if is_queued {
            self.push();
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.queue.forget(self.id);
    }
}
