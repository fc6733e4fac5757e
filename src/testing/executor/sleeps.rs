//! Sleeps.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::future::{BoxFuture, Either, select};

use super::threads::{joined, ms, on_a_thread};
use crate::park::{block_on, poll_once};
use crate::runtime::Executor;
use crate::testing::report::{Checked, ensure, failed};

pub(super) fn long_enough(executor: &Arc<dyn Executor>) -> Checked {
    for duration in [Duration::ZERO, Duration::from_nanos(1), ms(1), ms(7), ms(40)] {
        let before = executor.now();
        block_on(executor.sleep(duration));
        let passed = executor.now().saturating_duration_since(before);
        ensure(passed >= duration, || format!("a sleep of {duration:?} ended when `now` had advanced by {passed:?}"))?;
        let before = executor.now();
        executor.block_on(executor.sleep(duration)).map_err(|error| failed(format!("block_on: {error}")))?;
        let passed = executor.now().saturating_duration_since(before);
        ensure(passed >= duration, || {
            format!("a sleep of {duration:?} in block_on ended when `now` had advanced by {passed:?}")
        })?;
    }
    Ok(())
}

/// When it is polled first it is over, so it ends before another one that starts then.
pub(super) fn counts_from_call(executor: &Arc<dyn Executor>) -> Checked {
    let early = executor.sleep(ms(400));
    block_on(executor.sleep(ms(400)));
    let first = block_on(select(early, executor.sleep(ms(200))));
    ensure(matches!(first, Either::Left(_)), || {
        "a sleep of 400 ms, first polled after 400 ms, went on for another 200 ms".to_owned()
    })
}

/// Begun in the wrong order, and far enough from one another that a slow machine does not change the order.
pub(super) fn side_by_side(executor: &Arc<dyn Executor>) -> Checked {
    let mut sleeps: Vec<(u64, Option<BoxFuture<'static, ()>>)> =
        [600, 10, 300].map(|millis| (millis, Some(executor.sleep(ms(millis))))).into();
    let mut ended = Vec::new();
    block_on(poll_fn(|context| {
        // The longest is asked last: several may be over by now.
        sleeps.sort_by_key(|(millis, _)| *millis);
        for (millis, sleep) in &mut sleeps {
            if sleep.as_mut().is_some_and(|sleep| sleep.as_mut().poll(context).is_ready()) {
                *sleep = None;
                ended.push(*millis);
            }
        }
        if ended.len() == 3 { Poll::Ready(()) } else { Poll::Pending }
    }));
    ensure(ended == [10, 300, 600], || format!("sleeps of 600, 10 and 300 ms ended in the order {ended:?}"))?;
    let both = block_on(select(executor.sleep(Duration::from_secs(3600)), executor.sleep(ms(1))));
    ensure(matches!(both, Either::Right(_)), || "a sleep of an hour ended before one of a millisecond".to_owned())
}

/// Before the first poll, after it, and when it is over. The others end all the same.
pub(super) fn dropped(executor: &Arc<dyn Executor>) -> Checked {
    let kept = executor.sleep(ms(30));
    drop(executor.sleep(ms(20)));
    let mut polled = executor.sleep(ms(20));
    let _ = poll_once(&mut polled);
    let mut over = executor.sleep(ms(1));
    let _ = poll_once(&mut over);
    block_on(executor.sleep(ms(5)));
    drop(polled);
    drop(over);
    block_on(kept);
    let before = executor.now();
    block_on(executor.sleep(ms(10)));
    let passed = executor.now().saturating_duration_since(before);
    ensure(passed >= ms(10), || format!("after sleeps were dropped, one of 10 ms ended after {passed:?}"))
}

pub(super) fn huge(executor: &Arc<dyn Executor>) -> Checked {
    for huge in [Duration::MAX, Duration::from_secs(u64::MAX), Duration::from_secs(1 << 40)] {
        let both = block_on(select(executor.sleep(huge), executor.sleep(ms(5))));
        ensure(matches!(both, Either::Right(_)), || format!("a sleep of {huge:?} ended before one of 5 ms"))?;
    }
    Ok(())
}

/// It was polled on this thread, and the other one waits for it.
pub(super) fn moves(executor: &Arc<dyn Executor>) -> Checked {
    let mut sleep = executor.sleep(ms(50));
    if poll_once(&mut sleep).is_ready() {
        return Err(failed("a sleep of 50 ms ended in its first poll"));
    }
    joined(on_a_thread(move || block_on(sleep)))
}
