//! TLS over an open stream, by rustls.

use std::fmt;
use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls_native_certs::{CertificateResult, load_native_certs};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{Error as PemError, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::super::dial::Stream;
use super::super::failure::Failure;
use super::{Spelling, invalid};
use crate::error::{Error, ErrorKind, Result};

/// What the user brings for TLS, in PEM.
#[derive(Clone, Default)]
pub(in crate::redis) struct TlsOptions {
    pub(in crate::redis) config: Option<Arc<ClientConfig>>,
    pub(in crate::redis) authorities: Vec<u8>,
    /// A chain of certificates, and the key of the first.
    pub(in crate::redis) identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl TlsOptions {
    fn has_certificates(&self) -> bool {
        !self.authorities.is_empty() || self.identity.is_some()
    }

    pub(in crate::redis) fn is_empty(&self) -> bool {
        self.config.is_none() && !self.has_certificates()
    }
}

/// The trusted certificates: those that the user brings, else those of the system, or those of `SSL_CERT_FILE` and
/// `SSL_CERT_DIR` if set; with the feature `webpki-roots`, those of Mozilla on a system that has none. And the
/// certificate of the client, if there is one.
#[derive(Clone)]
pub(in crate::redis) struct Trust(Arc<ClientConfig>);

impl Trust {
    pub(in crate::redis) fn load(options: &TlsOptions) -> Result<Self> {
        if let Some(config) = &options.config {
            if options.has_certificates() {
                return Err(invalid("a TLS configuration brings its own certificates: give either it or the others"));
            }
            return Ok(Self(Arc::clone(config)));
        }
        let roots = if options.authorities.is_empty() {
            of_the_system(load_native_certs(), is_place_chosen())?
        } else {
            authorities(&options.authorities)?
        };
        // The provider is named here, because the process-wide default belongs to the application.
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::new(ErrorKind::Unsupported, "connect").with_source(error))?
            .with_root_certificates(roots);
        let config = match &options.identity {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => {
                let chain = certificates(chain, "the client's certificate")?;
                let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| not_pem("the client's key", &error))?;
                builder
                    .with_client_auth_cert(chain, key)
                    .map_err(|error| invalid(&format!("the client's certificate and key cannot be used: {error}")))?
            }
        };
        Ok(Self(Arc::new(config)))
    }

    #[cfg(test)]
    pub(in crate::redis) fn is(&self, config: &Arc<ClientConfig>) -> bool {
        Arc::ptr_eq(&self.0, config)
    }

    /// TLS to the server of this name or address, which its certificate must contain.
    pub(in crate::redis) fn of(&self, host: &str) -> Result<Tls> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| Error::because(ErrorKind::InvalidInput, "connect", "not a host name that TLS can verify"))?;
        Ok(Tls { name, config: Arc::clone(&self.0) })
    }
}

/// The certificates of the system. `is_chosen`: the user says where they are, and nothing else is to be trusted.
fn of_the_system(found: CertificateResult, is_chosen: bool) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    // Some systems have certificates that rustls cannot read. The others are enough.
    let (usable, _) = roots.add_parsable_certificates(found.certs);
    if usable > 0 {
        return Ok(roots);
    }
    #[cfg(feature = "webpki-roots")]
    if !is_chosen {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        return Ok(roots);
    }
    let why = found.errors.first().map_or_else(String::new, |error| format!(": {error}"));
    let place = if is_chosen { "at SSL_CERT_FILE and SSL_CERT_DIR" } else { "on this system" };
    let switch = if is_chosen { "" } else { ", or switch on bowline's feature `webpki-roots` to trust Mozilla's" };
    Err(invalid(&format!(
        "no root certificates {place}{why}; give those to trust by ConnectOptions::ca_certificate{switch}"
    )))
}

fn is_place_chosen() -> bool {
    ["SSL_CERT_FILE", "SSL_CERT_DIR"].iter().any(|variable| std::env::var_os(variable).is_some())
}

fn authorities(pem: &[u8]) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem, "a trusted certificate")? {
        roots.add(certificate).map_err(|error| invalid(&format!("a trusted certificate cannot be used: {error}")))?;
    }
    Ok(roots)
}

/// The certificates in a PEM text, at least one.
fn certificates(pem: &[u8], what: &str) -> Result<Vec<CertificateDer<'static>>> {
    let found: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<std::result::Result<_, _>>()
        .map_err(|error| not_pem(what, &error))?;
    if found.is_empty() { Err(not_pem(what, &PemError::NoItemsFound)) } else { Ok(found) }
}

