//! The checks of `bowline::testing`: bowline's own adapters pass them, and wrong ones fail with the right clause.

pub(crate) mod connections;
mod executors;
pub(crate) mod kill;
#[cfg(feature = "tokio")]
mod wrong_connections;
#[cfg(feature = "smol")]
mod wrong_executors;

use bowline::testing::{Clause, Report};

fn not_checked(report: &Report) -> Vec<Clause> {
    report.not_checked().map(|(clause, _)| clause).collect()
}

/// The clauses that failed, of a report that must have failures.
#[cfg(any(feature = "tokio", feature = "smol"))]
fn failed(report: Result<Report, Report>) -> Vec<Clause> {
    let report = report.expect_err("the adapter is wrong");
    println!("{report}");
    report.failed().map(|(clause, _)| clause).collect()
}
