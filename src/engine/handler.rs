//! Changes that concern several tables of the engine. Each handler borrows the tables that it changes, and no others.

pub(super) mod ahead;
pub(super) mod attempt;
pub(super) mod handoff;
pub(super) mod hold;
pub(super) mod idle;
