//! The scripts of semaphores and read-write locks, by table.

mod acquire;
mod ask_ahead;
mod bounds;
mod change;
mod drain;
mod duplicates;
mod force_release;
mod give_back;
mod go_on;
mod half_state;
mod heartbeat;
pub mod lab;
mod limit;
mod purge;
mod queue;
mod read_write;
mod release;
mod renew;
mod renew_short;
mod retained;
mod sites;
mod sole;
mod upgrade;
mod walk;
