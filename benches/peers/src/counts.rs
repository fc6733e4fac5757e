//! What the servers counted while it was a peer's turn.

use std::collections::BTreeMap;

use bowline_benches::Result;
use bowline_benches::report::Report;
use bowline_benches::server::Server;
use futures::future::try_join_all;

use crate::peer::Peer;

/// Commands that a peer sent, and the server's microseconds for them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    commands: u64,
    micros: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, before: Self, after: Self) {
        self.commands += after.commands - before.commands;
        self.micros += after.micros - before.micros;
    }

    /// Per acquisition and release.
    pub(crate) fn report(&self, case: &str, peer: Peer, acquisitions: f64, report: &mut Report) {
        report.add(case, "commands", self.commands as f64 / acquisitions + peer.uncounted_commands());
        report.add(case, "server_us", self.micros as f64 / acquisitions);
    }

    /// Per renewal, which leaves nothing out.
    pub(crate) fn report_renewals(&self, case: &str, renewals: f64, report: &mut Report) {
        report.add(case, "commands", self.commands as f64 / renewals);
        report.add(case, "server_us", self.micros as f64 / renewals);
    }
}

/// Looks at what the servers have counted together.
pub(crate) struct Looks(Vec<redis::aio::MultiplexedConnection>);

impl Looks {
    pub(crate) async fn open(servers: &[Server]) -> Result<Self> {
        let open = async |server: &Server| redis::Client::open(&*server.url)?.get_multiplexed_async_connection().await;
        Ok(Self(try_join_all(servers.iter().map(open)).await?))
    }

    /// The processor time that the servers have used together, in microseconds. Unlike [`look`](Self::look), it
    /// includes the time in which they read requests and write replies.
    pub(crate) async fn cpu_us(&mut self) -> Result<f64> {
        let mut seconds = 0.0;
        for connection in &mut self.0 {
            let info: String = redis::cmd("INFO").arg("cpu").query_async(connection).await?;
            for name in ["used_cpu_sys:", "used_cpu_user:"] {
                let used = info.lines().find_map(|line| line.strip_prefix(name)).ok_or("no processor time")?;
                seconds += used.parse::<f64>()?;
            }
        }
        Ok(seconds * 1e6)
    }

    /// Removes all keys with that part in their names.
    pub(crate) async fn remove(&mut self, name: &str) -> Result<()> {
        for connection in &mut self.0 {
            let keys: Vec<String> = redis::cmd("KEYS").arg(format!("*{name}*")).query_async(connection).await?;
            for some in keys.chunks(1_000) {
                let () = redis::cmd("UNLINK").arg(some).query_async(connection).await?;
            }
        }
        Ok(())
    }

    pub(crate) async fn look(&mut self, peer: Peer) -> Result<Counts> {
        let mut counts = Counts::default();
        for connection in &mut self.0 {
            let info: String = redis::cmd("INFO").arg("commandstats").query_async(connection).await?;
            let lines = info.lines().filter_map(|line| line.strip_prefix("cmdstat_")?.split_once(':'));
            let stats: BTreeMap<&str, &str> = lines.collect();
            for line in peer.commands().iter().filter_map(|command| stats.get(command)) {
                let field =
                    |name| line.split(',').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')?.parse().ok());
                counts.commands += field("calls").unwrap_or(0);
                counts.micros += field("usec").unwrap_or(0);
            }
        }
        Ok(counts)
    }
}
