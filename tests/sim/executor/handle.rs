//! What a process sees of the machine: its executor, its sleeps, its wakers.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake};
use std::time::{Duration, Instant};

use bowline::Executor;
use futures::future::BoxFuture;

use super::{Machine, Process, Task, Timer};

/// A process's view of the machine.
pub(super) struct Handle {
    pub(super) machine: Arc<Machine>,
    pub(super) process: Process,
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.process)
    }
}

impl Executor for Handle {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        let mut state = self.machine.lock();
        if state.dead.contains(&self.process) {
            state.buried.push(task);
            return;
        }
        state.last += 1;
        let id = state.last;
        state.tasks.insert(id, Task { process: self.process, future: Some(task) });
        state.ready.insert(id);
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let mut state = self.machine.lock();
        state.last += 1;
        // A longer sleep would overflow the clock, and no run lasts a year.
        let year = Duration::from_secs(365 * 24 * 3600);
        let at = state.when(self.process, state.shows(self.process) + duration.min(year));
        let key = (at, state.last);
        if duration < year {
            state.timers.insert(key, Timer { process: self.process, waker: None });
        }
        Box::pin(Sleep { machine: self.machine.clone(), key })
    }

    fn now(&self) -> Instant {
        self.machine.start + self.machine.lock().shows(self.process)
    }

    fn block_on(&self, _: BoxFuture<'_, ()>) -> bowline::Result<()> {
        unimplemented!("nothing blocks in a simulation")
    }
}

struct Sleep {
    machine: Arc<Machine>,
    key: (Duration, u64),
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.machine.lock();
        if state.now >= self.key.0 {
            if state.budget > 0 {
                state.budget -= 1;
                return Poll::Ready(());
            }
            drop(state);
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(timer) = state.timers.get_mut(&self.key) {
            timer.waker = Some(context.waker().clone());
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let timer = self.machine.lock().timers.remove(&self.key);
        drop(timer);
    }
}

pub(super) struct TaskWaker {
    pub(super) machine: Weak<Machine>,
    pub(super) id: u64,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        if let Some(machine) = self.machine.upgrade() {
            let mut state = machine.lock();
            if state.tasks.contains_key(&self.id) {
                state.ready.insert(self.id);
            }
        }
    }
}
