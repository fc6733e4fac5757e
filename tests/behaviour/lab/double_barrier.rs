//! The double barrier.

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use bowline::{DoubleBarrierState, Error, Result, blocking};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::Either;
use super::guard::alone;
use super::thread::{call, either, on_a_thread};

#[derive(Clone, Debug)]
pub(crate) struct DoubleBarrier(pub(super) Either<bowline::DoubleBarrier, blocking::DoubleBarrier>);

impl DoubleBarrier {
    pub(crate) fn enter(&self, timeout: Duration) -> BoxFuture<'static, Result<Inside>> {
        match self.0.clone() {
            Either::Async(barrier) => {
                let enter = barrier.enter().timeout(timeout).into_future();
                enter.map(|inside| inside.map(|inside| Inside(Either::Async(inside)))).boxed()
            }
            Either::Blocking(barrier) => {
                on_a_thread(move || Ok(Inside(Either::Blocking(Arc::new(barrier.enter().timeout(timeout).block()?)))))
            }
        }
    }

    pub(crate) fn inspect(&self) -> BoxFuture<'static, Result<DoubleBarrierState>> {
        call!(self.0, inspect)
    }

    pub(crate) fn reset(&self) -> BoxFuture<'static, Result<bool>> {
        call!(self.0, reset)
    }
}

/// The same type in both APIs.
#[derive(Debug)]
pub(crate) struct Inside(Either<bowline::Inside, Arc<bowline::Inside>>);

impl Inside {
    pub(crate) fn leave(self, timeout: Duration) -> BoxFuture<'static, Result<()>> {
        match self.0 {
            Either::Async(inside) => inside.leave().timeout(timeout).into_future(),
            Either::Blocking(inside) => on_a_thread(move || alone(inside).leave().timeout(timeout).block()),
        }
    }

    pub(crate) async fn broken(&self) -> Error {
        match &self.0 {
            Either::Async(inside) => inside.broken().await,
            Either::Blocking(inside) => {
                let inside = inside.clone();
                let broken = on_a_thread(move || inside.block_until_broken(Duration::from_secs(20))).await;
                broken.unwrap().expect("it is broken in time")
            }
        }
    }

    pub(crate) fn is_broken(&self) -> bool {
        either!(&self.0, inside => inside.is_broken())
    }

    pub(crate) fn generation(&self) -> u64 {
        either!(&self.0, inside => inside.generation())
    }

    pub(crate) fn index(&self) -> u32 {
        either!(&self.0, inside => inside.index())
    }
}
