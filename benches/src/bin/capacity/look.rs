//! The server's counts, and what lies between two looks at them.

use bowline_benches::Result;
use bowline_benches::server::{Executed, Probe};

use crate::Line;

/// What the server has done since it started.
pub(crate) struct Look {
    executed: Executed,
    bytes_in: u64,
    bytes_out: u64,
    messages: u64,
}

impl Look {
    pub(crate) fn now(probe: &mut Probe) -> Result<Self> {
        Ok(Self {
            executed: probe.executed()?,
            bytes_in: probe.info("total_net_input_bytes", None)?,
            bytes_out: probe.info("total_net_output_bytes", None)?,
            messages: probe.info("cmdstat_publish", Some("calls"))?,
        })
    }

    /// What each of `count` operations since `earlier` took.
    pub(crate) fn each_since(&self, earlier: &Self, case: &str, count: u64) -> Vec<Line> {
        let spent = self.executed - earlier.executed;
        let each = |sum: f64| sum / count as f64;
        let metrics = [
            ("scripts", each(spent.scripts as f64)),
            ("script_us", each(spent.micros as f64)),
            ("cpu_us", each(spent.cpu_seconds * 1e6)),
            ("bytes_in", each((self.bytes_in - earlier.bytes_in) as f64)),
            ("bytes_out", each((self.bytes_out - earlier.bytes_out) as f64)),
            ("messages", each((self.messages - earlier.messages) as f64)),
        ];
        metrics.into_iter().map(|(metric, value)| (case.to_owned(), metric, value)).collect()
    }
}
