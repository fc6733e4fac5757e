//! What a server that changes costs: gaps in the subscription, a reconnect with many waiters, a close with many
//! waiters, latches that are counted down for no use, masters that are restarted, and a cluster without a shard.
//!
//! `cargo run --release -p bowline-benches --bin change -- [part of a case's name]... [names=20000] [holds=600]
//! [seconds=30] [waiters=40000] [counts=200000] [rounds=2]
//! [clients=100]`
#![allow(clippy::disallowed_methods, reason = "what is measured here is real time")]

use bowline_benches::args::Args;
use bowline_benches::report::Report;
use bowline_benches::runtime::Runtime;
use bowline_benches::server::Server;
use bowline_benches::{Result, alloc};

mod close;
mod gaps;
mod latch;
mod reconnect;
mod rolling;
mod storm;

#[global_allocator]
static ALLOCATOR: alloc::Counting = alloc::Counting;

/// The case, the metric and its value.
type Line = (String, &'static str, f64);

fn main() -> Result<()> {
    let args = Args::parse(&["names", "holds", "seconds", "waiters", "counts", "rounds", "clients"])?;
    let (names, holds): (usize, usize) = (args.value("names", 20_000)?, args.value("holds", 600)?);
    let (seconds, waiters): (u64, usize) = (args.value("seconds", 30)?, args.value("waiters", 40_000)?);
    let counts: u32 = args.value("counts", 200_000)?;
    let mut report = Report::default();
    let runtime = Runtime::TokioMulti;
    // Each case has a server of its own, so that its counts are those of the case.
    let mut add = |lines: Result<Vec<Line>>| -> Result<()> {
        for (case, metric, value) in lines? {
            report.add(&case, metric, value);
        }
        Ok(())
    };
    if args.wants("gaps") {
        let (server, case) = (Server::find()?, format!("gaps-{holds}"));
        let (url, probe) = (server.url.clone(), server.probe()?);
        add(runtime.run(move |executor| gaps::measure(executor, url, probe, case, holds, seconds)))?;
    }
    if args.wants("reconnect") {
        let (server, case) = (Server::find()?, format!("reconnect-{names}"));
        let (url, probe) = (server.url.clone(), server.probe()?);
        add(runtime.run(move |executor| reconnect::measure(executor, url, probe, case, names)))?;
    }
    if args.wants("close") {
        let (server, case) = (Server::find()?, format!("close-{waiters}"));
        let (url, probe) = (server.url.clone(), server.probe()?);
        add(runtime.run(move |executor| close::measure(executor, url, probe, case, waiters)))?;
    }
    if args.wants("latch") {
        let (server, case) = (Server::find()?, format!("latch-{counts}"));
        let (url, probe) = (server.url.clone(), server.probe()?);
        add(runtime.run(move |executor| latch::measure(executor, url, probe, case, counts)))?;
    }
    for masters in [3, 5] {
        if args.wants(&format!("rolling-{masters}")) {
            let rounds: u32 = args.value("rounds", 2)?;
            add(runtime.run(move |executor| rolling::measure(executor, masters, rounds)))?;
        }
    }
    let clients: usize = args.value("clients", 100)?;
    if args.wants(&format!("storm-{clients}")) {
        add(runtime.run(move |executor| storm::measure(executor, clients, seconds)))?;
    }
    report.print_tables();
    Ok(())
}
