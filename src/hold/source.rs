//! Who grants primitives: the server of a client, or the masters of a `RedLock`.

use std::sync::{Arc, Mutex, Weak};

use crate::context::Context;
use crate::hold::quorum::Quorum;
use crate::hold::reentry::Reentry;
use crate::mutex::lock;

/// All handles of a client, or of a `RedLock`, share one. `T` is what the guards of a hold share.
#[derive(Debug)]
pub(crate) struct Source<T> {
    /// For a `RedLock`, the context of any one of its servers.
    pub(crate) context: Arc<Context>,
    /// Shared by all sources of the same servers.
    pub(crate) reentry: Arc<Reentry<T>>,
    /// The servers that grant a primitive together, unless the one of the context does.
    pub(crate) quorum: Option<Arc<dyn Quorum>>,
    /// The tables of re-entry of several servers, by their clients. Each is kept by the client whose address is lowest.
    together: Mutex<Vec<Together<T>>>,
}

/// The addresses of the clients, and the table that their sources share. While the table lives, the addresses are those
/// of live clients, because each of these sources keeps its clients alive.
type Together<T> = (Vec<usize>, Weak<Reentry<T>>);

impl<T> Source<T> {
    pub(crate) fn new(context: Arc<Context>) -> Arc<Self> {
        Self::sharing(context, Arc::new(Reentry::new()), None)
    }

    /// The source of what the servers of these clients grant together. All sources of the same clients share one table
    /// of re-entry, whatever the order of the clients.
    pub(crate) fn of_several(clients: &[Arc<Self>], quorum: Arc<dyn Quorum>) -> Option<Arc<Self>> {
        let keeper = clients.iter().min_by_key(|client| address(client))?;
        Some(Self::sharing(clients.first()?.context.clone(), keeper.shared_by(clients), Some(quorum)))
    }

    fn sharing(context: Arc<Context>, reentry: Arc<Reentry<T>>, quorum: Option<Arc<dyn Quorum>>) -> Arc<Self> {
        Arc::new(Self { context, reentry, quorum, together: Mutex::default() })
    }

    fn shared_by(&self, clients: &[Arc<Self>]) -> Arc<Reentry<T>> {
        let mut addresses: Vec<usize> = clients.iter().map(address).collect();
        addresses.sort_unstable();
        let mut together = lock(&self.together);
        together.retain(|(_, shared)| shared.strong_count() > 0);
        let known = together.iter().find(|(of, _)| *of == addresses).and_then(|(_, shared)| shared.upgrade());
        known.unwrap_or_else(|| {
            let reentry = Arc::new(Reentry::new());
            together.push((addresses, Arc::downgrade(&reentry)));
            reentry
        })
    }
}

fn address<T>(source: &Arc<Source<T>>) -> usize {
    Arc::as_ptr(source).addr()
}
