//! A private authority and a certificate of the client, given as options to servers that ask for one.

use std::path::Path;
use std::sync::Arc;

use crate::deployed::{Open, on_each_runtime};
use crate::support::adapters::{BOUND, Keys, acquire, bounded, release, word};
use crate::support::certificates;
use crate::support::cluster::Cluster;
use crate::support::server::sentinel::{MASTER_NAME, Watched};
use crate::support::server::{Server, free_port};
use crate::tls::config;
use bowline::{ConnectOptions, Connection, ErrorKind};
use futures::executor::block_on;
use tempfile::TempDir;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Certificates in a folder that is removed.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        certificates::write(dir.path());
        Self(dir)
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(Path::new(&self.path(name))).unwrap()
    }

    /// The arguments of a server that asks its clients for a certificate.
    fn server(&self, port: &str) -> Vec<String> {
        certificates::server_arguments(self.0.path(), "server", port, "yes")
    }

    fn client(&self, url: &str) -> ConnectOptions {
        let (chain, key) = (self.read("client.crt"), self.read("client.key"));
        ConnectOptions::new(url).ca_certificate(self.read("ca.crt")).client_certificate(chain, key)
    }

    /// The same, by the paths of the files and by their content.
    #[cfg(feature = "serde")]
    fn deserialised(&self, url: &str) -> [ConnectOptions; 2] {
        let [ca, chain, key] = ["ca.crt", "client.crt", "client.key"];
        let text = |name: &str| String::from_utf8(self.read(name)).unwrap();
        let paths = serde_json::json!({ "url": url, "ca_certificate_file": self.path(ca),
            "client_certificate_file": self.path(chain), "client_key_file": self.path(key) });
        let content = serde_json::json!({ "url": url, "ca_certificate": text(ca),
            "client_certificate": text(chain), "client_key": text(key) });
        [paths, content].map(|options| serde_json::from_value(options).unwrap())
    }
}

fn words(arguments: &[String]) -> Vec<&str> {
    arguments.iter().map(String::as_str).collect()
}

/// Acquires on the connection, and releases on one without a runtime.
fn holds(open: Open, options: ConnectOptions, name: &str) {
    block_on(async {
        let connection = open(options, config(BOUND / 2)).await.unwrap();
        let keys = Keys::of(name);
        assert_eq!(word(&acquire(&connection, &keys, "c1:1").await), "GRANTED");
        let blocking = connection.without_runtime(BOUND / 2).expect("a connection without a runtime");
        assert_eq!(word(&release(&*blocking, &keys, "c1:1").await), "RELEASED");
    });
}

fn fails(open: Open, options: ConnectOptions, kind: ErrorKind, says: &str) {
    let error = block_on(open(options, config(BOUND / 2))).unwrap_err();
    assert_eq!(error.kind(), kind, "{error:#}");
    assert!(error.to_string().contains(says), "{error:#}");
}

#[test]
fn a_server_that_asks_for_a_certificate() {
    bounded(|| {
        let files = Files::new();
        let port = free_port().to_string();
        let _server = Server::start_with(&words(&files.server(&port)));
        let url = format!("rediss://localhost:{port}/");
        let trusting = || ConnectOptions::new(&url).ca_certificate(files.read("ca.crt"));
        on_each_runtime(|_, open| {
            holds(open, files.client(&url), "a");
            // One authority of several.
            holds(open, files.client(&url).ca_certificate(files.read("other.crt")), "b");
            #[cfg(feature = "serde")]
            for (n, options) in files.deserialised(&url).into_iter().enumerate() {
                holds(open, options, &format!("c{n}"));
            }
            fails(open, trusting(), ErrorKind::Certificate, "asks for a certificate of the client");
            let other = ConnectOptions::new(&url).ca_certificate(files.read("other.crt"));
            fails(open, other, ErrorKind::Certificate, "the server's certificate is not accepted");
            let key_of_another = trusting().client_certificate(files.read("client.crt"), files.read("server.key"));
            fails(open, key_of_another, ErrorKind::InvalidInput, "the client's certificate and key cannot be used");
            let no_key = trusting().client_certificate(files.read("client.crt"), files.read("client.crt"));
            fails(open, no_key, ErrorKind::InvalidInput, "the client's key is not PEM");
        });
    });
}

