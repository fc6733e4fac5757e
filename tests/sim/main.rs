//! The whole library in virtual time, over the real Lua: seeded processes, network, faults; invariants all the time.
//!
//! `BOWLINE_SIM_SEEDS=n` runs `n` seeds per test, from `BOWLINE_SIM_FIRST=s` on if that is set; `BOWLINE_SIM_SEED=s` runs
//! one and prints its history. Without them it runs 380 per test, with debug assertions a few. How to add to it:
//! `docs/simulation.md`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests panic, and have clocks and threads of their own"
)]
#![allow(missing_docs, missing_debug_implementations, unreachable_pub, reason = "a test binary has no public API")]

use std::panic::{AssertUnwindSafe, catch_unwind};

use bowline_testkit::{request, tracking};

use crate::world::{Faults, Report, Workload, run};

mod actor;
mod census;
mod executor;
mod found;
mod guard;
mod judge;
mod latches;
mod leases;
mod limits;
#[cfg(feature = "_mutants")]
mod mutants;
mod network;
mod nodes;
mod random;
mod scenes;
mod scripts;
mod server;
mod stage;
mod storm;
mod sweep;
mod world;

/// How many seeds a run has.
const SEEDS: u64 = if cfg!(debug_assertions) { 3 } else { 380 };

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|value| value.parse().unwrap_or_else(|_| panic!("{variable}={value}")))
}

/// Runs many seeds, or the one that was asked for, and fails at the first violation.
fn seeds(name: &str, workload: Workload, faults: Faults) {
    if let Some(seed) = number("BOWLINE_SIM_SEED") {
        let report = run(seed, workload, faults);
        println!("{}", report.history);
        assert_eq!(report.violation, None, "{name}, seed {seed}");
        return;
    }
    let usual = match workload {
        // Every script is compiled anew, and executed by the replica too.
        _ if faults.failovers => SEEDS.div_ceil(5),
        // They have fewer states.
        Workload::Latches => SEEDS * 2 / 5,
        Workload::Leases => SEEDS * 2 / 5,
        Workload::Locks | Workload::Permits => SEEDS,
    };
    let count = number("BOWLINE_SIM_SEEDS").unwrap_or(usual);
    let (mut acquired, mut struck) = (0, 0);
    let first = number("BOWLINE_SIM_FIRST").unwrap_or(0);
    for seed in first..first + count {
        let report = catch_unwind(AssertUnwindSafe(|| run(seed, workload, faults)));
        let replay = format!("BOWLINE_SIM_SEED={seed} cargo test --features embedded --test sim {name} -- --nocapture");
        let Report { violation, acquired: a, faults: f, .. } =
            report.unwrap_or_else(|_| panic!("seed {seed} panicked; replay: {replay}"));
        assert_eq!(violation, None, "seed {seed}; replay: {replay}");
        acquired += a;
        struck += f;
    }
    println!("{name}: {count} seeds, {acquired} acquisitions, {struck} faults, no violation");
}

const NONE: Faults = Faults { network: false, freezes: false, crashes: false, losses: false, failovers: false };
const NETWORK: Faults = Faults { network: true, ..NONE };
const FREEZES: Faults = Faults { freezes: true, ..NETWORK };
const CRASHES: Faults = Faults { crashes: true, ..NETWORK };
const LOSSES: Faults = Faults { losses: true, ..NONE };
const FAILOVERS: Faults = Faults { failovers: true, ..NETWORK };
const EVERYTHING: Faults = Faults { network: true, freezes: true, crashes: true, losses: true, failovers: false };

#[test]
fn fault_free() {
    seeds("fault_free", Workload::Locks, NONE);
}

#[test]
fn network() {
    seeds("network", Workload::Locks, NETWORK);
}

#[test]
fn freezes() {
    seeds("freezes", Workload::Locks, FREEZES);
}

#[test]
fn crashes() {
    seeds("crashes", Workload::Locks, CRASHES);
}

#[test]
fn losses() {
    seeds("losses", Workload::Locks, LOSSES);
}

#[test]
fn failovers() {
    seeds("failovers", Workload::Locks, FAILOVERS);
}

#[test]
fn everything() {
    seeds("everything", Workload::Locks, EVERYTHING);
}

#[test]
fn permits_fault_free() {
    seeds("permits_fault_free", Workload::Permits, NONE);
}

#[test]
fn permits_network() {
    seeds("permits_network", Workload::Permits, NETWORK);
}

#[test]
fn permits_freezes() {
    seeds("permits_freezes", Workload::Permits, FREEZES);
}

#[test]
fn permits_crashes() {
    seeds("permits_crashes", Workload::Permits, CRASHES);
}

#[test]
fn permits_losses() {
    seeds("permits_losses", Workload::Permits, LOSSES);
}

#[test]
fn permits_failovers() {
    seeds("permits_failovers", Workload::Permits, FAILOVERS);
}

#[test]
fn permits_everything() {
    seeds("permits_everything", Workload::Permits, EVERYTHING);
}

#[test]
fn leases_fault_free() {
    seeds("leases_fault_free", Workload::Leases, NONE);
}

#[test]
fn leases_network() {
    seeds("leases_network", Workload::Leases, NETWORK);
}

#[test]
fn leases_freezes() {
    seeds("leases_freezes", Workload::Leases, FREEZES);
}

#[test]
fn leases_everything() {
    seeds("leases_everything", Workload::Leases, EVERYTHING);
}

#[test]
fn latches_fault_free() {
    seeds("latches_fault_free", Workload::Latches, NONE);
}

#[test]
fn latches_network() {
    seeds("latches_network", Workload::Latches, NETWORK);
}

#[test]
fn latches_everything() {
    seeds("latches_everything", Workload::Latches, EVERYTHING);
}

/// The same seed gives the same run, to the last line.
#[test]
fn runs_repeat() {
    for workload in [Workload::Locks, Workload::Permits, Workload::Leases, Workload::Latches] {
        for seed in 0..if cfg!(debug_assertions) { 1 } else { 5 } {
            let again = || run(seed, workload, EVERYTHING).history;
            assert_eq!(again(), again());
        }
    }
}
