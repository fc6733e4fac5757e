//! A test that must end.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Far longer than anything takes, so that only a hang runs into it.
pub const BOUND: Duration = Duration::from_secs(60);

/// Runs `test` and fails if it hangs.
pub fn bounded(test: impl FnOnce() + Send + 'static) {
    let (done, ended) = mpsc::channel();
    let thread = thread::spawn(move || {
        test();
        let _ = done.send(());
    });
    match ended.recv_timeout(BOUND) {
        Err(RecvTimeoutError::Timeout) => panic!("it hangs"),
        Ok(()) | Err(RecvTimeoutError::Disconnected) => {
            if let Err(panicked) = thread.join() {
                std::panic::resume_unwind(panicked);
            }
        }
    }
}
