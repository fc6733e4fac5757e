//! Guards that leave their hold to another program.

use crate::error::{Error, ErrorKind, Result};
use crate::hold::guard::{LockGuard, Permit, ReadGuard, Share, UpgradableGuard, WriteGuard};
use crate::hold::hold_handle::HoldHandle;

const OPERATION: &str = "into_handle";

/// Leaves the hold in Redis, and makes a handle of it.
fn leave(share: Share) -> Result<HoldHandle> {
    if !share.is_whole() {
        return Err(no_whole_hold(&share.hold.keys.name));
    }
    let handle = HoldHandle::of(&share.hold);
    share.keep().map_err(|error| error.during(OPERATION))?;
    Ok(handle)
}

fn no_whole_hold(name: &str) -> Error {
    Error::because(ErrorKind::InvalidInput, OPERATION, "the permits were split or merged").with_name(name)
}

macro_rules! left {
    ($($guard:ident: $resume:literal),+) => {$(
        impl $guard {
            /// Leaves the hold in Redis for another program, which takes it over with
            #[doc = concat!("[`", $resume, "`](crate::", $resume, ").")]
            /// Sends no command.
            ///
            /// The client does not release the hold, and does not renew it any more. Without a program that resumes it,
            /// the hold ends with its lease, so check [`remaining`](Self::remaining) first. If other guards of one
            /// [`Holder`](crate::Holder) share the hold, the client renews it until the last of them is gone. Those
            /// guards lose the hold when another program resumes it.
            ///
            /// # Errors
            /// The guard is gone in any case. If there is an error, the hold is released.
            /// - [`Lost`](crate::ErrorKind::Lost): the hold ended before.
            /// - [`InvalidInput`](crate::ErrorKind::InvalidInput): the hold is that of a
            ///   [`RedLock`](crate::RedLock).
            ///
            /// # Examples
            /// ```no_run
            /// # async fn example(client: bowline::Client, other: bowline::Client) -> bowline::Result<()> {
            #[doc = left!(@example $guard)]
            /// # Ok(()) }
            /// ```
            pub fn into_handle(self) -> Result<HoldHandle> {
                leave(self.owned)
            }
        }
    )+};
    (@example LockGuard) => {
        "let handle = client.lock(\"orders:42\").lock().await?.into_handle()?;\n\
         let secret = handle.to_secret(); // is sent to the other program\n\
         let handle = bowline::HoldHandle::from_secret(&secret)?;\n\
         let guard = other.lock(\"orders:42\").resume(&handle).await?;\n\
         # guard.release().await?;"
    };
    (@example ReadGuard) => {
        "let handle = client.rw_lock(\"orders\").read().await?.into_handle()?;\n\
         let guard = other.rw_lock(\"orders\").resume_read(&handle).await?;\n\
         # guard.release().await?;"
    };
    (@example UpgradableGuard) => {
        "let handle = client.rw_lock(\"orders\").upgradable_read().await?.into_handle()?;\n\
         let guard = other.rw_lock(\"orders\").resume_upgradable(&handle).await?;\n\
         # guard.release().await?;"
    };
    (@example WriteGuard) => {
        "let handle = client.rw_lock(\"orders\").write().await?.into_handle()?;\n\
         let guard = other.rw_lock(\"orders\").resume_write(&handle).await?;\n\
         # guard.release().await?;"
    };
}

left!(
    LockGuard: "Lock::resume",
    ReadGuard: "RwLock::resume_read",
    UpgradableGuard: "RwLock::resume_upgradable",
    WriteGuard: "RwLock::resume_write"
);

impl Permit {
    /// Leaves the permits in Redis for another program, which takes them over with
    /// [`Semaphore::resume`](crate::Semaphore::resume): see [`LockGuard::into_handle`]. Sends no command.
    ///
    /// # Errors
    /// Those of [`LockGuard::into_handle`], and [`InvalidInput`](ErrorKind::InvalidInput) for a guard that was
    /// [split](Self::split) or [merged](Self::merge).
    pub fn into_handle(self) -> Result<HoldHandle> {
        self.into_only_share().map_err(|name| no_whole_hold(&name)).and_then(leave)
    }
}
