//! The embedded server is equal to the real thing: random sequences of scripts and commands go to both, and after each
//! step the replies, the errors by code, every key with its expiry and every message must agree.
//!
//! `BOWLINE_DIFFERENTIAL_CASES` is how many sequences there are (300 by default), from seed
//! `BOWLINE_DIFFERENTIAL_FIRST` on (0 by default: the same ones each time). A failure prints its seed, and
//! `BOWLINE_DIFFERENTIAL_SEED` runs that one sequence again. `BOWLINE_SERVER` chooses the real server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests panic, and have clocks and threads of their own"
)]
#![allow(missing_docs, missing_debug_implementations, unreachable_pub, reason = "a test binary has no public API")]

use bowline_testkit as support;

mod agree;
mod election;
mod latch;
mod pair;
mod permits;
mod redisson;
mod steps;

use std::cell::RefCell;
use std::time::Instant;

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use pair::Pair;
use steps::{Step, sequences};

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}

#[test]
fn the_embedded_server_agrees_with_a_real_one() {
    let pair = RefCell::new(Pair::start());
    println!("against {}", pair.borrow().version());
    let seeds = match number("BOWLINE_DIFFERENTIAL_SEED") {
        Some(seed) => vec![seed],
        None => {
            let first = number("BOWLINE_DIFFERENTIAL_FIRST").unwrap_or(0);
            (first..first + number("BOWLINE_DIFFERENTIAL_CASES").unwrap_or(300)).collect()
        }
    };
    let start = Instant::now();
    for seed in &seeds {
        replay(*seed, &pair);
    }
    let seen = pair.into_inner().finish();
    println!("{} sequences in {:?}: {seen:#?}", seeds.len(), start.elapsed());
    if seeds.len() >= 300 {
        // A generator that never causes one of these outcomes would compare nothing about it.
        for outcome in [
            "GRANTED",
            "QUEUED",
            "BUSY",
            "FULL",
            "STALE",
            "OVER",
            "ACCEPTED",
            "REFUSED",
            "RELEASED",
            "NOT_HELD",
            "CANCELLED",
            "GONE",
            "CHANGED",
            "LIMIT",
            "SET",
            "EXISTS",
            "COUNT",
            "OPEN",
            "NONE",
            "DELETED",
            "TAKEN",
            "LIMITED",
            "RESET",
            "now",
        ] {
            assert!(seen.contains_key(outcome), "no script ever replied {outcome}");
        }
        for outcome in ["-WRONGTYPE", "-READONLY", "-ERR", "message"] {
            assert!(seen.contains_key(outcome), "never seen: {outcome}");
        }
    }
}

/// Runs the sequence of the seed; if the servers disagree, finds a short one in which they still do.
fn replay(seed: u64, pair: &RefCell<Pair>) {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config { cases: 1, failure_persistence: None, max_shrink_iters: 2000, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let outcome = runner.run(&sequences(), |steps: Vec<Step>| {
        let run = || pair.borrow_mut().run(&steps);
        // Two leases may end in the same millisecond on one server and in different ones on the other, so that their
        // messages have another order. A difference caused by time does not occur twice.
        run().or_else(|_| run()).map_err(TestCaseError::fail)
    });
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(difference, steps)) => {
            let shown: String = steps.iter().map(|step| format!("  {step:?}\n")).collect();
            panic!("{difference}\nafter these steps:\n{shown}BOWLINE_DIFFERENTIAL_SEED={seed} runs it again");
        }
        Err(other) => panic!("{other}"),
    }
}
