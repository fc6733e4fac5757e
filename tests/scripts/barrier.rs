//! The scripts of barriers, by table.

mod broken;
mod duplicates;
mod half_state;
pub mod lab;
mod pass;
