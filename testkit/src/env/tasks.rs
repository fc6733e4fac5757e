//! Tasks of a test, and waiting for what they do.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::task::Poll;
use std::time::Duration;

use bowline::Executor;
use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::BoxFuture;

use super::{DEADLINE, Env, lock};

impl Env {
    pub async fn sleep(&self, duration: Duration) {
        self.inner.tracking.sleep(duration).await;
    }

    /// Lets other tasks run.
    pub async fn yield_now(&self) {
        let mut yielded = false;
        std::future::poll_fn(|context| {
            if yielded {
                return Poll::Ready(());
            }
            yielded = true;
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    /// Runs `future` as a task of its own. A panic in it is raised where its result is awaited, or else at the end.
    pub fn spawn<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> BoxFuture<'static, T> {
        let (done, output) = oneshot::channel();
        let inner = self.inner.clone();
        self.inner.tracking.spawn(Box::pin(async move {
            let ended = AssertUnwindSafe(future).catch_unwind().await;
            if let Err(Err(panic)) = done.send(ended) {
                lock(&inner.panics).push(message(&*panic));
            }
        }));
        Box::pin(async move {
            match output.await {
                Ok(Ok(output)) => output,
                Ok(Err(panic)) => resume_unwind(panic),
                Err(oneshot::Canceled) => panic!("the task was dropped by its executor"),
            }
        })
    }

    /// Runs `call` on a thread of its own: what blocks there stops no task, also on a runtime with one thread.
    pub async fn on_a_thread<T: Send + 'static>(&self, call: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, output) = oneshot::channel();
        let ended = move || drop(done.send(std::panic::catch_unwind(AssertUnwindSafe(call))));
        std::thread::Builder::new().spawn(ended).expect("a thread");
        output.await.expect("the thread has an outcome").unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Waits until `condition` holds, asking again and again: for what has no event, such as the state of the server.
    pub async fn eventually(&self, what: &str, condition: impl AsyncFnMut() -> bool) {
        self.eventually_within(DEADLINE, what, condition).await;
    }

    /// As [`eventually`](Self::eventually), with another deadline.
    pub async fn eventually_within(&self, deadline: Duration, what: &str, mut condition: impl AsyncFnMut() -> bool) {
        let start = self.now();
        let mut pause = Duration::from_millis(1);
        while !condition().await {
            assert!(self.now() - start < deadline, "not within {deadline:?}: {what}");
            self.inner.executor.sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }

    /// `future`, or a panic when it takes longer than any deadline of a test should.
    pub async fn soon<F: IntoFuture>(&self, what: &str, future: F) -> F::Output {
        let future = std::pin::pin!(future.into_future());
        match futures::future::select(future, self.inner.executor.sleep(DEADLINE)).await {
            futures::future::Either::Left((output, _)) => output,
            futures::future::Either::Right(_) => panic!("not within {DEADLINE:?}: {what}"),
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a message".to_owned())
}
