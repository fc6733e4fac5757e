//! How a builder acquires what its guard stands for.

use std::future::Future;

use crate::acquire::builder::choices::Options;
use crate::error::Result;

/// Part of the sealed trait of the guards, so it is `pub`, but no other crate can reach it.
pub trait Obtain: Sized {
    /// Acquires by the options. `finish` gets `None` if others hold the primitive and the caller does not wait.
    ///
    /// `finish` is an argument, because a combinator around the future would copy the future once more.
    fn acquire<T>(
        options: Options,
        wait: bool,
        finish: impl FnOnce(Option<Self>) -> Result<T> + Send,
    ) -> impl Future<Output = Result<T>> + Send;
}
