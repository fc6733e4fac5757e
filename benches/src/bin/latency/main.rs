//! What bowline costs without contention: beside two commands that do nothing, and without any command.
//!
//! `cargo run --release -p bowline-benches --bin latency -- [part of a case's name]... [pairs=3000]`
#![allow(clippy::disallowed_methods, reason = "what is measured here is real time")]

use std::time::Duration;

use bowline_benches::Result;
use bowline_benches::alloc::Counting;
use bowline_benches::args::Args;
use bowline_benches::report::Report;
use bowline_benches::runtime::Runtime;
use bowline_benches::server::Server;

mod acknowledged;
mod blocking;
mod connect;
mod deadlocks;
mod health;
mod limiter;
mod local;
mod pairs;
mod red_lock;
mod redisson;
mod retained;
mod scripts;
mod sides;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How long a request takes to a server that is far away. The time of everything else is small beside it.
const FAR: Duration = Duration::from_millis(20);

/// The values of one case, in the order in which they are printed.
type Metrics = Vec<(&'static str, f64)>;

fn main() -> Result<()> {
    let args = Args::parse(&["pairs"])?;
    let pairs = args.value("pairs", 3_000)?;
    let server = Server::find()?;
    let mut report = Report::default();
    let mut add = |case: &str, metrics: Metrics| {
        metrics.into_iter().for_each(|(metric, value)| report.add(case, metric, value));
    };
    if args.wants("scripts") {
        for (case, metrics) in scripts::measure(&mut server.probe()?, 10 * pairs)? {
            add(&case, metrics);
        }
    }
    for runtime in Runtime::ALL {
        for primitive in pairs::Primitive::ALL {
            let case = format!("{}-{}", primitive.name(), runtime.name());
            if args.wants(&case) {
                let (url, probe) = (server.url.clone(), server.probe()?);
                add(&case, runtime.run(|executor| pairs::measure(runtime, executor, url, probe, primitive, pairs))?);
            }
        }
        let case = format!("reentry-{}", runtime.name());
        if args.wants(&case) {
            let url = server.url.clone();
            add(&case, runtime.run(|executor| local::reentry(runtime, executor, url, pairs))?);
        }
        for fair in [true, false] {
            let case = format!("turns-{}-{}", if fair { "fair" } else { "nonfair" }, runtime.name());
            if args.wants(&case) {
                let url = server.url.clone();
                add(&case, runtime.run(|executor| local::turns(runtime, executor, url, fair, pairs))?);
            }
        }
    }
    for runtime in Runtime::ALL {
        let case = format!("connect-{}", runtime.name());
        if args.wants(&case) {
            let url = server.url.clone();
            add(&case, runtime.run(|executor| connect::measure(runtime, executor, url, pairs))?);
        }
        let case = format!("limiter-{}", runtime.name());
        if args.wants(&case) {
            let url = server.url.clone();
            add(&case, runtime.run(|executor| limiter::measure(runtime, executor, url, pairs))?);
        }
        let case = format!("deadlocks-{}", runtime.name());
        if args.wants(&case) {
            let url = server.url.clone();
            add(&case, runtime.run(|executor| deadlocks::measure(runtime, executor, url))?);
        }
        let case = format!("blocking-{}", runtime.name());
        if args.wants(&case) {
            let url = server.url.clone();
            add(&case, runtime.run(|executor| blocking::measure(runtime, executor, url, pairs))?);
        }
    }
    for runtime in Runtime::ALL {
        for kept in [retained::Kept::Lock, retained::Kept::Writer] {
            let case = format!("{}-{}", kept.name(), runtime.name());
            if args.wants(&case) {
                let url = server.url.clone();
                add(&case, runtime.run(|executor| retained::measure(kept, runtime, executor, (url, pairs)))?);
            }
        }
    }
    for runtime in Runtime::ALL {
        let case = format!("acknowledged-{}", runtime.name());
        if args.wants(&case) {
            let (primary, _replica) = Server::start_pair()?;
            let url = primary.url.clone();
            add(&case, runtime.run(|executor| acknowledged::measure(runtime, executor, url, pairs))?);
        }
    }
    for runtime in Runtime::ALL {
        let case = format!("redlock-{}", runtime.name());
        if args.wants(&case) {
            let masters = Server::start_three()?;
            add(&case, runtime.run(|executor| red_lock::measure(runtime, executor, masters, pairs))?);
        }
    }
    if args.wants("redlock-health") {
        let (runtime, masters) = (Runtime::ALL[0], Server::start_three()?);
        add("redlock-health", runtime.run(|executor| health::measure(runtime, executor, masters, pairs))?);
    }
    report.print_tables();
    Ok(())
}
