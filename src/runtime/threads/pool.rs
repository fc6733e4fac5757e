//! The threads, and the tasks that they poll.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread;

use event_listener::Event;
use futures::future::BoxFuture;

use super::task::{Queue, Task};
use super::timers::Timers;
use crate::mutex::lock;
use crate::until::until;

#[derive(Default)]
pub(super) struct Pool {
    state: Mutex<State>,
    /// Told when a task is queued, and at the end.
    queued: Condvar,
    pub(super) timers: Timers,
    /// Told at the end.
    shut_down: Event,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Arc<Task>>,
    /// All of them, to be dropped at the end.
    tasks: HashMap<u64, Weak<Task>>,
    next: u64,
    is_shut_down: bool,
}

thread_local!(static IS_WORKER: Cell<bool> = const { Cell::new(false) });

/// Whether this thread polls the tasks of a pool.
pub(super) fn is_worker() -> bool {
    IS_WORKER.get()
}

impl Pool {
    /// Starts the thread for timers, and so many for tasks.
    pub(super) fn start(self: &Arc<Self>, workers: usize) -> io::Result<()> {
        let pool = Arc::clone(self);
        thread::Builder::new().name("bowline-timers".to_owned()).spawn(move || pool.timers.run())?;
        for number in 1..=workers {
            let pool = Arc::clone(self);
            thread::Builder::new().name(format!("bowline-{number}")).spawn(move || pool.work())?;
        }
        Ok(())
    }

    pub(super) fn spawn(self: &Arc<Self>, work: BoxFuture<'static, ()>) {
        let mut state = lock(&self.state);
        if state.is_shut_down {
            // The mutex is free when `work` is dropped, which may spawn.
            return drop(state);
        }
        let id = state.next;
        state.next += 1;
        let task = Arc::new(Task::queued(id, Arc::<Self>::clone(self), work));
        state.tasks.insert(id, Arc::downgrade(&task));
        state.queue.push_back(task);
        drop(state);
        self.queued.notify_one();
    }

    /// Polls tasks until the end.
    fn work(&self) {
        IS_WORKER.set(true);
        while let Some(task) = self.next() {
            // The panic hook has reported the panic. The task drops its work.
            let _ = catch_unwind(AssertUnwindSafe(|| task.poll()));
        }
    }

    /// Waits for the next task. `None`: the end.
    fn next(&self) -> Option<Arc<Task>> {
        let mut state = lock(&self.state);
        while !state.is_shut_down {
            if let Some(task) = state.queue.pop_front() {
                return Some(task);
            }
            state = self.queued.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    pub(super) fn shut_down(&self) {
        let mut state = lock(&self.state);
        state.is_shut_down = true;
        let (queue, tasks) = (mem::take(&mut state.queue), mem::take(&mut state.tasks));
        // Kept until all have ended: the end of one task may wake another. If the waker had the last reference, the
        // other one would be dropped by whoever wakes it, who may hold a lock that it takes when it is dropped.
        let tasks: Vec<Arc<Task>> = tasks.into_values().filter_map(|task| task.upgrade()).collect();
        drop(state);
        self.queued.notify_all();
        self.shut_down.notify(usize::MAX);
        self.timers.shut_down();
        tasks.iter().for_each(|task| task.end());
        // The mutex is free by now: a task that is dropped takes it.
        drop(queue);
    }

    pub(super) fn is_shut_down(&self) -> bool {
        lock(&self.state).is_shut_down
    }

    pub(super) async fn until_shut_down(&self) {
        until(&self.shut_down, || self.is_shut_down().then_some(())).await;
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        lock(&self.state).tasks.is_empty()
    }
}

impl Queue for Pool {
    fn push(&self, task: Arc<Task>) {
        let mut state = lock(&self.state);
        if state.is_shut_down {
            // `shut_down` ends it. The mutex is free when `task` is dropped, which takes it.
            return drop(state);
        }
        state.queue.push_back(task);
        drop(state);
        self.queued.notify_one();
    }

    fn forget(&self, id: u64) {
        lock(&self.state).tasks.remove(&id);
    }
}
