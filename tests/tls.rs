//! `rediss://` against a real server with a certificate of an authority of its own.
//!
//! Whom to believe is read from `SSL_CERT_FILE`, which a process cannot safely change for itself: the test runs this
//! binary again with the variable set.
#![cfg(all(feature = "tls", any(feature = "tokio", feature = "smol", feature = "async-std")))]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods, missing_docs)]

mod support;

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline::{Config, Connection, ConnectionError, ErrorKind, RedisConnection, Result};
use futures::StreamExt;
use futures::future::BoxFuture;
use support::adapters::{BOUND, Keys, acquire, admin, bounded, release, word};
use support::proxy::Proxy;
use support::server::Server;

/// In the child: the port of the server that speaks TLS.
const PORT: &str = "BOWLINE_TEST_TLS_PORT";

#[test]
fn certificates_are_verified() {
    bounded(|| {
        let dir = std::env::temp_dir().join(format!("bowline-tls-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        certificates(&dir);
        let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        let file = |name: &str| dir.join(name).to_str().unwrap().to_owned();
        let server = Server::start_with(&[
            "--tls-port",
            &port.to_string(),
            "--tls-cert-file",
            &file("server.crt"),
            "--tls-key-file",
            &file("server.key"),
            "--tls-ca-cert-file",
            &file("ca.crt"),
            "--tls-auth-clients",
            "no",
        ]);
        for (test, roots) in [("child_believes", "ca.crt"), ("child_does_not_believe", "other.crt")] {
            let status = Command::new(std::env::current_exe().unwrap())
                .args([test, "--exact", "--nocapture"])
                .env("SSL_CERT_FILE", file(roots))
                .env_remove("SSL_CERT_DIR")
                .env(PORT, port.to_string())
                .status()
                .unwrap();
            assert!(status.success(), "{test}");
        }
        assert_eq!(admin(&server, &["PUBLISH", "test:channel", "x"]), redis::Value::Int(0));
        std::fs::remove_dir_all(&dir).unwrap();
    });
}

/// An authority, a server's certificate by it for `localhost` and 127.0.0.1, and an authority that signed nothing.
fn certificates(dir: &Path) {
    let openssl = |args: &str| {
        let output = Command::new("openssl").args(args.split(' ')).current_dir(dir).output().expect("openssl");
        assert!(output.status.success(), "{args}: {}", String::from_utf8_lossy(&output.stderr));
    };
    std::fs::write(dir.join("ext"), "subjectAltName=DNS:localhost,IP:127.0.0.1").unwrap();
    for name in ["ca", "other"] {
        openssl(&format!(
            "req -x509 -newkey rsa:2048 -nodes -keyout {name}.key -out {name}.crt -days 2 -subj /CN={name}"
        ));
    }
    openssl("req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=localhost");
    openssl("x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out server.crt -days 2 -extfile ext");
}

fn child_port() -> Option<u16> {
    std::env::var(PORT).ok().map(|port| port.parse().unwrap())
}

fn on_each_runtime(test: fn(Open)) {
    #[cfg(feature = "tokio")]
    {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let _inside = runtime.enter();
        test(|url, config| {
            Box::pin(async move {
                let executor = Arc::new(bowline::tokio::Tokio::current().unwrap());
                bowline::tokio::open(executor, &url, &config).await
            })
        });
    }
    #[cfg(feature = "smol")]
    test(|url, config| {
        Box::pin(async move { bowline::smol::open(Arc::new(bowline::smol::Smol), &url, &config).await })
    });
    #[cfg(feature = "async-std")]
    test(|url, config| {
        Box::pin(async move { bowline::async_std::open(Arc::new(bowline::async_std::AsyncStd), &url, &config).await })
    });
}

type Open = fn(String, Config) -> BoxFuture<'static, Result<RedisConnection>>;

fn config(timeout: Duration) -> Config {
    Config::builder().command_timeout(timeout).build().unwrap()
}

#[test]
fn child_believes() {
    if child_port().is_none() {
        return;
    }
    on_each_runtime(|open| {
        let port = child_port().unwrap();
        for host in ["localhost", "127.0.0.1"] {
            futures::executor::block_on(async {
                let connection = open(format!("rediss://{host}:{port}/"), config(BOUND / 2)).await.unwrap();
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
        // A server that falls silent before the handshake, and one after it.
        let proxy = Proxy::start(port);
        let url = proxy.url().replace("redis://", "rediss://");
        let connection = futures::executor::block_on(open(url, config(BOUND / 2))).unwrap();
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

#[test]
fn child_does_not_believe() {
    if child_port().is_none() {
        return;
    }
    on_each_runtime(|open| {
        let port = child_port().unwrap();
        let opened = futures::executor::block_on(open(format!("rediss://localhost:{port}/"), config(BOUND / 2)));
        let error = opened.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("certificate"), "{error}");
        // A server that says nothing.
        let mute = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let url = format!("rediss://localhost:{}/", mute.local_addr().unwrap().port());
        let opened = futures::executor::block_on(open(url, config(Duration::from_millis(300))));
        assert_eq!(opened.unwrap_err().kind(), ErrorKind::Unavailable);
    });
}
