//! Where the example finds a primary with a replica: at `REDIS_URL`, else two servers of its own, which end with it.

#[path = "processes.rs"]
mod processes;

use processes::{Outcome, Processes, ask, eventually, free_port};

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
        let [primary, replica] = [free_port()?, free_port()?];
        let mut servers = Processes::new()?;
        servers.run(primary, &["--port", &primary.to_string(), "--repl-diskless-sync-delay", "0"])?;
        servers.run(replica, &["--port", &replica.to_string(), "--replicaof", "127.0.0.1", &primary.to_string()])?;
        eventually("the replica follows", || ask(replica, "INFO replication", "master_link_status:up"))?;
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
