//! What is asked about a client itself.

use crate::connection::Arg;
use crate::protocol::CLIENT_LISTENERS;
use crate::protocol::call::{Failure, run};
use crate::protocol::dispatch::Scripts;
use crate::protocol::reply::client::listeners;

impl Scripts<'_> {
    /// How many listen to an inbox: the client whose it is, once it has subscribed, and others that have the same id.
    pub(crate) async fn listeners(self, scratch: &str, inbox: &str) -> Result<u64, Failure> {
        let reply = run(self.connection, &CLIENT_LISTENERS, &[scratch], &[Arg::Text(inbox)]).await?;
        Ok(listeners(&CLIENT_LISTENERS, &reply)?)
    }
}