/// What the application has made itself, such as one with a verifier of its own.
#[test]
fn a_configuration_of_rustls() {
    bounded(|| {
        let files = Files::new();
        let port = free_port().to_string();
        let _server = Server::start_with(&words(&files.server(&port)));
        let url = format!("rediss://localhost:{port}/");
        let client = |authority: &str| {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from_pem_slice(&files.read(authority)).unwrap()).unwrap();
            let chain = vec![CertificateDer::from_pem_slice(&files.read("client.crt")).unwrap()];
            let key = PrivateKeyDer::from_pem_slice(&files.read("client.key")).unwrap();
            let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
            let builder = builder.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
            ConnectOptions::new(&url).tls_config(Arc::new(builder.with_client_auth_cert(chain, key).unwrap()))
        };
        on_each_runtime(|_, open| {
            holds(open, client("ca.crt"), "a");
            fails(open, client("other.crt"), ErrorKind::Certificate, "the server's certificate is not accepted");
        });
    });
}

/// Each master of a `RedLock` is a client of its own.
#[cfg(feature = "tokio")]
#[test]
fn masters_that_ask_for_a_certificate() {
    bounded(|| {
        let files = Files::new();
        let ports = [(); 3].map(|()| free_port().to_string());
        let _servers = ports.each_ref().map(|port| Server::start_with(&words(&files.server(port))));
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let mut masters = Vec::new();
            for port in &ports {
                let options = files.client(&format!("rediss://localhost:{port}/")).client_name("master");
                masters.push(bowline::tokio::connect_with(options, config(BOUND / 2)).await.unwrap());
            }
            let locks = bowline::RedLock::builder(masters).new_masters(true).build().unwrap();
            let guard = locks.lock("a").await.unwrap();
            assert!(locks.try_lock("a").await.unwrap().is_none());
            guard.release().await.unwrap();
        });
    });
}

#[test]
fn sentinels_that_ask_for_a_certificate() {
    bounded(|| {
        let files = Files::new();
        let [port, sentinel] = [(); 2].map(|()| free_port().to_string());
        let _server = Server::start_with(&words(&files.server(&port)));
        let watched = Watched::alone(port.parse().unwrap()).by_a_sentinel_with(&words(&files.server(&sentinel)));
        let url = format!("rediss-sentinel://localhost:{sentinel}/?master={MASTER_NAME}");
        on_each_runtime(|_, open| {
            holds(open, files.client(&url), "a");
            let trusting = ConnectOptions::new(&url).ca_certificate(files.read("ca.crt"));
            fails(open, trusting, ErrorKind::Certificate, "asks for a certificate of the client");
        });
        drop(watched);
    });
}

#[test]
fn a_cluster_that_asks_for_a_certificate() {
    bounded(|| {
        let files = Files::new();
        let cluster = Cluster::start_with(2, 0, &["--cluster-node-timeout", "15000"]);
        let ports = cluster.nodes().iter().map(|node| {
            let port = free_port().to_string();
            let settings: Vec<String> =
                files.server(&port).iter().map(|word| word.trim_start_matches("--").to_owned()).collect();
            // The port is last: it is opened with what is set by then.
            let (port_setting, others) = settings.split_at(2);
            redis::cmd("CONFIG").arg("SET").arg(others).arg(port_setting).exec(&mut node.client()).unwrap();
            for announced in ["cluster-announce-port", "cluster-announce-tls-port"] {
                redis::cmd("CONFIG").arg(&["SET", announced, &port]).exec(&mut node.client()).unwrap();
            }
            port
        });
        let ports: Vec<String> = ports.collect();
        let url = format!("rediss-cluster://localhost:{}/", ports[0]);
        on_each_runtime(|_, open| {
            // Until each node knows what the other one announces.
            while block_on(async {
                let connection = open(files.client(&url), config(BOUND / 2)).await.unwrap();
                let shown = format!("{connection:?}");
                !ports.iter().all(|port| shown.contains(port))
            }) {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            for name in 0..10 {
                holds(open, files.client(&url), &name.to_string());
            }
            let trusting = ConnectOptions::new(&url).ca_certificate(files.read("ca.crt"));
            fails(open, trusting, ErrorKind::Certificate, "asks for a certificate of the client");
        });
    });
}
