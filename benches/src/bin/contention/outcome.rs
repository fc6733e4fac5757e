//! What the children of one case told, over all slices.

use std::time::Duration;

use bowline_benches::Result;
use bowline_benches::measure::Samples;
use bowline_benches::report::Report;
use bowline_benches::server::Executed;

use crate::case::Case;

#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Acquisitions in time, by process and task.
    shares: Vec<Vec<u64>>,
    /// Those that ended after it.
    late: u64,
    commands: u64,
    waits: Samples,
    server: Executed,
    time: Duration,
}

impl Outcome {
    /// One slice: what each child wrote, and what the server did meanwhile.
    pub(crate) fn add(&mut self, outputs: &[String], server: Executed, time: Duration) -> Result<()> {
        self.server += server;
        self.time += time;
        self.shares.resize(outputs.len(), Vec::new());
        for (output, shares) in outputs.iter().zip(&mut self.shares) {
            let mut in_time = Vec::new();
            for line in output.lines() {
                match line.split_once(' ') {
                    Some(("task", counts)) => {
                        let (count, late) = counts.split_once(' ').ok_or("half a line")?;
                        in_time.push(count.parse::<u64>()?);
                        self.late += late.parse::<u64>()?;
                    }
                    Some(("commands", commands)) => self.commands += commands.parse::<u64>()?,
                    Some(("waits", waits)) => self.waits.extend(Samples::from_text(waits)?),
                    _ => return Err(format!("a child wrote {line:?}").into()),
                }
            }
            // Shares are compared by task over all slices, because slices differ in length on a busy machine.
            shares.resize(in_time.len(), 0);
            shares.iter_mut().zip(in_time).for_each(|(share, count)| *share += count);
        }
        Ok(())
    }

    pub(crate) fn report(&mut self, case: Case, report: &mut Report) {
        let in_time: u64 = self.shares.iter().flatten().sum();
        let all = (in_time + self.late) as f64;
        let tasks: Vec<u64> = self.shares.iter().flatten().copied().collect();
        let processes: Vec<u64> = self.shares.iter().map(|tasks| tasks.iter().sum()).collect();
        let name = case.name();
        let mut add = |metric: &str, value| report.add(&name, metric, value);
        add("acquisitions_per_second", in_time as f64 / self.time.as_secs_f64());
        add("client_commands", self.commands as f64 / all);
        add("server_commands", self.server.scripts as f64 / all);
        add("server_us", self.server.micros as f64 / all);
        add("wait_p50_us", self.waits.percentile(50.0));
        add("wait_p99_us", self.waits.percentile(99.0));
        add("wait_max_us", self.waits.percentile(100.0));
        for (what, shares) in [("task", tasks), ("process", processes)] {
            let mean = in_time as f64 / shares.len() as f64;
            let [least, most] =
                [shares.iter().min(), shares.iter().max()].map(|share| share.map_or(0.0, |n| *n as f64));
            add(&format!("{what}_min_share"), least / mean);
            add(&format!("{what}_max_share"), most / mean);
            add(&format!("{what}_max_to_min"), most / least);
        }
    }
}
