//! The whole library in virtual time, over the real Lua: seeded processes, network, faults; invariants all the time.
//!
//! `BOWLINE_SIM_SEEDS=n` runs `n` seeds per test, from `BOWLINE_SIM_FIRST=s` on if that is set; `BOWLINE_SIM_SEED=s` runs
//! one and prints its history. Without them a debug build runs a few, a release build a thousand per test. How to add to it: `docs/simulation.md`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods, missing_docs)]
#![allow(unreachable_pub, missing_debug_implementations)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::world::{Faults, Report, run};

mod actor;
mod executor;
mod judge;
#[cfg(feature = "_mutants")]
mod mutants;
mod network;
mod random;
mod scenes;
mod scripts;
mod server;
mod stage;
mod storm;
mod sweep;
#[path = "../support/tracking.rs"]
mod tracking;
mod world;

/// How many seeds a run has.
const SEEDS: u64 = if cfg!(debug_assertions) { 40 } else { 1000 };

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|value| value.parse().unwrap_or_else(|_| panic!("{variable}={value}")))
}

/// Runs many seeds, or the one that was asked for, and fails at the first violation.
fn seeds(name: &str, faults: Faults) {
    if let Some(seed) = number("BOWLINE_SIM_SEED") {
        let report = run(seed, faults);
        println!("{}", report.history);
        assert_eq!(report.violation, None, "{name}, seed {seed}");
        return;
    }
    let count = number("BOWLINE_SIM_SEEDS").unwrap_or(SEEDS);
    let (mut acquired, mut struck) = (0, 0);
    let first = number("BOWLINE_SIM_FIRST").unwrap_or(0);
    for seed in first..first + count {
        let report = catch_unwind(AssertUnwindSafe(|| run(seed, faults)));
        let replay = format!("BOWLINE_SIM_SEED={seed} cargo test --features embedded --test sim {name} -- --nocapture");
        let Report { violation, acquired: a, faults: f, .. } =
            report.unwrap_or_else(|_| panic!("seed {seed} panicked; replay: {replay}"));
        assert_eq!(violation, None, "seed {seed}; replay: {replay}");
        acquired += a;
        struck += f;
    }
    println!("{name}: {count} seeds, {acquired} acquisitions, {struck} faults, no violation");
}

#[test]
fn fault_free() {
    seeds("fault_free", Faults::default());
}

#[test]
fn network() {
    seeds("network", Faults { network: true, ..Faults::default() });
}

#[test]
fn freezes() {
    seeds("freezes", Faults { freezes: true, network: true, ..Faults::default() });
}

#[test]
fn crashes() {
    seeds("crashes", Faults { crashes: true, network: true, ..Faults::default() });
}

#[test]
fn losses() {
    seeds("losses", Faults { losses: true, ..Faults::default() });
}

#[test]
fn everything() {
    seeds("everything", Faults { network: true, freezes: true, crashes: true, losses: true });
}

/// The same seed gives the same run, to the last line.
#[test]
fn runs_repeat() {
    let faults = Faults { network: true, freezes: true, crashes: true, losses: true };
    for seed in 0..5 {
        assert_eq!(run(seed, faults).history, run(seed, faults).history);
    }
}
