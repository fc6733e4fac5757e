//! What a caller has while it holds something: guards, what they share, and how the hold ends.

pub(crate) mod covered;
pub(crate) mod exchange;
pub(crate) mod extend;
mod give_back;
pub(crate) mod guard;
pub(crate) mod hold_handle;
mod leave;
pub(crate) mod owner;
mod parts;
pub(crate) mod quorum;
pub(crate) mod reentry;
pub(crate) mod run;
pub(crate) mod source;
pub(crate) mod upgrade;
