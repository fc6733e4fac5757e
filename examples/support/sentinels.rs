//! Where the example finds sentinels: at `REDIS_URL`, else a master, a replica and three sentinels of its own, which
//! end with it.

#[path = "processes.rs"]
mod processes;

use processes::{Outcome, Processes, ask, eventually, free_port};

/// The URL of the sentinels, and the servers if they are the example's own: the master first.
pub(crate) struct Sentinels {
    pub(crate) url: String,
    own: Option<Processes>,
}

impl Sentinels {
    pub(crate) fn find() -> Outcome<Self> {
        if let Ok(url) = std::env::var("REDIS_URL") {
            println!("using the sentinels at REDIS_URL");
            return Ok(Self { url, own: None });
        }
        let (mut servers, [master, replica]) = Processes::replicated()?;
        let mut sentinels = Vec::new();
        for _ in 0..3 {
            let port = free_port()?;
            let file = servers.dir.join(format!("{port}.conf"));
            let watched = format!("sentinel monitor mymaster 127.0.0.1 {master} 2");
            let soon = "sentinel down-after-milliseconds mymaster 500\nsentinel failover-timeout mymaster 3000";
            std::fs::write(&file, format!("port {port}\n{watched}\n{soon}\n")).map_err(|error| error.to_string())?;
            servers.run(port, &[&file.display().to_string(), "--sentinel"])?;
            sentinels.push(port);
        }
        for port in &sentinels {
            eventually("the sentinels know each other", || ask(*port, "INFO sentinel", "slaves=1,sentinels=3"))?;
        }
        println!("using a master on port {master}, a replica on {replica} and sentinels on {sentinels:?}");
        let hosts: Vec<String> = sentinels.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let url = format!("redis-sentinel://{}/?master=mymaster", hosts.join(","));
        Ok(Self { url, own: Some(servers) })
    }

    /// Kills the master, unless the servers are not the example's own.
    pub(crate) fn kill_master(&mut self) -> Outcome<()> {
        self.own.as_mut().map_or(Ok(()), |servers| {
            println!("the master is killed");
            servers.kill_first()
        })
    }
}
