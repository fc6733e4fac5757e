//! One peer in one case, and what was measured of it.

use std::time::Duration;

use bowline_benches::Result;
use bowline_benches::measure::Samples;
use bowline_benches::report::Report;
use rustix::time::{ClockId, clock_gettime};
use tokio::time::timeout;

use crate::counts::{Counts, Looks};
use crate::peer::Peer;
use crate::runner::Runner;

/// How much longer than planned a turn of one peer may take: a lock that hangs ends the bench.
const PATIENCE: Duration = Duration::from_secs(60);

/// One peer's lock, and what was seen of it so far.
pub(crate) struct Contender {
    peer: Peer,
    case: String,
    runner: Runner,
    waits: Samples,
    counts: Counts,
    /// The processor time of its pairs in this program and at the servers, in microseconds.
    cpu: [f64; 2],
    /// Acquisitions, by task.
    shares: Vec<u64>,
    /// Of each slice: acquisitions and hand-overs per second, and the 99th percentile of its waits.
    slices: Vec<[f64; 3]>,
}

impl Contender {
    /// Ready to be measured with that many tasks.
    pub(crate) async fn new(peer: Peer, case: String, mut runner: Runner, tasks: usize) -> Result<Self> {
        timeout(PATIENCE, runner.warm_up(tasks)).await.map_err(|_| hangs(&case))??;
        let (waits, counts) = (Samples::default(), Counts::default());
        Ok(Self { peer, case, runner, waits, counts, cpu: [0.0; 2], shares: vec![0; tasks], slices: Vec::new() })
    }

    /// A block of pairs of acquire and release. A wait is the whole pair here.
    pub(crate) async fn pairs(&mut self, count: u32, looks: &mut Looks) -> Result<()> {
        let before = looks.look(self.peer).await?;
        // The own time is read last here and first below, so that it has nothing of the looks.
        let (served, own) = (looks.cpu_us().await?, own_cpu_us());
        let waits = timeout(PATIENCE, self.runner.pairs(count)).await.map_err(|_| hangs(&self.case))??;
        self.cpu[0] += own_cpu_us() - own;
        self.cpu[1] += looks.cpu_us().await? - served;
        self.waits.extend(waits);
        self.shares[0] += u64::from(count);
        self.counts.add(before, looks.look(self.peer).await?);
        Ok(())
    }

    /// A slice in which all tasks want the lock all the time.
    pub(crate) async fn slice(&mut self, time: Duration, looks: &mut Looks) -> Result<()> {
        let before = looks.look(self.peer).await?;
        let turn = timeout(time + PATIENCE, self.runner.turn(self.shares.len(), time));
        let mut turn = turn.await.map_err(|_| hangs(&self.case))??;
        self.counts.add(before, looks.look(self.peer).await?);
        for (share, count) in self.shares.iter_mut().zip(&turn.counts) {
            *share += count;
        }
        let rates = [turn.counts.iter().sum(), turn.hand_overs].map(|count: u64| count as f64 / time.as_secs_f64());
        self.slices.push([rates[0], rates[1], turn.waits.percentile(99.0)]);
        self.waits.extend(turn.waits);
        Ok(())
    }

    pub(crate) fn report_pairs(&mut self, report: &mut Report) {
        report.add(&self.case, "p50_us", self.waits.percentile(50.0));
        report.add(&self.case, "p99_us", self.waits.percentile(99.0));
        // The locks of Redisson are in another program.
        if !self.peer.is_redisson() {
            report.add(&self.case, "client_cpu_us", self.cpu[0] / self.acquisitions());
        }
        report.add(&self.case, "servers_cpu_us", self.cpu[1] / self.acquisitions());
        self.counts.report(&self.case, self.peer, self.acquisitions(), report);
    }

    pub(crate) fn report_slices(&mut self, report: &mut Report) {
        let done = self.acquisitions();
        let Self { peer, case, waits, counts, shares, slices, .. } = self;
        let ends = [shares.iter().min(), shares.iter().max()].map(|end| end.map_or(0.0, |share| *share as f64));
        let mean = done / shares.len() as f64;
        // Medians of the slices: a burst of other load spoils one of them.
        report.add(case, "acquisitions_per_second", median(slices.iter().map(|slice| slice[0])));
        report.add(case, "hand_overs_per_second", median(slices.iter().map(|slice| slice[1])));
        counts.report(case, *peer, done, report);
        report.add(case, "wait_p50_us", waits.percentile(50.0));
        report.add(case, "wait_p99_us", median(slices.iter().map(|slice| slice[2])));
        report.add(case, "wait_max_us", waits.percentile(100.0));
        report.add(case, "task_min_share", ends[0] / mean);
        report.add(case, "task_max_share", ends[1] / mean);
    }

    fn acquisitions(&self) -> f64 {
        self.shares.iter().sum::<u64>() as f64
    }
}

/// The processor time of this program.
fn own_cpu_us() -> f64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec as f64 * 1e6 + used.tv_nsec as f64 / 1e3
}

fn hangs(case: &str) -> String {
    format!("{case}: no end after {PATIENCE:?} more than its turn")
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
