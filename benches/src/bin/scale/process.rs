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
    Some(value_of("status", "VmRSS:")?.strip_suffix(" kB")?.parse::<f64>().ok()? * 1024.0)
}

/// How often the process has written to a socket or file.
pub(crate) fn writes() -> Option<f64> {
    value_of("io", "syscw:")?.parse().ok()
}

fn value_of(file: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/self/{file}")).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim().to_owned())
}
