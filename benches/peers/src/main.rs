//! bowline beside other locks on Redis, in the same run and by turns.
//!
//! `cargo run --release -- [part of a case's name]... [pairs=2000] [seconds=2] [slices=3]`, in `benches/peers`

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bowline_benches::Result;
use bowline_benches::args::Args;
use bowline_benches::measure::Samples;
use bowline_benches::report::Report;
use bowline_benches::runtime::Runtime;
use bowline_benches::server::Server;
use futures::future::try_join_all;
use tokio::time::timeout;

mod chart;
mod peer;

use peer::{Peer, Taker};

/// Pairs of one peer before it is the next one's turn.
const BLOCK: u32 = 100;

/// How much longer than planned a turn of one peer may take: a lock that hangs ends the bench.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits that a task keeps per slice. Later ones are only counted, so that the length of a slice does not decide the memory.
const MOST_WAITS: u64 = 200_000;

fn main() -> Result<()> {
    let args = Args::parse(&["pairs", "seconds", "slices"])?;
    let server = Server::find()?;
    let url = server.url.clone();
    let report = Runtime::TokioMulti.run(|_| async move {
        let mut report = Report::default();
        pairs(&url, &args, &mut report).await?;
        for tasks in [8, 64] {
            contention(tasks, &url, &args, &mut report).await?;
        }
        Ok(report)
    })?;
    report.print_tables();
    chart::draw(&report)
}

/// One peer's lock, and what was seen of it so far.
struct Contender {
    peer: Peer,
    case: String,
    taker: Taker,
    waits: Samples,
    counts: Counts,
    /// Acquisitions, by task.
    shares: Vec<u64>,
    /// Of each slice: acquisitions per second, and the 99th percentile of its waits.
    slices: Vec<[f64; 2]>,
}

impl Contender {
    fn hangs(&self) -> String {
        format!("{}: no end after {PATIENCE:?} more than its turn", self.case)
    }
}

async fn contenders(what: &str, url: &str, args: &Args) -> Result<Vec<Contender>> {
    let mut all = Vec::new();
    for peer in Peer::ALL {
        let case = format!("{what}-{}", peer.name());
        if args.wants(&case) {
            let taker = peer.open(url, what).await?;
            // Scripts are sent whole once, and connections opened.
            taker.once().await?;
            let (waits, counts) = (Samples::default(), Counts::default());
            all.push(Contender { peer, case, taker, waits, counts, shares: Vec::new(), slices: Vec::new() });
        }
    }
    Ok(all)
}

/// Acquire and release of what is free. A wait is the whole pair here.
async fn pairs(url: &str, args: &Args, report: &mut Report) -> Result<()> {
    let pairs: u32 = args.value("pairs", 2_000)?;
    let mut all = contenders("pair", url, args).await?;
    let mut looks = Looks::open(url).await?;
    for _ in 0..pairs.div_ceil(BLOCK) {
        for contender in &mut all {
            let before = looks.look(contender.peer).await?;
            let waits = timeout(PATIENCE, block(&contender.taker));
            contender.waits.extend(waits.await.map_err(|_| contender.hangs())??);
            contender.counts.add(before, looks.look(contender.peer).await?);
        }
    }
    let done = f64::from(pairs.div_ceil(BLOCK) * BLOCK);
    for Contender { case, waits, counts, .. } in &mut all {
        report.add(case, "p50_us", waits.percentile(50.0));
        report.add(case, "p99_us", waits.percentile(99.0));
        counts.report(case, done, report);
    }
    Ok(())
}

