//! A future of what blocks.

use std::thread;

use futures::channel::oneshot;
use futures::future::BoxFuture;

/// Makes a blocking call on a thread of its own, once the future is polled. If the future is dropped, the call goes on.
pub(super) fn on_a_thread<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> BoxFuture<'static, T> {
    Box::pin(async move {
        let (done, answer) = oneshot::channel();
        thread::spawn(move || done.send(call()));
        answer.await.expect("the thread panicked")
    })
}

/// The same call of either API.
macro_rules! call {
    ($of:expr, $method:ident $(, $argument:expr)*) => {
        match $of.clone() {
            $crate::lab::Either::Async(it) => Box::pin(async move { it.$method($($argument),*).await }),
            $crate::lab::Either::Blocking(it) => $crate::lab::thread::on_a_thread(move || it.$method($($argument),*)),
        }
    };
}

/// The same expression of either API.
macro_rules! either {
    ($of:expr, $it:ident => $same:expr) => {
        match $of {
            $crate::lab::Either::Async($it) => $same,
            $crate::lab::Either::Blocking($it) => $same,
        }
    };
}

pub(super) use {call, either};
