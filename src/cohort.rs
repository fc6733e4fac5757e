//! The local hand-off: the non-fair acquisitions of one client for the same amount of one name form a cohort.
//!
//! A cohort waits in Redis behind one ticket, and hands what it is granted from one member to the next without a
//! command, within a budget. This module decides who asks, waits and holds; it sends nothing and knows no engine.

pub(crate) mod budget;
pub(crate) mod id;
pub(crate) mod members;
pub(crate) mod table;
mod waiting;
