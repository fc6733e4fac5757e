//! The whole library in virtual time, over the real Lua: seeded processes, network, faults; invariants all the time.
//!
//! `BOWLINE_SIM_SEEDS=n` runs `n` seeds per test, from `BOWLINE_SIM_FIRST=s` on if that is set; `BOWLINE_SIM_SEED=s`
//! runs one and prints its history. Without them it runs 200 per test, with debug assertions a few. How to add to it:
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
mod bounds;
mod census;
mod cluster;
mod executor;
mod fleet;
mod found;
mod guard;
mod histories;
mod judge;
mod latches;
mod leases;
mod limits;
#[cfg(feature = "_mutants")]
mod mutants;
mod network;
mod nodes;
mod random;
mod red_lock;
mod scenes;
mod scripts;
mod server;
mod stage;
mod storm;
mod sweep;
mod world;

/// How many seeds a run has.
const SEEDS: u64 = if cfg!(debug_assertions) { 3 } else { 200 };

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|value| value.parse().unwrap_or_else(|_| panic!("{variable}={value}")))
}

/// Runs many seeds, or the one that was asked for, and fails at the first violation.
fn seeds(name: &str, workload: Workload, faults: Faults) -> u64 {
    let usual = match workload {
        // Each script is compiled again, and the replica executes it too.
        _ if faults.failovers || faults.forks || faults.cluster => SEEDS.div_ceil(5),
        // These runs have fewer states.
        Workload::Latches => SEEDS * 2 / 5,
        Workload::Leases => SEEDS * 2 / 5,
        Workload::Locks | Workload::Permits | Workload::Retained => SEEDS,
    };
    seeds_of(name, usual, |seed| run(seed, workload, faults))
}

/// Says how many guards overlapped others, as the documentation says that they can.
fn seeds_of(name: &str, usual: u64, run: impl Fn(u64) -> Report) -> u64 {
    if let Some(seed) = number("BOWLINE_SIM_SEED") {
        let report = run(seed);
        println!("{}", report.history);
        assert_eq!(report.violation, None, "{name}, seed {seed}");
        return report.waived;
    }
    let count = number("BOWLINE_SIM_SEEDS").unwrap_or(usual);
    let (mut acquired, mut struck, mut waived) = (0, 0, 0);
    let first = number("BOWLINE_SIM_FIRST").unwrap_or(0);
    for seed in first..first + count {
        let report = catch_unwind(AssertUnwindSafe(|| run(seed)));
        let replay = format!("BOWLINE_SIM_SEED={seed} cargo test --features embedded --test sim {name} -- --nocapture");
        let Report { violation, acquired: a, faults: f, waived: w, .. } =
            report.unwrap_or_else(|_| panic!("seed {seed} panicked; replay: {replay}"));
        assert_eq!(violation, None, "seed {seed}; replay: {replay}");
        acquired += a;
        struck += f;
        waived += w;
    }
    println!(
        "{name}: {count} seeds, {acquired} acquisitions, {struck} faults, {waived} documented overlaps, no violation"
    );
    waived
}

const NONE: Faults = Faults {
    network: false,
    freezes: false,
    crashes: false,
    losses: false,
    failovers: false,
    forks: false,
    acknowledged: false,
    cluster: false,
    sharded: false,
};
const NETWORK: Faults = Faults { network: true, ..NONE };
const FREEZES: Faults = Faults { freezes: true, ..NETWORK };
const CRASHES: Faults = Faults { crashes: true, ..NETWORK };
const LOSSES: Faults = Faults { losses: true, ..NONE };
const FAILOVERS: Faults = Faults { failovers: true, ..NETWORK };
const FORKS: Faults = Faults { forks: true, ..NETWORK };
const ACKNOWLEDGED: Faults = Faults { acknowledged: true, ..FORKS };
const EVERYTHING: Faults = Faults { network: true, freezes: true, crashes: true, losses: true, ..NONE };

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
fn retained_fault_free() {
    seeds("retained_fault_free", Workload::Retained, NONE);
}

#[test]
fn retained_network() {
    seeds("retained_network", Workload::Retained, NETWORK);
}

#[test]
fn retained_freezes() {
    seeds("retained_freezes", Workload::Retained, FREEZES);
}

#[test]
fn retained_losses() {
    seeds("retained_losses", Workload::Retained, LOSSES);
}

#[test]
fn retained_failovers() {
    seeds("retained_failovers", Workload::Retained, FAILOVERS);
}

#[test]
fn retained_everything() {
    seeds("retained_everything", Workload::Retained, EVERYTHING);
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

#[test]
fn forks() {
    let overlaps = seeds("forks", Workload::Locks, FORKS);
    // The documentation says that such overlaps can happen. A run in which none occurs would not detect forbidden ones
    // either.
    assert!(overlaps > 0 || number("BOWLINE_SIM_SEED").is_some() || cfg!(debug_assertions), "no overlap at all");
}

#[test]
fn permits_forks() {
    seeds("permits_forks", Workload::Permits, FORKS);
}

#[test]
fn acknowledged() {
    seeds("acknowledged", Workload::Locks, ACKNOWLEDGED);
}

#[test]
fn permits_acknowledged() {
    seeds("permits_acknowledged", Workload::Permits, ACKNOWLEDGED);
}

#[test]
fn leases_acknowledged() {
    seeds("leases_acknowledged", Workload::Leases, ACKNOWLEDGED);
}

#[test]
fn cluster_fault_free() {
    seeds("cluster_fault_free", Workload::Locks, Faults { cluster: true, ..NONE });
}

#[test]
fn cluster_moves() {
    seeds("cluster_moves", Workload::Permits, Faults { cluster: true, ..NETWORK });
}

#[test]
fn cluster() {
    seeds("cluster", Workload::Locks, Faults { cluster: true, ..FORKS });
}

#[test]
fn permits_cluster() {
    seeds("permits_cluster", Workload::Permits, Faults { cluster: true, ..FORKS });
}

#[test]
fn cluster_acknowledged() {
    seeds("cluster_acknowledged", Workload::Locks, Faults { cluster: true, ..ACKNOWLEDGED });
}

/// In a slot, only its master publishes, and clients listen there.
const SHARDED: Faults = Faults { cluster: true, sharded: true, ..NONE };

const SHARDED_ACKNOWLEDGED: Faults = Faults { acknowledged: true, network: true, forks: true, ..SHARDED };

#[test]
fn sharded_fault_free() {
    seeds("sharded_fault_free", Workload::Locks, SHARDED);
}

#[test]
fn sharded_moves() {
    seeds("sharded_moves", Workload::Permits, Faults { network: true, ..SHARDED });
}

#[test]
fn sharded() {
    seeds("sharded", Workload::Locks, Faults { network: true, forks: true, ..SHARDED });
}

#[test]
fn sharded_acknowledged() {
    seeds("sharded_acknowledged", Workload::Locks, SHARDED_ACKNOWLEDGED);
}

/// Several servers, each with faults of its own.
#[test]
fn fleet() {
    seeds_of("fleet", SEEDS.div_ceil(5), fleet::run);
}

/// A `RedLock` over several servers. Nothing is waived.
#[test]
fn red_lock() {
    seeds_of("red_lock", SEEDS.div_ceil(3), red_lock::run);
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
    for sharded in [false, true] {
        for seed in 0..if cfg!(debug_assertions) { 1 } else { 5 } {
            let again = || run(seed, Workload::Locks, Faults { sharded, cluster: true, ..FORKS }).history;
            assert_eq!(again(), again());
        }
    }
}
