//! The guards of locks that Java programs share.

use super::Share;
use crate::protocol::token::Token;

/// A held [`RedissonLock`](crate::RedissonLock). [`release`](Self::release) ends the hold and waits for the server. A
/// drop releases in the background.
///
/// While [`is_valid`](Self::is_valid) returns `true`, no other guard of the same name is valid, and no Java thread
/// holds the lock, with the exceptions of [`LockGuard`](crate::LockGuard). There is no fencing token that would cover
/// these: Redisson's lock has none.
///
/// # Examples
/// ```compile_fail,E0599
/// # fn example(guard: bowline::RedissonGuard) {
/// guard.token(); // a RedissonFencedGuard has one
/// # }
/// ```
#[must_use = "the lock is released when the guard is dropped"]
pub struct RedissonGuard {
    pub(crate) owned: Share,
}

/// A held [`RedissonFencedLock`](crate::RedissonFencedLock): a [`RedissonGuard`] with a fencing token.
#[must_use = "the lock is released when the guard is dropped"]
pub struct RedissonFencedGuard {
    pub(crate) owned: Share,
}

impl RedissonFencedGuard {
    /// The fencing token of this hold, which is larger than those of all earlier holds, in Java too. Re-entry and
    /// renewal keep it.
    ///
    /// The counter is Redisson's. If Redis loses it, tokens begin at 1 again: unlike those of a
    /// [`LockGuard`](crate::LockGuard), they have no clock to start from.
    pub fn token(&self) -> Token {
        self.owned.hold.token()
    }
}

/// A permit of a [`RedissonPermitSemaphore`](crate::RedissonPermitSemaphore). [`release`](Self::release) gives the
/// permit back and waits for the server. A drop gives it back in the background.
///
/// While the [`is_valid`](Self::is_valid) of several guards of one name returns `true`, they and the Java programs have
/// at most as many permits as were set, with the exceptions of [`LockGuard`](crate::LockGuard). In addition, a Java
/// program whose clock is ahead of the server's may take the permit before its lease has ended: the guard is lost at
/// its next renewal then.
#[must_use = "the permit is given back when the guard is dropped"]
pub struct RedissonPermitGuard {
    pub(crate) owned: Share,
}

impl RedissonPermitGuard {
    /// The id of the permit, as Java spells it: 32 hexadecimal digits.
    ///
    /// To hand the permit over, [`keep`](Self::keep) it, and give the id to another program. That has the permit for as
    /// long as its lease lasts, may prolong it in Java by `updateLeaseTime`, and gives it back by
    /// [`release_id`](crate::RedissonPermitSemaphore::release_id) or, in Java, by `release`. Who knows the id can do
    /// that also while the guard exists, which is lost then.
    pub fn id(&self) -> String {
        self.owned.hold.id.permit()
    }
}
