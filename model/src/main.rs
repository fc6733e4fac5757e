//! Checks the model within bounds that are given as `name=number`: `cargo run -p bowline-model -- ticks=5 renewals=1`.
//! `replaced` as the first argument replaces a master by the procedure, and `five` goes from three masters to five.

use std::process::ExitCode;

use bowline_model::{Bounds, FIXED, Losses, REPLACED, Rollout, Scheme, THREE_TO_FIVE};
use stateright::report::WriteReporter;
use stateright::{Checker, Model};

fn main() -> ExitCode {
    let mut bounds = Bounds {
        lease: 3,
        patience: 1,
        skew: 1,
        ticks: 6,
        acquisitions: 1,
        renewals: 0,
        restarts: 1,
        jumps: 0,
        late_requests: true,
        losses: Losses::Answers,
    };
    let mut arguments = std::env::args().skip(1).peekable();
    let change = arguments.next_if(|argument| ["replaced", "five"].contains(&&**argument));
    for argument in arguments {
        if !set(&mut bounds, &argument) {
            eprintln!("not a bound: {argument}; the bounds are {bounds:?}");
            return ExitCode::FAILURE;
        }
    }
    println!("{bounds:?}");
    match change.as_deref() {
        Some("replaced") => check(bounds, REPLACED),
        Some(_) => check(bounds, THREE_TO_FIVE),
        None => check(bounds, FIXED),
    }
    ExitCode::SUCCESS
}

fn check<const M: usize>(bounds: Bounds, rollout: Rollout<M>) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let checker = Scheme { bounds, flaw: None, rollout }.checker().threads(threads).spawn_bfs();
    let checker = checker.join_and_report(&mut WriteReporter::new(&mut std::io::stdout()));
    checker.assert_properties();
    println!(
        "{} states, at most {} steps deep: all properties hold",
        checker.unique_state_count(),
        checker.max_depth()
    );
}

fn set(bounds: &mut Bounds, argument: &str) -> bool {
    let Some((name, Ok(value))) = argument.split_once('=').map(|(name, value)| (name, value.parse::<u8>())) else {
        return false;
    };
    match name {
        "lease" => bounds.lease = value,
        "patience" => bounds.patience = value,
        "skew" => bounds.skew = value,
        "ticks" => bounds.ticks = value,
        "acquisitions" => bounds.acquisitions = value,
        "renewals" => bounds.renewals = value,
        "restarts" => bounds.restarts = value,
        "jumps" => bounds.jumps = value,
        "late" => bounds.late_requests = value > 0,
        _ => return false,
    }
    true
}
