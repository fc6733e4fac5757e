//! What the handles of all primitives share.

use std::fmt;
use std::sync::Arc;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::owned::OwnedHold;
use crate::protocol::dispatch::{Failure, Scripts};
use crate::protocol::key::Keys;
use crate::protocol::kind::Kind;
use crate::quorum::Quorum;
use crate::reentry::Reentry;

#[derive(Clone)]
pub(crate) struct Primitive {
    pub(crate) context: Arc<Context>,
    pub(crate) reentry: Arc<Reentry<OwnedHold>>,
    /// For a bad name, an error that every operation returns. Boxed, because waiting acquisitions carry a copy of the handle.
    keys: Result<Arc<Keys>, Box<Error>>,
    /// The servers that grant it together, unless the one of the context does.
    pub(crate) quorum: Option<Arc<dyn Quorum>>,
}

/// Shows the name only: the context knows attempt ids, which are not for logs.
impl fmt::Debug for Primitive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Primitive").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl Primitive {
    pub(crate) fn new(context: Arc<Context>, reentry: Arc<Reentry<OwnedHold>>, kind: Kind, name: &str) -> Self {
        let keys = Keys::new(&context.config.prefix, kind, name).map(Arc::new).map_err(Box::new);
        Self { context, reentry, keys, quorum: None }
    }

    /// The same primitive, granted by several servers. The context is that of any one of them.
    pub(crate) fn of_quorum(self, quorum: Arc<dyn Quorum>) -> Self {
        Self { quorum: Some(quorum), ..self }
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.keys.as_ref().map(|keys| &*keys.name).ok()
    }

    pub(crate) fn keys(&self, operation: &'static str) -> Result<&Arc<Keys>> {
        let keys = self.keys.as_ref().map_err(|error| Error::clone(error).during(operation))?;
        if self.context.engine.is_closed() {
            return Err(self.context.closed(operation, keys));
        }
        Ok(keys)
    }

    /// Repeats the call until it is answered, but no longer than the client's retry timeout.
    pub(crate) async fn ask<'a, T, F>(
        &'a self,
        operation: &'static str,
        call: impl Fn(Scripts<'a>, &'a Keys) -> F,
    ) -> Result<T>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let keys = self.keys(operation)?;
        let mut retry = self.context.retry(operation, &keys.name);
        loop {
            match call(self.context.scripts(), keys).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => retry.again_after(failure).await?,
            }
        }
    }
}
