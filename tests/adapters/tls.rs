//! `rediss://` against a real server with a certificate of an authority of its own.
//!
//! The trusted authorities are read from `SSL_CERT_FILE`, which a process cannot safely change for itself: the test
//! runs this binary again with the variable set.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::deployed::on_each_runtime;
use crate::support::adapters::{BOUND, Keys, acquire, admin, bounded, release, word};
use crate::support::certificates;
use crate::support::cluster::Cluster;
use crate::support::proxy::Proxy;
use crate::support::server::sentinel::{MASTER_NAME, Watched};
use crate::support::server::{Server, free_port};
use bowline::{Config, Connection, ConnectionError, ErrorKind, Notice};
use futures::StreamExt;

/// In the child: the port of the server that speaks TLS, of one whose certificate no authority has signed, and of one
/// that asks for a certificate.
const PORT: &str = "BOWLINE_TEST_TLS_PORT";
const OTHER: &str = "BOWLINE_TEST_TLS_PORT_OTHER";
const STRICT: &str = "BOWLINE_TEST_TLS_PORT_STRICT";

#[test]
fn certificates_are_verified() {
    bounded(|| {
        let dir = tempfile::tempdir().unwrap();
        certificates::write(dir.path());
        let file = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        let start = |of: &str, asks: &str| {
            let port = free_port().to_string();
            let arguments = certificates::server_arguments(dir.path(), of, &port, asks);
            (Server::start_with(&arguments.iter().map(String::as_str).collect::<Vec<_>>()), port)
        };
        let [(server, port), (_other, other), (_strict, strict)] =
            [("server", "no"), ("other", "no"), ("server", "yes")].map(|(of, asks)| start(of, asks));
        for (test, roots) in [
            ("child_believes", "ca.crt"),
            ("child_believes_sentinels", "ca.crt"),
            ("child_believes_a_cluster", "ca.crt"),
            ("child_does_not_believe", "other.crt"),
            ("child_takes_one_port_for_the_other", "ca.crt"),
            ("child_has_no_certificate_of_its_own", "ca.crt"),
            ("child_believes_no_more", "ca.crt"),
        ] {
            let status = Command::new(std::env::current_exe().unwrap())
                .args([&format!("tls::{test}"), "--exact", "--nocapture"])
                .env("SSL_CERT_FILE", file(roots))
                .env_remove("SSL_CERT_DIR")
                .envs([(PORT, &port), (OTHER, &other), (STRICT, &strict)])
                .status()
                .unwrap();
            assert!(status.success(), "{test}");
        }
        assert_eq!(admin(&server, &["PUBLISH", "test:channel", "x"]), redis::Value::Int(0));
    });
}

fn child_port() -> Option<u16> {
    port(PORT)
}

fn port(variable: &str) -> Option<u16> {
    Some(std::env::var(variable).ok()?.parse().unwrap())
}

pub(crate) fn config(timeout: Duration) -> Config {
    Config::builder().command_timeout(timeout).build().unwrap()
}

#[test]
fn child_believes() {
    if child_port().is_none() {
        return;
    }
    on_each_runtime(|_, open| {
        let port = child_port().unwrap();
        for host in ["localhost", "127.0.0.1"] {
            futures::executor::block_on(async {
                let connection = open(format!("rediss://{host}:{port}/").into(), config(BOUND / 2)).await.unwrap();
                let taken = acquire(&connection, &Keys::of(host), "c1:1").await;
                assert_eq!(word(&taken), "GRANTED");
                assert_eq!(word(&release(&connection, &Keys::of(host), "c1:1").await), "RELEASED");
                let blocking = connection.without_runtime(BOUND / 2).expect("a connection without a runtime");
                assert_eq!(word(&acquire(&*blocking, &Keys::of(host), "c2:1").await), "GRANTED");
                assert_eq!(word(&release(&*blocking, &Keys::of(host), "c2:1").await), "RELEASED");
                let mut notices = connection.subscribe("test:channel").await.unwrap();
                connection.close();
                assert_eq!(notices.next().await, None);
            });
        }
        // Once the server is silent before the handshake, and once after it.
        let proxy = Proxy::start(port);
        let url = proxy.url().replace("redis://", "rediss://");
        let connection = futures::executor::block_on(open(url.into(), config(BOUND / 2))).unwrap();
        let given = Duration::from_millis(300);
        let start = Instant::now();
        let blocking = connection.without_runtime(given * 2).unwrap();
        proxy.stall(true);
        assert!(connection.without_runtime(given).is_none());
        let outcome = futures::executor::block_on(acquire(&*blocking, &Keys::of("a"), "c3:1"));
        assert!(matches!(outcome, Err(ConnectionError::Unknown(_))), "{outcome:?}");
        assert!(start.elapsed() < BOUND / 2, "{:?}", start.elapsed());
    });
}

