//! The properties of a lock.

use crate::protocol::facts::Facts;
use crate::protocol::ticket::Claim;

pub(in crate::protocol) const LOCK: Facts = Facts {
    word: "lock",
    suffixes: &["", ":queue", ":tickets", ":fence"],
    renewed: 1,
    is_reentrant: true,
    joint: |tokens, _| Some(tokens),
    joins_cohort: |_| true,
    asks_ahead: true,
    claim: |tokens, _| Claim::Tokens(tokens),
};
