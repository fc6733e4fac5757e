//! TLS over an open stream, by rustls.

use std::fmt;
use std::io::{self, Read, Write};
use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::dial::Stream;
use crate::error::{Error, ErrorKind, Result};

/// The server's name and whom to believe it from: the system's certificates, or those of `SSL_CERT_FILE` and
/// `SSL_CERT_DIR` when set.
pub(super) struct Tls {
    name: ServerName<'static>,
    config: Arc<ClientConfig>,
}

impl Tls {
    pub(super) fn new(host: &str) -> Result<Self> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| Error::because(ErrorKind::InvalidInput, "connect", "not a host name that TLS can verify"))?;
        let found = rustls_native_certs::load_native_certs();
        let mut roots = RootCertStore::empty();
        // Systems carry certificates that rustls does not read; the others are enough.
        let (usable, _) = roots.add_parsable_certificates(found.certs);
        if usable == 0 {
            let why = found.errors.first().map_or_else(String::new, |error| format!(": {error}"));
            let reason = format!("no root certificates on this system{why}");
            return Err(Error::because(ErrorKind::InvalidInput, "connect", reason));
        }
        // The provider is named here, because the process-wide default belongs to the application.
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::new(ErrorKind::Unsupported, "connect").with_source(error))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { name, config: Arc::new(config) })
    }

    pub(super) async fn wrap(&self, stream: Stream) -> io::Result<Stream> {
        let connector = TlsConnector::from(Arc::clone(&self.config));
        Ok(Box::new(connector.connect(self.name.clone(), stream).await?))
    }

    /// TLS over a blocking stream; the handshake is a part of the first write. `None`: rustls takes the settings for unfit.
    pub(super) fn wrap_blocking<S: Read + Write>(&self, stream: S) -> Option<StreamOwned<ClientConnection, S>> {
        let session = ClientConnection::new(Arc::clone(&self.config), self.name.clone()).ok()?;
        Some(StreamOwned::new(session, stream))
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("name", &self.name).finish_non_exhaustive()
    }
}
