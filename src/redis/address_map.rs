//! Maps the addresses that servers announce to those at which this client reaches them.

use std::sync::Arc;

type Translate = dyn Fn(&str, u16) -> (String, u16) + Send + Sync;

/// A function from the announced host and port to those to connect to. The default changes nothing.
#[derive(Clone, Default)]
pub(super) struct AddressMap(Option<Arc<Translate>>);

impl AddressMap {
    pub(super) fn new(translate: impl Fn(&str, u16) -> (String, u16) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(translate)))
    }

    /// Where the server that announces this address is reached. `None`: there.
    pub(super) fn translate(&self, host: &str, port: u16) -> Option<(String, u16)> {
        self.0.as_ref().map(|translate| translate(host, port))
    }

    pub(super) fn reached(&self, host: String, port: u16) -> (String, u16) {
        self.translate(&host, port).unwrap_or((host, port))
    }
}
