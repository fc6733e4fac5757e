//! Disturbs the connections to servers that no relay can stand in front of.

use bowline::async_trait;
use bowline::testing::Disturb;

use crate::support::adapters::admin;
use crate::support::server::Server;

/// Closes all sockets of clients. Answers cannot be lost without that.
pub(crate) struct Kill<'a>(pub(crate) &'a [Server]);

#[async_trait]
impl Disturb for Kill<'_> {
    async fn cut(&self) {
        for server in self.0 {
            for kind in ["normal", "pubsub"] {
                admin(server, &["CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes"]);
            }
        }
    }

    async fn forget_scripts(&self) -> bool {
        self.0.iter().for_each(|server| drop(admin(server, &["SCRIPT", "FLUSH"])));
        true
    }
}