fn not_pem(what: &str, error: &PemError) -> Error {
    let why = match error {
        PemError::NoItemsFound => "there is none",
        PemError::Base64Decode(_) => "the text between BEGIN and END is not base64",
        PemError::MissingSectionEnd { .. } => "an END line is missing",
        _ => "it cannot be read",
    };
    invalid(&format!("{what} is not PEM: {why}"))
}

/// The name of a server, and the trusted certificates.
pub(in crate::redis) struct Tls {
    name: ServerName<'static>,
    config: Arc<ClientConfig>,
}

impl Tls {
    pub(in crate::redis) async fn wrap(
        &self,
        stream: Stream,
        spelling: Spelling,
    ) -> std::result::Result<Stream, Failure> {
        let connector = TlsConnector::from(Arc::clone(&self.config));
        match connector.connect(self.name.clone(), stream).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => {
                Err(failure(&error, spelling)
                    .unwrap_or_else(|| Failure::Io(format!("the TLS handshake broke: {error}"))))
            }
        }
    }

    /// TLS over a blocking stream. The handshake is part of the first write. `None`: rustls does not accept the
    /// settings.
    pub(in crate::redis) fn wrap_blocking<S: Read + Write>(
        &self,
        stream: S,
    ) -> Option<StreamOwned<ClientConnection, S>> {
        let session = ClientConnection::new(Arc::clone(&self.config), self.name.clone()).ok()?;
        Some(StreamOwned::new(session, stream))
    }
}

/// The reason, if rustls ended the stream. The stream can end after the handshake, because a server that requires a
/// client certificate refuses only when the first command arrives.
pub(in crate::redis) fn failure(error: &io::Error, spelling: Spelling) -> Option<Failure> {
    use tokio_rustls::rustls::AlertDescription as Alert;
    Some(match error.get_ref()?.downcast_ref::<rustls::Error>()? {
        error @ rustls::Error::InvalidCertificate(_) => {
            Failure::Certificate(format!("the server's certificate is not accepted: {error}"))
        }
        rustls::Error::AlertReceived(Alert::CertificateRequired) => Failure::Certificate(
            "the server asks for a certificate of the client (tls-auth-clients), which bowline does not have"
                .to_owned(),
        ),
        rustls::Error::InvalidMessage(_) => Failure::Unsupported(spelling.without_tls()),
        error => Failure::Io(format!("TLS: {error}")),
    })
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use tokio_rustls::rustls::{AlertDescription, CertificateError, InvalidMessage};

    use super::*;

    #[test]
    fn a_system_without_certificates() {
        let of = |is_chosen| of_the_system(CertificateResult::default(), is_chosen);
        let error = of(true).map(drop).unwrap_err().to_string();
        assert!(error.contains("no root certificates at SSL_CERT_FILE") && !error.contains("webpki"), "{error}");
        #[cfg(feature = "webpki-roots")]
        assert!(of(false).unwrap().len() > 100);
        #[cfg(not(feature = "webpki-roots"))]
        {
            let error = of(false).map(drop).unwrap_err().to_string();
            assert!(error.contains("on this system") && error.contains("feature `webpki-roots`"), "{error}");
        }
    }

    #[test]
    fn why_a_stream_has_ended() {
        let told = |error: rustls::Error| failure(&io::Error::other(error), Spelling::default());
        assert!(matches!(
            told(CertificateError::Expired.into()),
            Some(Failure::Certificate(why)) if why.contains("is not accepted")
        ));
        assert!(matches!(
            told(rustls::Error::AlertReceived(AlertDescription::CertificateRequired)),
            Some(Failure::Certificate(why)) if why.contains("tls-auth-clients")
        ));
        assert!(matches!(
            told(InvalidMessage::InvalidContentType.into()),
            Some(Failure::Unsupported(why)) if why.contains("use redis://")
        ));
        let other = told(rustls::Error::AlertReceived(AlertDescription::InternalError));
        assert!(matches!(other, Some(Failure::Io(why)) if why.starts_with("TLS: ")));
        assert!(failure(&io::ErrorKind::ConnectionReset.into(), Spelling::default()).is_none());
        assert!(failure(&io::Error::other("by the test"), Spelling::default()).is_none());
    }
}
