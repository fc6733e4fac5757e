//! Maps the addresses that servers announce to those at which this client reaches them.

use std::sync::Arc;

use super::url::address::Address;

type Translate = dyn Fn(&str, u16) -> (String, u16) + Send + Sync;

/// A function from the announced host and port to those to connect to. The default changes nothing.
#[derive(Clone, Default)]
pub(super) struct AddressMap(Option<Arc<Translate>>);

impl AddressMap {
    pub(super) fn new(translate: impl Fn(&str, u16) -> (String, u16) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(translate)))
    }

    pub(super) fn translate(&self, host: String, port: u16) -> (String, u16) {
        match &self.0 {
            Some(translate) => translate(&host, port),
            None => (host, port),
        }
    }

    pub(super) fn reached(&self, announced: Address) -> Address {
        match announced {
            Address::Tcp(host, port) => {
                let (host, port) = self.translate(host, port);
                Address::Tcp(host, port)
            }
            #[cfg(unix)]
            Address::Unix(path) => Address::Unix(path),
        }
    }
}
