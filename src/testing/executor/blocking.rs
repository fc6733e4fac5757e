//! Threads that are blocked on a future.

use std::sync::Arc;

use futures::channel::oneshot;

use super::threads::{joined, ms, on_a_thread};
use crate::runtime::Executor;
use crate::testing::report::{Checked, ensure, failed};

/// The future borrows, sleeps, and waits for a task of the runtime.
pub(super) fn runs_to_the_end(executor: &Arc<dyn Executor>) -> Checked {
    let mut steps = 0;
    let blocked = executor.block_on(Box::pin(async {
        steps += 1;
        executor.sleep(ms(1)).await;
        let (done, ended) = oneshot::channel();
        let inside = Arc::clone(executor);
        executor.spawn(Box::pin(async move {
            inside.sleep(ms(1)).await;
            let _ = done.send(());
        }));
        if ended.await.is_ok() {
            steps += 1;
        }
    }));
    blocked.map_err(|error| failed(format!("block_on: {error}")))?;
    ensure(steps == 2, || {
        if steps == 0 { "the future was not run" } else { "the task that the future waited for was dropped" }.to_owned()
    })
}

/// Each waits for the next one.
pub(super) fn many_threads(executor: &Arc<dyn Executor>) -> Checked {
    let (mut senders, mut receivers) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        let (sender, receiver) = oneshot::channel::<()>();
        senders.push(sender);
        receivers.push(receiver);
    }
    receivers.rotate_left(1);
    let threads: Vec<_> = senders
        .into_iter()
        .zip(receivers)
        .map(|(mine, next)| {
            let executor = Arc::clone(executor);
            on_a_thread(move || {
                let inside = Arc::clone(&executor);
                executor.block_on(Box::pin(async move {
                    inside.sleep(ms(1)).await;
                    let _ = mine.send(());
                    let _ = next.await;
                }))
            })
        })
        .collect();
    for thread in threads {
        joined(thread)?.map_err(|error| failed(format!("block_on: {error}")))?;
    }
    Ok(())
}
