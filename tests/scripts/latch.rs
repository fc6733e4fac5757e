//! The scripts of count-down latches, by table.

mod count;
mod duplicates;
mod half_state;
pub mod lab;
mod many;
mod memory;
mod operators;
mod wait;
