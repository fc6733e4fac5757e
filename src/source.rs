//! Who grants primitives: the server of a client, or the masters of a `RedLock`.

use std::sync::Arc;

use crate::context::Context;
use crate::quorum::Quorum;
use crate::reentry::Reentry;

/// All handles of a client, or of a `RedLock`, share one. `T` is what the guards of a hold share.
#[derive(Debug)]
pub(crate) struct Source<T> {
    /// For a `RedLock`, the context of any one of its servers.
    pub(crate) context: Arc<Context>,
    pub(crate) reentry: Reentry<T>,
    /// The servers that grant a primitive together, unless the one of the context does.
    pub(crate) quorum: Option<Arc<dyn Quorum>>,
}

impl<T> Source<T> {
    pub(crate) fn new(context: Arc<Context>, quorum: Option<Arc<dyn Quorum>>) -> Arc<Self> {
        Arc::new(Self { context, reentry: Reentry::new(), quorum })
    }
}