/// That many tasks want the same lock all the time, for empty sections.
async fn contention(tasks: usize, url: &str, args: &Args, report: &mut Report) -> Result<()> {
    let time = Duration::from_secs_f64(args.value("seconds", 2.0)?);
    let slices: u32 = args.value("slices", 3)?;
    let mut all = contenders(&format!("1x{tasks}"), url, args).await?;
    let mut looks = Looks::open(url).await?;
    for _ in 0..slices {
        for contender in &mut all {
            let before = looks.look(contender.peer).await?;
            let until = Instant::now() + time;
            let running: Vec<_> = (0..tasks).map(|_| tokio::spawn(repeat(contender.taker.clone(), until))).collect();
            contender.shares.resize(tasks, 0);
            let results = timeout(time + PATIENCE, try_join_all(running));
            let results = results.await.map_err(|_| contender.hangs())??;
            let (mut done, mut slice) = (0, Samples::default());
            for (result, share) in results.into_iter().zip(&mut contender.shares) {
                let (count, waits) = result?;
                *share += count;
                done += count;
                slice.extend(waits);
            }
            contender.slices.push([done as f64 / time.as_secs_f64(), slice.percentile(99.0)]);
            contender.waits.extend(slice);
            contender.counts.add(before, looks.look(contender.peer).await?);
        }
    }
    for Contender { case, waits, counts, shares, slices, .. } in &mut all {
        let done = shares.iter().sum::<u64>() as f64;
        let ends = [shares.iter().min(), shares.iter().max()].map(|end| end.map_or(0.0, |share| *share as f64));
        let mean = done / tasks as f64;
        // Medians of the slices: a burst of other load spoils one of them.
        report.add(case, "acquisitions_per_second", median(slices.iter().map(|slice| slice[0])));
        counts.report(case, done, report);
        report.add(case, "wait_p50_us", waits.percentile(50.0));
        report.add(case, "wait_p99_us", median(slices.iter().map(|slice| slice[1])));
        report.add(case, "wait_max_us", waits.percentile(100.0));
        report.add(case, "task_min_share", ends[0] / mean);
        report.add(case, "task_max_share", ends[1] / mean);
    }
    Ok(())
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// The times of a block of pairs.
async fn block(taker: &Taker) -> Result<Samples> {
    let mut waits = Samples::default();
    for _ in 0..BLOCK {
        let start = Instant::now();
        taker.once().await?;
        waits.add(start.elapsed());
    }
    Ok(waits)
}

/// The last acquisition may end after the time is over: it counts too, in all that is told.
async fn repeat(taker: Taker, until: Instant) -> Result<(u64, Samples)> {
    let (mut count, mut waits) = (0, Samples::default());
    while Instant::now() < until {
        let wait = taker.once().await?;
        if count < MOST_WAITS {
            waits.add(wait);
        }
        count += 1;
    }
    Ok((count, waits))
}

/// Commands that a peer sent, and the server's microseconds for them.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    commands: u64,
    micros: u64,
}

impl Counts {
    fn add(&mut self, before: Self, after: Self) {
        self.commands += after.commands - before.commands;
        self.micros += after.micros - before.micros;
    }

    fn report(&self, case: &str, acquisitions: f64, report: &mut Report) {
        report.add(case, "commands", self.commands as f64 / acquisitions);
        report.add(case, "server_us", self.micros as f64 / acquisitions);
    }
}

/// Looks at what the server has counted.
struct Looks(redis::aio::MultiplexedConnection);

impl Looks {
    async fn open(url: &str) -> Result<Self> {
        Ok(Self(redis::Client::open(url)?.get_multiplexed_async_connection().await?))
    }

    async fn look(&mut self, peer: Peer) -> Result<Counts> {
        let info: String = redis::cmd("INFO").arg("commandstats").query_async(&mut self.0).await?;
        let lines = info.lines().filter_map(|line| line.strip_prefix("cmdstat_")?.split_once(':'));
        let stats: BTreeMap<&str, &str> = lines.collect();
        let mut counts = Counts::default();
        for line in peer.commands().iter().filter_map(|command| stats.get(command)) {
            let field =
                |name| line.split(',').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')?.parse().ok());
            counts.commands += field("calls").unwrap_or(0);
            counts.micros += field("usec").unwrap_or(0);
        }
        Ok(counts)
    }
}
