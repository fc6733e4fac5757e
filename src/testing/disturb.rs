//! How a check disturbs the connections under it.

use async_trait::async_trait;

/// What a check does to the sockets of the connections that it checks. [`Relay`](super::Relay) implements it for a
/// server that is reached by one address. For others, such as a cluster, implement it by `CLIENT KILL` or by the
/// methods of your own proxy.
#[async_trait]
pub trait Disturb: Send + Sync {
    /// Closes every socket of the connections under check. New ones must be accepted.
    async fn cut(&self);

    /// From now on, nothing that the server sends arrives on the sockets that are open now, and everything that is sent
    /// to the server still does. New sockets work. The sockets stay like this until [`cut`](Self::cut).
    ///
    /// False, the default: this cannot be done, so the clauses that need it are not checked.
    async fn lose_answers(&self) -> bool {
        false
    }

    /// Has the server forget all scripts, as `SCRIPT FLUSH` does.
    ///
    /// False, the default: this cannot be done, so the clause that needs it is not checked.
    async fn forget_scripts(&self) -> bool {
        false
    }
}
