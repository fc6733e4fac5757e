//! A runtime that was shut down.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use super::threads::ms;
use crate::error::ErrorKind;
use crate::on_drop::OnDrop;
use crate::park::{block_on, poll_once};
use crate::runtime::Executor;
use crate::testing::report::{Checked, ensure, failed};

pub(super) fn drops_tasks(executor: &Arc<dyn Executor>) -> Checked {
    let (sender, gone) = mpsc::channel();
    let guard = OnDrop(sender, |sender| {
        let _ = sender.send(());
    });
    executor.spawn(Box::pin(async move {
        let _guard = guard;
        std::future::pending::<()>().await;
    }));
    // Waits until the task is dropped. If it is kept, the time for the check ends.
    let _ = gone.recv();
    Ok(())
}

pub(super) fn ends_sleeps(executor: &Arc<dyn Executor>) -> Checked {
    for long in [ms(3_600_000), Duration::MAX] {
        let mut sleep = executor.sleep(long);
        if poll_once(&mut sleep).is_ready() {
            return Err(failed(format!("a sleep of {long:?} ended in its first poll")));
        }
        block_on(sleep);
        block_on(executor.sleep(long));
    }
    Ok(())
}

pub(super) fn ends_block_on(executor: &Arc<dyn Executor>) -> Checked {
    match executor.block_on(Box::pin(std::future::pending())) {
        Ok(()) => Err(failed("it returned `Ok`")),
        Err(error) => ensure(error.kind() == ErrorKind::Closed, || format!("it failed with {:?}", error.kind())),
    }
}
