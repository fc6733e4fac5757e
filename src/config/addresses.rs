//! Maps the addresses that the nodes of a cluster announce to other ones.

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

type Translate = dyn Fn(&str, u16) -> (String, u16) + Send + Sync + UnwindSafe + RefUnwindSafe;

/// A function from the announced host and port to those to connect to.
#[derive(Clone)]
pub(crate) struct Addresses(
    #[cfg_attr(not(feature = "_redis"), expect(dead_code, reason = "only clusters have announced addresses"))]
    Arc<Translate>,
);

impl Addresses {
    pub(crate) fn new(
        translate: impl Fn(&str, u16) -> (String, u16) + Send + Sync + UnwindSafe + RefUnwindSafe + 'static,
    ) -> Self {
        Self(Arc::new(translate))
    }

    #[cfg(feature = "_redis")]
    pub(crate) fn translate(&self, host: &str, port: u16) -> (String, u16) {
        (self.0)(host, port)
    }
}

/// A function cannot be printed.
impl fmt::Debug for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Addresses").finish_non_exhaustive()
    }
}
