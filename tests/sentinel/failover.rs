//! Failovers.
