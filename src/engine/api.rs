//! The methods of the engine: each locks the tables, changes them once, and sets off the effects.

mod attempts;
mod cohorts;
mod confirmations;
mod driver;
mod ends;
mod heartbeats;
mod holds;
mod inboxes;
