//! What is told about each acquisition and hold.

use std::sync::Arc;

use crate::protocol::key::Named;
use crate::runtime::Executor;

/// What is observed: an operation on a name.
#[derive(Clone, Copy)]
#[cfg_attr(
    not(any(feature = "metrics", feature = "tracing")),
    expect(dead_code, reason = "both features that read it are off")
)]
pub(crate) struct Observed<'a> {
    pub(crate) executor: &'a Arc<dyn Executor>,
    pub(crate) operation: &'static str,
    pub(crate) named: &'a Named,
    /// Whether metrics have a label with the name.
    #[cfg_attr(not(feature = "metrics"), expect(dead_code, reason = "there are no metrics"))]
    pub(crate) names_in_metrics: bool,
}
