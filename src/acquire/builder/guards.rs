//! How the guards of one hold are acquired: from the server of a client, or from the masters of a `RedLock`.

use std::future::Future;

use crate::acquire::builder::choices::Options;
use crate::acquire::builder::obtain::Obtain;
use crate::acquire::enter::acquire;
use crate::error::Result;
use crate::hold::guard::{
    LockGuard, Permit, ReadGuard, RedissonFencedGuard, RedissonGuard, RedissonPermitGuard, UpgradableGuard, WriteGuard,
};

macro_rules! obtain {
    ($($guard:ident),+) => {$(
        impl Obtain for $guard {
            fn acquire<T>(
                options: Options,
                wait: bool,
                finish: impl FnOnce(Option<Self>) -> Result<T> + Send,
            ) -> impl Future<Output = Result<T>> + Send {
                // The options end here: an acquisition that waits would carry them for hours.
                let mut made = options.into_request(wait);
                async move {
                    // Borrowed, because values moved out of `made` would be stored twice for the whole wait.
                    let (source, request) = made.as_mut().map_err(|error| error.clone())?;
                    request.choose_holder();
                    finish(acquire(source, request).await?.map(Self::new))
                }
            }
        }
    )+};
}

obtain!(
    LockGuard,
    ReadGuard,
    UpgradableGuard,
    WriteGuard,
    Permit,
    RedissonGuard,
    RedissonFencedGuard,
    RedissonPermitGuard
);
