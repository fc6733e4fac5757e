use std::future::{pending, ready};

use futures::executor::block_on;

use super::still::Still;
use super::*;

const LIMIT: Duration = Duration::from_secs(1);

/// What the future gives within the limit, and by how much the clock has advanced: a sleep advances it at once.
fn run<F: Future>(future: F) -> (Option<F::Output>, Duration) {
    let executor: Arc<dyn Executor> = Arc::new(Still::new());
    let start = executor.now();
    let output = block_on(timeout(&executor, LIMIT, future));
    (output, executor.now() - start)
}

#[test]
fn a_future_that_is_ready_at_once_needs_no_timer() {
    assert_eq!(run(ready(1)), (Some(1), Duration::ZERO));
}

#[test]
fn a_future_that_is_not_ready_ends_with_the_limit() {
    assert_eq!(run(pending::<()>()), (None, LIMIT));
}

#[test]
fn an_output_at_the_limit_is_returned() {
    assert_eq!(run(yield_once()), (Some(()), LIMIT));
}
