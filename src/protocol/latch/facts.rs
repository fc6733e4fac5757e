//! The properties of a latch.

use crate::protocol::facts::Facts;
use crate::protocol::ticket::Claim;

pub(in crate::protocol) const LATCH: Facts = Facts {
    word: "latch",
    suffixes: &["", ":tickets", ":calls"],
    renewed: 0,
    is_reentrant: false,
    joint: |_, _| None,
    joins_cohort: |_| false,
    asks_ahead: false,
    claim: |_, _| Claim::Nothing,
};
