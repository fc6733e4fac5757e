//! Tasks.

use std::sync::Arc;
use std::sync::mpsc;

use futures::channel::oneshot;

use super::threads::{joined, ms, on_a_thread};
use crate::park::block_on;
use crate::runtime::Executor;
use crate::testing::report::{Checked, ensure};

/// From this thread, from another one, and from a task that has slept.
pub(super) fn spawns(executor: &Arc<dyn Executor>) -> Checked {
    let (here, ran) = mpsc::channel();
    let (there, inside) = (here.clone(), here.clone());
    executor.spawn(Box::pin(async move {
        let _ = here.send("a task spawned outside of the runtime");
    }));
    let elsewhere = Arc::clone(executor);
    joined(on_a_thread(move || {
        let inner = Arc::clone(&elsewhere);
        elsewhere.spawn(Box::pin(async move {
            inner.sleep(ms(1)).await;
            let _ = there.send("a task spawned on another thread, which slept");
            inner.spawn(Box::pin(async move {
                let _ = inside.send("a task spawned by a task");
            }));
        }));
    }))?;
    // Ends when all three have run or were dropped.
    let ran: Vec<&str> = ran.iter().collect();
    ensure(ran.len() == 3, || format!("of three tasks only these ran to their end: {ran:?}"))
}

/// Each of two tasks waits for the other one.
pub(super) fn run_beside(executor: &Arc<dyn Executor>) -> Checked {
    let ((ping, pinged), (pong, ponged)) = (oneshot::channel(), oneshot::channel());
    let (first, ended) = mpsc::channel();
    let second = first.clone();
    executor.spawn(Box::pin(async move {
        let _ = ping.send(());
        if ponged.await.is_ok() {
            let _ = first.send("first");
        }
    }));
    executor.spawn(Box::pin(async move {
        if pinged.await.is_ok() {
            let _ = pong.send(());
            let _ = second.send("second");
        }
    }));
    let ended: Vec<&str> = ended.iter().collect();
    ensure(ended.len() == 2, || format!("of two tasks that wait for one another only these ended: {ended:?}"))
}

/// The task and the thread that spawned are gone when what they spawned goes on.
pub(super) fn outlive(executor: &Arc<dyn Executor>) -> Checked {
    let (from_thread, outlived) = mpsc::channel();
    let from_task = from_thread.clone();
    let (thread_gone, after_thread) = oneshot::channel::<()>();
    let (task_gone, after_task) = oneshot::channel::<()>();
    let spawner = Arc::clone(executor);
    joined(on_a_thread(move || {
        spawner.spawn(Box::pin(async move {
            if after_thread.await.is_ok() {
                let _ = from_thread.send("spawned by a thread");
            }
        }));
    }))?;
    // A runtime that ends the task with the thread has the time to do so.
    block_on(executor.sleep(ms(20)));
    let _ = thread_gone.send(());
    let spawner = Arc::clone(executor);
    executor.spawn(Box::pin(async move {
        // Dropped behind the task that it spawns, at the end of this one.
        let _at_the_end = task_gone;
        let sleeper = Arc::clone(&spawner);
        spawner.spawn(Box::pin(async move {
            // An error: the sender was dropped.
            let _ = after_task.await;
            sleeper.sleep(ms(1)).await;
            let _ = from_task.send("spawned by a task");
        }));
    }));
    let outlived: Vec<&str> = outlived.iter().collect();
    ensure(outlived.len() == 2, || {
        format!("of two tasks only these went on after the end of what spawned them: {outlived:?}")
    })
}
