//! How long an acquisition or a hold lasts, and how many there are.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use metrics::{Label, gauge, histogram};

use super::super::observed::Observed;
use crate::runtime::Executor;

/// Counted in a gauge for as long as it lives. Its time goes to a histogram when it is dropped.
pub(super) struct Timed {
    what: What,
    executor: Arc<dyn Executor>,
    since: Instant,
    operation: &'static str,
    /// Only if the user has asked for it.
    name: Option<Arc<str>>,
}

enum What {
    /// With the outcome.
    Acquisition(&'static str),
    Hold,
}

impl Timed {
    pub(super) fn waiting(observed: Observed<'_>) -> Self {
        gauge!("bowline_waiting").increment(1);
        Self::new(What::Acquisition("cancelled"), observed)
    }

    pub(super) fn held(observed: Observed<'_>) -> Self {
        gauge!("bowline_holds").increment(1);
        Self::new(What::Hold, observed)
    }

    fn new(what: What, Observed { executor, operation, named, names_in_metrics }: Observed<'_>) -> Self {
        let name = names_in_metrics.then(|| Arc::clone(&named.name));
        Self { what, executor: Arc::clone(executor), since: executor.now(), operation, name }
    }

    pub(super) fn end(mut self, outcome: &'static str) {
        self.what = What::Acquisition(outcome);
    }
}

impl Drop for Timed {
    fn drop(&mut self) {
        let seconds = self.executor.now().saturating_duration_since(self.since).as_secs_f64();
        let mut labels = vec![Label::from_static_parts("operation", self.operation)];
        labels.extend(self.name.take().map(|name| Label::new("name", name.to_string())));
        match self.what {
            What::Acquisition(outcome) => {
                gauge!("bowline_waiting").decrement(1);
                labels.push(Label::from_static_parts("outcome", outcome));
                histogram!("bowline_wait_seconds", labels).record(seconds);
            }
            What::Hold => {
                gauge!("bowline_holds").decrement(1);
                histogram!("bowline_hold_seconds", labels).record(seconds);
            }
        }
    }
}

impl fmt::Debug for Timed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timed").field("operation", &self.operation).finish_non_exhaustive()
    }
}
