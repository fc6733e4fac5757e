//! What many tickets, many holds and many waiters cost.
//!
//! `cargo run --release -p bowline-benches --bin scale -- [part of a case's name]... [largest=100000] [calls=200]
//! [lease=9] [rounds=3] [waiters_lease=60]`
#![allow(clippy::disallowed_methods, reason = "what is measured here is real time")]

use bowline_benches::args::Args;
use bowline_benches::chart::{self, Series};
use bowline_benches::child::{self, Children};
use bowline_benches::report::Report;
use bowline_benches::runtime::Runtime;
use bowline_benches::server::Server;
use bowline_benches::{Result, alloc};

mod held;
mod process;
mod queue;
mod waiting;

use waiting::Waiting;

#[global_allocator]
static ALLOCATOR: alloc::Counting = alloc::Counting;

const QUEUES: [usize; 5] = [10, 100, 1_000, 10_000, 100_000];
const NAMES: [usize; 3] = [1_000, 10_000, 100_000];

/// What a client waits for.
const WAITING: [Waiting; 2] = [Waiting::Names, Waiting::OneName];

fn main() -> Result<()> {
    if let Some(task) = child::task() {
        return match task.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["held", url, names, lease, rounds] => held::measure(url, names.parse()?, lease.parse()?, rounds.parse()?),
            [case, url, waiters, lease] => match WAITING.into_iter().find(|waiting| waiting.case() == case) {
                Some(waiting) => waiting::measure(waiting, url, waiters.parse()?, lease.parse()?),
                None => Err(format!("not a task: {task:?}").into()),
            },
            _ => Err(format!("not a task: {task:?}").into()),
        };
    }
    let args = Args::parse(&["largest", "calls", "lease", "rounds", "waiters_lease"])?;
    let largest: usize = args.value("largest", 100_000)?;
    let (lease, rounds): (u64, u32) = (args.value("lease", 9)?, args.value("rounds", 3)?);
    let waiters_lease: u64 = args.value("waiters_lease", 60)?;
    let server = Server::find()?;
    let mut report = Report::default();

    let wanted = |kind: &str, size: usize| size <= largest && args.wants(&format!("{kind}-{size}"));
    let sizes: Vec<_> = QUEUES.into_iter().filter(|size| wanted("queue", *size)).collect();
    let (url, probe, calls) = (server.url.clone(), server.probe()?, args.value("calls", 200)?);
    for (case, metric, value) in
        Runtime::TokioMulti.run(|executor| queue::measure(executor, url, probe, sizes, calls))?
    {
        report.add(&case, &metric, value);
    }
    for names in NAMES.into_iter().filter(|names| wanted("held", *names)) {
        let task = ["held".to_owned(), server.url.clone(), names.to_string(), lease.to_string(), rounds.to_string()];
        in_a_process(&task, &mut report)?;
    }
    let cases = WAITING.into_iter().flat_map(|waiting| NAMES.map(|waiters| (waiting, waiters)));
    for (waiting, waiters) in cases.filter(|(waiting, waiters)| wanted(waiting.case(), *waiters)) {
        let url = server.url.clone();
        Runtime::TokioMulti.run(|executor| waiting::others(executor, url, waiting.names(waiters), true))?;
        let task = [waiting.case().to_owned(), server.url.clone(), waiters.to_string(), waiters_lease.to_string()];
        in_a_process(&task, &mut report)?;
        let url = server.url.clone();
        Runtime::TokioMulti.run(|executor| waiting::others(executor, url, waiting.names(waiters), false))?;
    }
    report.print_tables();
    draw(&report)
}

/// A client of its own process: its memory and its share of the processors are all that is measured.
fn in_a_process(task: &[String], report: &mut Report) -> Result<()> {
    for line in Children::start(1, task)?.run()?.iter().flat_map(|output| output.lines()) {
        if !report.add_line(line) {
            return Err(format!("the child wrote {line:?}").into());
        }
    }
    Ok(())
}

fn draw(report: &Report) -> Result<()> {
    let series = queue::OPERATIONS.map(|operation| {
        let point = |size: usize| Some((size as f64, report.get(&queue::case(size), operation)?));
        Series { name: operation.to_owned(), points: QUEUES.into_iter().filter_map(point).collect() }
    });
    chart::lines("scale", "Server time by length of the queue", ["tickets", "microseconds"], &series)
}
