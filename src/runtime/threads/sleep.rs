//! A sleep.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::super::clock;
use super::pool::Pool;
use super::timers::Deadline;

/// Longer sleeps end after this time: some clocks cannot express the end of the longest duration.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

pub(super) struct Sleep {
    pool: Arc<Pool>,
    deadline: Deadline,
    was_polled: bool,
}

impl Sleep {
    pub(super) fn new(pool: Arc<Pool>, duration: Duration) -> Self {
        let deadline = pool.timers.deadline(clock::now() + duration.min(LONGEST));
        Self { pool, deadline, was_polled: false }
    }
}

impl Future for Sleep {
    type Output = ();

    /// Not ready in the first poll, so that a task that sleeps in a loop can be dropped between two polls.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let was_polled = mem::replace(&mut self.was_polled, true);
        let is_over = clock::now() >= self.deadline.0 || !self.pool.timers.set(self.deadline, context.waker());
        if is_over && !was_polled {
            context.waker().wake_by_ref();
        }
        if is_over && was_polled { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if self.was_polled {
            self.pool.timers.forget(self.deadline);
        }
    }
}