/// TLS to the servers and to the sentinels are asked for together, or one by one.
#[test]
fn child_believes_sentinels() {
    let Some(tls) = child_port() else { return };
    let dir = std::env::var("SSL_CERT_FILE").unwrap();
    let file = |name: &str| Path::new(&dir).with_file_name(name).to_str().unwrap().to_owned();
    let (certificate, key, ca) = (file("server.crt"), file("server.key"), file("ca.crt"));
    let plain = Server::start();
    let watching = |master| {
        let port = free_port().to_string();
        let files = ["--tls-cert-file", &certificate, "--tls-key-file", &key, "--tls-ca-cert-file", &ca];
        let arguments = [&["--tls-port", &port, "--tls-auth-clients", "no"], &files[..]].concat();
        (Watched::alone(master).by_a_sentinel_with(&arguments), port)
    };
    let [(of_tls, of_tls_port), (of_plain, of_plain_port)] = [watching(tls), watching(plain.port())];
    let (of_tls, of_plain) = (of_tls.port(), of_plain.port());
    on_each_runtime(|_, open| {
        for (n, url) in [
            format!("rediss-sentinel://localhost:{of_tls_port}/?master={MASTER_NAME}"),
            format!("redis-sentinel://localhost:{of_tls}/?master={MASTER_NAME}&tls=true"),
            format!("redis-sentinel://localhost:{of_plain_port}/?master={MASTER_NAME}&sentinel_tls=true"),
            format!("redis-sentinel://localhost:{of_plain}/?master={MASTER_NAME}"),
        ]
        .into_iter()
        .enumerate()
        {
            futures::executor::block_on(async {
                let connection = open(url.into(), config(BOUND / 2)).await.unwrap();
                let keys = Keys::of(&n.to_string());
                assert_eq!(word(&acquire(&connection, &keys, "c1:1").await), "GRANTED");
                let blocking = connection.without_runtime(BOUND / 2).expect("a connection without a runtime");
                assert_eq!(word(&release(&*blocking, &keys, "c1:1").await), "RELEASED");
            });
        }
        for (url, hint) in [
            (format!("rediss-sentinel://localhost:{of_tls}/?master=m"), "use sentinel_tls=false"),
            (format!("redis-sentinel://localhost:{of_tls_port}/?master=m"), "use sentinel_tls=true"),
            (format!("redis-sentinel://localhost:{of_tls}/?master={MASTER_NAME}"), "use tls=true"),
            (format!("redis-sentinel://localhost:{of_plain}/?master={MASTER_NAME}&tls=true"), "use tls=false"),
        ] {
            let error = futures::executor::block_on(open((&url).into(), config(BOUND / 2))).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{url}: {error:#}");
            assert!(error.to_string().contains(hint), "{url}: {error:#}");
        }
    });
}

/// The nodes announce their ports with TLS.
#[test]
fn child_believes_a_cluster() {
    if child_port().is_none() {
        return;
    }
    let dir = std::env::var("SSL_CERT_FILE").unwrap();
    let file = |name: &str| Path::new(&dir).with_file_name(name).to_str().unwrap().to_owned();
    let cluster = Cluster::start_with(2, 0, &["--cluster-node-timeout", "15000"]);
    let ports = cluster.nodes().iter().map(|node| {
        let port = free_port().to_string();
        let [certificate, key, ca] = ["server.crt", "server.key", "ca.crt"].map(file);
        let files = ["tls-cert-file", &certificate, "tls-key-file", &key, "tls-ca-cert-file", &ca];
        let all = [&["CONFIG", "SET", "tls-auth-clients", "no"], &files[..], &["tls-port", &port]].concat();
        redis::cmd(all[0]).arg(&all[1..]).exec(&mut node.client()).unwrap();
        // Redis 7.0 announces one port only.
        for announced in ["cluster-announce-port", "cluster-announce-tls-port"] {
            redis::cmd("CONFIG").arg(&["SET", announced, &port]).exec(&mut node.client()).unwrap();
        }
        port
    });
    let ports: Vec<String> = ports.collect();
    on_each_runtime(|_, open| {
        for (n, host) in ["localhost", "127.0.0.1"].into_iter().enumerate() {
            futures::executor::block_on(async {
                let url = format!("rediss-cluster://{host}:{}/", ports[n]);
                // Until each node knows what the other one announces.
                let connection = loop {
                    let connection = open((&url).into(), config(BOUND / 2)).await.unwrap();
                    let shown = format!("{connection:?}");
                    if ports.iter().all(|port| shown.contains(port)) {
                        break connection;
                    }
                    std::thread::sleep(Duration::from_millis(20));
                };
                for name in 0..10 {
                    let keys = Keys::of(&name.to_string());
                    assert_eq!(word(&acquire(&connection, &keys, "c1:1").await), "GRANTED");
                    let blocking = connection.without_runtime(BOUND / 2).expect("a connection without a runtime");
                    assert_eq!(word(&release(&*blocking, &keys, "c1:1").await), "RELEASED");
                }
                let mut notices = connection.subscribe("bowline:inbox:test").await.unwrap();
                connection.close();
                while let Some(notice) = notices.next().await {
                    assert_eq!(notice, bowline::Notice::Gap, "no message was sent");
                }
            });
        }
        let as_plain = format!("redis-cluster://localhost:{}/", ports[0]);
        let as_tls = format!("rediss-cluster://localhost:{}/", cluster.nodes()[0].port());
        for (url, hint) in [(as_plain, "use rediss-cluster://"), (as_tls, "use redis-cluster://")] {
            let error = futures::executor::block_on(open(url.into(), config(BOUND / 2))).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error:#}");
            assert!(error.to_string().contains(hint), "{error:#}");
        }
    });
    // The nodes speak TLS with each other, on ports that are not their plain ones.
    assert!(ports.iter().all(|port| cluster.nodes().iter().all(|node| *port != node.port().to_string())));
}

#[test]
fn child_does_not_believe() {
    if child_port().is_none() {
        return;
    }
    on_each_runtime(|_, open| {
        let port = child_port().unwrap();
        let opened = futures::executor::block_on(open(format!("rediss://localhost:{port}/").into(), config(BOUND / 2)));
        let error = opened.unwrap_err();
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Certificate, false), "{error}");
        assert!(error.to_string().contains("the server's certificate is not accepted"), "{error}");
        // A server that never sends anything.
        let mute = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let url = format!("rediss://localhost:{}/", mute.local_addr().unwrap().port());
        let opened = futures::executor::block_on(open(url.into(), config(Duration::from_millis(300))));
        let error = opened.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("no answer to the TLS greeting"), "{error}");
    });
}

