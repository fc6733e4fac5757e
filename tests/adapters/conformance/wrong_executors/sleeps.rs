//! Sleeps that go wrong.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll};
use std::thread;
use std::time::{Duration, Instant};

use bowline::smol::Smol;
use bowline::{BoxFuture, Executor};

use super::WrongExecutor;

#[derive(Clone, Copy, Debug)]
pub(super) enum WrongSleep {
    /// One of 40 ms by 5 ms.
    EndsEarly,
    CountsFromFirstPoll,
    /// Short ones take a second.
    DelaysShortOnes,
    /// Once one was dropped that had been polled, the next one ends at once.
    EndsOthersWhenDropped,
    /// A panic.
    Overflows,
    /// Another waker than the first one is forgotten.
    WakesTheFirstThread,
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

impl WrongExecutor {
    pub(super) fn wrong_sleep(&self, wrong: WrongSleep, duration: Duration) -> BoxFuture<'static, ()> {
        match wrong {
            WrongSleep::EndsEarly if duration == ms(40) => Smol.sleep(ms(35)),
            WrongSleep::CountsFromFirstPoll => Box::pin(async move { Smol.sleep(duration).await }),
            WrongSleep::DelaysShortOnes if duration == ms(10) => Smol.sleep(ms(1000)),
            WrongSleep::EndsOthersWhenDropped => {
                if self.sleep_dropped.swap(false, SeqCst) {
                    return Smol.sleep(Duration::ZERO);
                }
                // Only one check drops sleeps that are so short.
                let dropped = if duration == ms(20) { self.sleep_dropped.clone() } else { Arc::default() };
                Box::pin(Droppable { sleep: Smol.sleep(duration), dropped, is_waiting: false })
            }
            WrongSleep::Overflows => {
                let until = Instant::now() + duration;
                Smol.sleep(until.saturating_duration_since(Instant::now()))
            }
            WrongSleep::WakesTheFirstThread => {
                let until = Instant::now().checked_add(duration);
                Box::pin(FirstWaker { until, is_waiting: false })
            }
            _ => Smol.sleep(duration),
        }
    }
}

struct Droppable {
    sleep: BoxFuture<'static, ()>,
    dropped: Arc<AtomicBool>,
    is_waiting: bool,
}

impl Future for Droppable {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let polled = self.sleep.as_mut().poll(context);
        self.is_waiting = polled.is_pending();
        polled
    }
}

impl Drop for Droppable {
    fn drop(&mut self) {
        if self.is_waiting {
            self.dropped.store(true, SeqCst);
        }
    }
}

struct FirstWaker {
    until: Option<Instant>,
    is_waiting: bool,
}

impl Future for FirstWaker {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Some(until) = self.until else { return Poll::Pending };
        if Instant::now() >= until {
            return Poll::Ready(());
        }
        if !self.is_waiting {
            self.is_waiting = true;
            let waker = context.waker().clone();
            thread::spawn(move || {
                thread::sleep(until.saturating_duration_since(Instant::now()));
                waker.wake();
            });
        }
        Poll::Pending
    }
}
