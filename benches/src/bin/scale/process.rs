//! What this process uses.

use std::time::{Duration, Instant};

use bowline_benches::Result;
use rustix::time::{ClockId, clock_gettime};

/// A look at the time of the process and at that of the world.
pub(crate) struct Look {
    cpu: Duration,
    at: Instant,
}

impl Look {
    pub(crate) fn now() -> Result<Self> {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let cpu = Duration::new(u64::try_from(cpu.tv_sec)?, u32::try_from(cpu.tv_nsec)?);
        Ok(Self { cpu, at: Instant::now() })
    }

    /// The share of one processor since `earlier`.
    pub(crate) fn share_since(&self, earlier: &Self) -> f64 {
        (self.cpu - earlier.cpu).as_secs_f64() / (self.at - earlier.at).as_secs_f64()
    }
}

/// Bytes of memory that are resident; none where the system does not say it in `/proc`.
pub(crate) fn resident() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<f64>().ok()? * 1024.0)
}
