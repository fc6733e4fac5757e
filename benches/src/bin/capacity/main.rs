//! What one acquisition, hand-over, renewal, heartbeat and message costs the server, and what names, holds and waiters
//! need of its memory.
//!
//! `cargo run --release -p bowline-benches --bin capacity -- [part of a case's name]... [operations=20000]
//! [names=10000] [messages=10000]`
#![allow(clippy::disallowed_methods, reason = "what is measured here is real time")]

use bowline_benches::Result;
use bowline_benches::args::Args;
use bowline_benches::report::Report;
use bowline_benches::runtime::Runtime;
use bowline_benches::server::Server;

mod bus;
mod look;
mod stock;
mod work;

/// Sizes of clusters, in nodes.
const NODES: [usize; 4] = [3, 6, 12, 24];

/// One result: case, metric, value.
type Line = (String, &'static str, f64);

fn main() -> Result<()> {
    let args = Args::parse(&["operations", "names", "messages"])?;
    let (operations, names) = (args.value("operations", 20_000)?, args.value("names", 10_000)?);
    let messages = args.value("messages", 10_000)?;
    let mut report = Report::default();
    let mut add = |lines: Vec<Line>| lines.iter().for_each(|(case, metric, value)| report.add(case, metric, *value));
    for kind in work::Kind::ALL.into_iter().filter(|kind| args.wants(kind.name())) {
        let server = Server::find()?;
        let (url, probe) = (server.url.clone(), server.probe()?);
        add(Runtime::TokioMulti.run(|executor| work::measure(executor, url, probe, kind, operations))?);
    }
    if args.wants("stock") {
        let server = Server::find()?;
        let (url, probe) = (server.url.clone(), server.probe()?);
        add(Runtime::TokioMulti.run(|executor| stock::measure(executor, url, probe, names))?);
    }
    for nodes in NODES {
        for command in bus::Command::ALL {
            let case = format!("{}-{nodes}", command.case());
            if args.wants(&case) {
                add(bus::measure(&case, command, nodes, messages)?);
            }
        }
    }
    report.print_tables();
    Ok(())
}
