//! What a caller has while it holds something: guards, what they share, and how the hold ends.

pub(crate) mod extend;
pub(crate) mod guard;
pub(crate) mod owner;
pub(crate) mod quorum;
pub(crate) mod reentry;
pub(crate) mod run;
pub(crate) mod source;
