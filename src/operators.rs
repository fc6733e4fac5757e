//! What operators ask of a client, beside what the handles of the primitives offer.

use crate::client::Client;
use crate::deadlock::Deadlocks;
use crate::error::Result;
use crate::names::changes::HoldChanges;
use crate::names::look::{NameState, look};
use crate::names::{NameInUse, Names};

impl Client {
    /// Lists the names that are in use, by all programs with the same [prefix](crate::ConfigBuilder::prefix). The user
    /// needs the rights to run `SCAN` and `INFO`. Sends nothing before a page is read.
    pub fn names(&self) -> Names {
        Names::new(&self.source)
    }

    /// Reads who holds each of these names and who waits for it, and returns the states in the order of the names. Each
    /// name is read in one moment, but for a `RedLock`, whose votes and queue are read one after the other. Different
    /// names are read at different moments.
    ///
    /// # Errors
    /// One for each name: [`InvalidInput`](crate::ErrorKind::InvalidInput) for an invalid one, and the errors of a
    /// server that does not answer or refuses.
    ///
    /// # Cancel safety
    /// Reads only. Dropping the future changes nothing in Redis.
    pub async fn look(&self, names: &[NameInUse]) -> Vec<Result<NameState>> {
        look(self.context(), names).await
    }

    /// Reports who holds a name, and then the grants, releases and losses of it: for dashboards and logs. The name is
    /// looked at when the server says that it has changed, at most once in 10 ms: a hold that comes and goes between
    /// two looks is missing. The handles have this for their own names, as [`Lock::changes`](crate::Lock::changes).
    /// Sends nothing before it is polled.
    ///
    /// # Examples
    /// ```no_run
    /// use bowline::{HoldChange, NameInUse, PrimitiveKind};
    /// use futures::StreamExt;
    ///
    /// # async fn example(client: bowline::Client) -> bowline::Result<()> {
    /// let mut changes = client.changes(NameInUse::new(PrimitiveKind::Lock, "orders:42"));
    /// while let Some(change) = changes.next().await {
    ///     match change? {
    ///         HoldChange::Granted(hold) => println!("{:?} holds it", hold.label),
    ///         HoldChange::Released(hold) => println!("{:?} has released it", hold.label),
    ///         HoldChange::Lost(hold) => println!("the lease of {:?} has ended", hold.label),
    ///         _ => {}
    ///     }
    /// }
    /// # Ok(()) }
    /// ```
    pub fn changes(&self, name: NameInUse) -> HoldChanges {
        HoldChanges::of(&self.source, name)
    }

    /// Searches for programs that wait for each other's holds. The user needs the rights to run `SCAN` and `INFO`.
    /// Sends nothing before it is awaited.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example(client: bowline::Client) -> bowline::Result<()> {
    /// for deadlock in client.deadlocks().starting_with("orders/").await? {
    ///     println!("{deadlock}");
    /// }
    /// # Ok(()) }
    /// ```
    pub fn deadlocks(&self) -> Deadlocks {
        Deadlocks::new(&self.source)
    }
}