/// One end speaks TLS, and the other does not.
#[test]
fn child_takes_one_port_for_the_other() {
    if child_port().is_none() {
        return;
    }
    on_each_runtime(|_, open| {
        let (port, plain) = (child_port().unwrap(), Server::start());
        let as_plain = format!("redis://localhost:{port}/");
        let as_tls = plain.url().replace("redis://", "rediss://");
        for (url, hint) in [(as_plain, "use rediss://"), (as_tls, "use redis://")] {
            // At the end of the time limit it would be `Unavailable`.
            let error = futures::executor::block_on(open(url.into(), config(BOUND / 2))).unwrap_err();
            assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Unsupported, false), "{error:#}");
            assert!(error.to_string().contains(hint), "{error:#}");
        }
        // In the background, a call learns the same.
        let config = Config::builder().command_timeout(BOUND / 2).connect_in_background(true).build().unwrap();
        let connection =
            futures::executor::block_on(open(plain.url().replace("redis://", "rediss://").into(), config)).unwrap();
        let error = futures::executor::block_on(acquire(&connection, &Keys::of("a"), "c1:1")).unwrap_err();
        let is_unsupported = matches!(error, ConnectionError::NotConnected { kind: ErrorKind::Unsupported, .. });
        assert!(is_unsupported, "{error:?}");
    });
}

#[test]
fn child_has_no_certificate_of_its_own() {
    if port(STRICT).is_none() {
        return;
    }
    on_each_runtime(|_, open| {
        let url = format!("rediss://localhost:{}/", port(STRICT).unwrap());
        let error = futures::executor::block_on(open(url.into(), config(BOUND / 2))).unwrap_err();
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Certificate, false), "{error:#}");
        assert!(error.to_string().contains("asks for a certificate of the client"), "{error:#}");
    });
}

/// The address leads to a server with another certificate when the connection is made again.
#[test]
fn child_believes_no_more() {
    if child_port().is_none() {
        return;
    }
    on_each_runtime(|_, open| {
        let proxy = Proxy::start(child_port().unwrap());
        let url = proxy.url().replace("redis://", "rediss://");
        futures::executor::block_on(async {
            let connection = open(url.into(), config(Duration::from_millis(500))).await.unwrap();
            let mut notices = connection.subscribe("test:channel").await.unwrap();
            proxy.lead_to(port(OTHER).unwrap());
            proxy.cut();
            assert_eq!(notices.next().await, Some(Notice::Gap));
            let refused = notices.next().await;
            assert!(matches!(refused, Some(Notice::Refused(ConnectionError::Certificate(_)))), "{refused:?}");
            let error = loop {
                match acquire(&connection, &Keys::of("a"), "c1:1").await {
                    Err(error @ (ConnectionError::Unknown(_) | ConnectionError::Unreachable(_))) => drop(error),
                    other => break other.unwrap_err(),
                }
            };
            assert!(matches!(error, ConnectionError::Certificate(_)), "{error:?}");
            proxy.lead_to(child_port().unwrap());
            while acquire(&connection, &Keys::of("a"), "c1:1").await.is_err() {}
        });
    });
}
