//! What is asked about a client itself.

use crate::connection::Arg;
use crate::scripts::CLIENT_LISTENERS;
use crate::scripts::call::{Failure, run};
use crate::scripts::dispatch::Scripts;
use crate::scripts::reply::client::listeners;

impl Scripts<'_> {
    /// How many listen to an inbox: the client whose it is, once it has subscribed, and others that have the same id.
    pub(crate) async fn listeners(self, scratch: &str, inbox: &str) -> Result<u64, Failure> {
        let reply = run(self.connection, &CLIENT_LISTENERS, &[scratch], &[Arg::Text(inbox)]).await?;
        Ok(listeners(&CLIENT_LISTENERS, &reply)?)
    }
}
