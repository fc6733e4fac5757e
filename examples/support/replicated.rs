//! Where the example finds a primary with a replica: at `REDIS_URL`, else two servers of its own, which end with it.

#[path = "processes.rs"]
mod processes;

use processes::{Outcome, Processes, ask, eventually};

/// The URL of the primary, and the servers if they are the example's own.
pub(crate) struct Replicated {
    pub(crate) url: String,
    /// The processes, the primary first, and the port of the replica.
    own: Option<(Processes, u16)>,
}

impl Replicated {
    pub(crate) fn find() -> Outcome<Self> {
        if let Ok(url) = std::env::var("REDIS_URL") {
            println!("using the server at REDIS_URL, which needs a replica");
            return Ok(Self { url, own: None });
        }
        let (servers, [primary, replica]) = Processes::replicated()?;
        println!("using a primary on port {primary} and its replica on {replica}");
        Ok(Self { url: format!("redis://127.0.0.1:{primary}/"), own: Some((servers, replica)) })
    }

    /// Kills the primary, makes the replica the primary and returns its URL. `None`: the servers are not the example's
    /// own.
    pub(crate) fn fail_over(&mut self) -> Outcome<Option<String>> {
        let Some((servers, replica)) = &mut self.own else { return Ok(None) };
        servers.kill_first()?;
        eventually("the replica is the primary", || ask(*replica, "REPLICAOF NO ONE", "OK"))?;
        Ok(Some(format!("redis://127.0.0.1:{replica}/")))
    }
}
