//! What bowline costs when many want the same lock, in one process and in several.
//!
//! `cargo run --release -p bowline-benches --bin contention -- [part of a case's name]... [seconds=2] [slices=2]`
#![allow(clippy::disallowed_methods, reason = "what is measured here is real time")]

use std::time::Duration;

use bowline_benches::Result;
use bowline_benches::args::Args;
use bowline_benches::child::{self, Children};
use bowline_benches::report::Report;
use bowline_benches::server::{Probe, Server};

mod case;
mod outcome;
mod workers;

use case::{Case, Kind, SHAPES, Shape};
use outcome::Outcome;

fn main() -> Result<()> {
    if let Some(task) = child::task() {
        return workers::work(&task);
    }
    let args = Args::parse(&["seconds", "slices"])?;
    let time = Duration::from_secs_f64(args.value("seconds", 2.0)?);
    let slices: u32 = args.value("slices", 2)?;
    let server = Server::find()?;
    let mut probe = server.probe()?;
    let mut report = Report::default();
    for shape in SHAPES {
        let kinds: Vec<_> = shape.kinds().filter(|kind| args.wants(&shape.with(*kind).name())).collect();
        let mut outcomes: Vec<_> = kinds.iter().map(|_| Outcome::default()).collect();
        // The cases that are compared take turns.
        for _ in 0..slices {
            for (kind, outcome) in kinds.iter().zip(&mut outcomes) {
                run(shape.with(*kind), time, &server.url, &mut probe, outcome)?;
            }
        }
        kinds.iter().zip(&mut outcomes).for_each(|(kind, outcome)| outcome.report(shape.with(*kind), &mut report));
        compare(shape, &mut report);
    }
    report.print_tables();
    report.chart("acquisitions_per_second", "contention", "Acquisitions per second")
}

/// One slice of a case.
fn run(case: Case, time: Duration, url: &str, probe: &mut Probe, outcome: &mut Outcome) -> Result<()> {
    let children = Children::start(case.shape.processes, &case.task(time, url))?;
    let before = probe.executed()?;
    let outputs = children.run()?;
    outcome.add(&outputs, probe.executed()? - before, time)
}

fn compare(shape: Shape, report: &mut Report) {
    let rate = |report: &Report, kind| report.get(&shape.with(kind).name(), "acquisitions_per_second");
    let pairs = [
        ("fair_to_baseline", Kind::Fair, Kind::Baseline),
        ("fair_to_bare", Kind::Fair, Kind::Bare),
        ("nonfair_to_fair", Kind::NonFair, Kind::Fair),
        ("nonfair_to_local", Kind::NonFair, Kind::Local),
        ("permits_to_nonfair", Kind::Permits, Kind::NonFair),
        ("writers_to_nonfair", Kind::Writers, Kind::NonFair),
    ];
    for (metric, kind, other) in pairs {
        if let (Some(rate), Some(other)) = (rate(report, kind), rate(report, other)) {
            report.add(&shape.name(), metric, rate / other);
        }
    }
}
