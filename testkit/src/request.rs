//! A call that outlives its caller.

pub use bowline::wire::Request;
