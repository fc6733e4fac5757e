//! The scripts of barriers, by table.

mod broken;
mod duplicates;
mod half_state;
mod inside;
pub mod lab;
mod pass;
