//! A future of what blocks.

use std::thread;

use futures::channel::oneshot;
use futures::future::BoxFuture;

/// Calls what blocks on a thread of its own, once it is polled. Dropped, nobody hears the answer: the call goes on.
pub fn on_a_thread<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> BoxFuture<'static, T> {
    Box::pin(async move {
        let (done, answer) = oneshot::channel();
        thread::spawn(move || done.send(call()));
        answer.await.expect("the thread panicked")
    })
}
