//! What was found about an implementation.

use std::any::Any;
use std::error::Error;
use std::fmt;

use super::clause::Clause;

/// What was found about each clause of a contract.
///
/// Its `Display` lists the clauses that failed, each with what was seen, and those that were not checked, each with the
/// reason. Its `Debug` is the same, so that `unwrap` in a test prints it.
#[derive(Clone, PartialEq, Eq)]
#[must_use]
pub struct Report {
    contract: &'static str,
    findings: Vec<(Clause, Finding)>,
}

#[derive(Clone, PartialEq, Eq)]
enum Finding {
    Kept,
    Failed(String),
    NotChecked(String),
}

impl Report {
    pub(super) fn new(contract: &'static str) -> Self {
        Self { contract, findings: Vec::new() }
    }

    pub(super) fn add(&mut self, clause: Clause, checked: Checked) {
        let finding = match checked {
            Ok(()) => Finding::Kept,
            Err(Failing::Failed(seen)) => Finding::Failed(seen),
            Err(Failing::NotChecked(why)) => Finding::NotChecked(why),
        };
        self.findings.push((clause, finding));
    }

    pub(super) fn into_result(self) -> Result<Self, Self> {
        if self.failed().next().is_some() { Err(self) } else { Ok(self) }
    }

    /// The clauses that were kept.
    pub fn kept(&self) -> impl Iterator<Item = Clause> {
        self.findings.iter().filter(|(_, finding)| *finding == Finding::Kept).map(|(clause, _)| *clause)
    }

    /// The clauses that failed, each with what was seen.
    pub fn failed(&self) -> impl Iterator<Item = (Clause, &str)> {
        self.findings.iter().filter_map(|(clause, finding)| match finding {
            Finding::Failed(seen) => Some((*clause, seen.as_str())),
            _ => None,
        })
    }

    /// The clauses that were not checked, each with the reason.
    pub fn not_checked(&self) -> impl Iterator<Item = (Clause, &str)> {
        self.findings.iter().filter_map(|(clause, finding)| match finding {
            Finding::NotChecked(why) => Some((*clause, why.as_str())),
            _ => None,
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kept, failed, not_checked) = (self.kept().count(), self.failed().count(), self.not_checked().count());
        write!(f, "contract of {}: {kept} clauses kept, {failed} failed, {not_checked} not checked", self.contract)?;
        for (clause, seen) in self.failed() {
            write!(f, "\n  failed: {clause:?}: {clause}\n    seen: {seen}")?;
        }
        for (clause, why) in self.not_checked() {
            write!(f, "\n  not checked: {clause:?}: {clause}\n    because {why}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The report in which a clause failed.
impl Error for Report {}

/// What one check found. `Ok` is a clause that was kept.
pub(super) type Checked = Result<(), Failing>;

#[derive(Debug)]
pub(super) enum Failing {
    Failed(String),
    NotChecked(String),
}

pub(super) fn failed(seen: impl Into<String>) -> Failing {
    Failing::Failed(seen.into())
}

pub(super) fn not_checked(why: impl Into<String>) -> Failing {
    Failing::NotChecked(why.into())
}

pub(super) fn ensure(holds: bool, seen: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(failed(seen())) }
}

/// The clause failed by a panic.
pub(super) fn panicked(panic: &(dyn Any + Send)) -> Failing {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    failed(format!("a panic: {}", text.unwrap_or("without a text")))
}
