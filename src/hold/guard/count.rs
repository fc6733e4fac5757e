//! How many guards share a hold.

use super::{LockGuard, ReadGuard, RedissonFencedGuard, RedissonGuard, UpgradableGuard, WriteGuard};

/// What the guards of a hold that can be re-entered tell.
macro_rules! reentrant {
    ($($guard:ident),+) => {$(
        impl $guard {
            /// How many guards of this client share the hold now, this one included: 1, or more after a
            /// [`Holder`](crate::Holder) has re-entered the hold. A [`MultiGuard`](crate::MultiGuard) counts as one for
            /// each of its names. The hold ends with its last guard. Sends no command.
            pub fn guard_count(&self) -> usize {
                self.owned.guard_count()
            }
        }
    )+};
}

reentrant!(LockGuard, ReadGuard, UpgradableGuard, WriteGuard, RedissonGuard, RedissonFencedGuard);
