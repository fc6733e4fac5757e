//! Requests to release a hold.

use futures::future::select_all;

use super::{LockGuard, Permit, ReadGuard, Share, UpgradableGuard, WriteGuard};

/// Whether a program has asked the holder to release one of them.
pub(crate) fn is_asked<'a>(mut shares: impl Iterator<Item = &'a Share>) -> bool {
    shares.any(|share| share.hold.is_asked_to_release())
}

/// Resolves when a program asks the holder to release one of them.
pub(crate) async fn asked<'a>(shares: impl Iterator<Item = &'a Share>) {
    let asked: Vec<_> = shares.map(|share| Box::pin(share.hold.asked_to_release())).collect();
    if asked.is_empty() {
        std::future::pending::<()>().await;
    }
    select_all(asked).await;
}

impl LockGuard {
    /// Resolves when a program asks the holder to release the lock
    /// ([`Lock::ask_to_release`](crate::Lock::ask_to_release)). Resolves at once if a program has asked already, and
    /// never if no program asks. The holder decides what to do.
    ///
    /// The request is for the hold. All guards that share the hold see it, and so do the guards to which a
    /// [cohort](crate::Acquire::non_fair) hands the hold off. A downgrade or an upgrade begins a new hold, without the
    /// request.
    ///
    /// A request is a message. The message is lost if the client has no connection at that moment.
    ///
    /// # Cancel safety
    /// The future may be dropped and `asked_to_release` called again.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn step() -> bool { true }
    /// # async fn example(guard: bowline::LockGuard) -> bowline::Result<()> {
    /// // Work in steps, and end early if another program asks for the lock.
    /// while step().await {
    ///     if guard.is_asked_to_release() {
    ///         break;
    ///     }
    /// }
    /// guard.release().await
    /// # }
    /// ```
    pub async fn asked_to_release(&self) {
        self.owned.hold.asked_to_release().await;
    }

    /// Whether a program has asked the holder to release: see [`asked_to_release`](Self::asked_to_release). Sends no
    /// command.
    pub fn is_asked_to_release(&self) -> bool {
        self.owned.hold.is_asked_to_release()
    }
}

/// The same for guards that may have several shares.
macro_rules! asked_as_a_lock {
    ($($guard:ident),+) => {$(
        impl $guard {
            /// Resolves when a program asks the holder to release: see
            /// [`LockGuard::asked_to_release`](crate::LockGuard::asked_to_release).
            ///
            /// # Cancel safety
            /// The future may be dropped and `asked_to_release` called again.
            pub async fn asked_to_release(&self) {
                asked(self.all_shares()).await;
            }

            /// Whether a program has asked the holder to release: see [`asked_to_release`](Self::asked_to_release).
            /// Sends no command.
            pub fn is_asked_to_release(&self) -> bool {
                is_asked(self.all_shares())
            }
        }
    )+};
}

asked_as_a_lock!(ReadGuard, UpgradableGuard, WriteGuard, Permit);

macro_rules! one_share {
    ($($guard:ident),+) => {$(
        impl $guard {
            fn all_shares(&self) -> impl Iterator<Item = &Share> {
                std::iter::once(&self.owned)
            }
        }
    )+};
}

one_share!(ReadGuard, UpgradableGuard, WriteGuard);

impl Permit {
    fn all_shares(&self) -> impl Iterator<Item = &Share> {
        self.shares()
    }
}
