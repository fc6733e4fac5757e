//! Connecting: addresses, credentials, and servers that do not fit.

use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use bowline::{Connection, ErrorKind, Warning};
use futures::FutureExt;
use futures::future::{Either, select};

use super::{SHORT, code};
use crate::support::adapters::{Keys, Runtime, acquire, admin, fake, field, ours, word};
use crate::support::closed::ClosedPort;
use crate::support::server::Server;

pub(crate) async fn addresses(rt: Runtime) {
    let v6 = TcpListener::bind(("::1", 0)).is_ok();
    let server = if v6 { Server::start_with(&["--bind", "127.0.0.1", "::1"]) } else { Server::start() };
    let mut urls = vec![
        server.url(),
        server.url().replace("127.0.0.1", "localhost"),
        format!("valkey://127.0.0.1:{}/3?protocol=resp3", server.port()),
        server.socket_url(),
        format!("{}?db=3", server.socket_url()),
    ];
    if v6 {
        urls.push(format!("redis://[::1]:{}/", server.port()));
    }
    for (n, url) in urls.iter().enumerate() {
        let keys = Keys::of(&n.to_string());
        let connection = rt.connect(url).await;
        assert_eq!(word(&acquire(&connection, &keys, "c1:1").await), "GRANTED", "{url}");
        let db = if url.contains('3') && (url.contains("/3") || url.contains("db=3")) { "3" } else { "0" };
        assert_eq!(field(&ours(&server)[0], "db"), db, "{url}");
        connection.close();
        rt.eventually("it is closed", || ours(&server).is_empty()).await;
    }
}

pub(crate) async fn a_reconnection_selects_the_database_again(rt: Runtime) {
    let server = Server::start();
    let connection = rt.connect(&format!("{}5", server.url())).await;
    admin(&server, &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    let keys = Keys::of("a");
    while acquire(&connection, &keys, "c1:1").await.is_err() {}
    assert!(ours(&server).iter().all(|line| field(line, "db") == "5"));
}

/// It says so before it has read anything, and closes.
pub(crate) async fn a_server_with_too_many_clients_says_so(rt: Runtime) {
    let server = Server::start();
    let connection = rt.connect(&server.url()).await;
    let mut admin = server.client();
    let mut clients = || redis::cmd("CLIENT").arg("LIST").query::<String>(&mut admin).unwrap();
    rt.eventually("the stream for a subscription is closed", || !clients().contains("cmd=NULL")).await;
    redis::cmd("CONFIG").arg(&["SET", "maxclients", "1"]).exec(&mut admin).unwrap();
    for _ in 0..5 {
        let error = rt.try_connect(&server.url(), SHORT).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(format!("{error:#}").contains("max number of clients"), "{error:#}");
    }
    let error = connection.subscribe("test:channel").await.map(drop).unwrap_err();
    assert!(error.to_string().contains("max number of clients"), "{error}");
}

pub(crate) async fn credentials(rt: Runtime) {
    let server = Server::start();
    let acl = ["ACL", "SETUSER", "alice", "on", ">s3cret/?#", "~*", "&*", "+@all", "-ping", "-info"];
    admin(&server, &acl);
    let mut admin = server.client();
    redis::cmd("CONFIG").arg(&["SET", "requirepass", "0ther"]).exec(&mut admin).unwrap();
    let at = |login: &str| server.url().replace("://", &format!("://{login}"));
    for bad in ["", ":wr0ng@", "alice:wr0ng@", "bob:s3cret@"] {
        let error = rt.try_connect(&at(bad), SHORT * 10).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{bad} {error}");
        let says = if bad.is_empty() { "asks for a password" } else { "name or password is wrong" };
        assert!(error.to_string().contains(says), "{bad} {error}");
        assert!(!format!("{error} {error:?}").contains("wr0ng"), "{error}");
    }
    for good in [":0ther@", "default:0ther@", "alice:s3cret%2F%3F%23@"] {
        let connection = rt.connect(&at(good)).await;
        assert!(acquire(&connection, &Keys::of("a"), "c1:1").await.is_ok());
        let shown = format!("{connection:?}");
        assert!(!shown.contains("0ther") && !shown.contains("s3cret") && !shown.contains("alice"), "{shown}");
    }
    redis::cmd("ACL").arg(&["SETUSER", "alice", "-evalsha", "-eval"]).exec(&mut admin).unwrap();
    let connection = rt.connect(&at("alice:s3cret%2F%3F%23@")).await;
    assert_eq!(code(&acquire(&connection, &Keys::of("a"), "c1:1").await.unwrap_err()), "NOPERM");
}

pub(crate) async fn what_does_not_answer_or_does_not_exist(rt: Runtime) {
    let mute = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let closed = ClosedPort::new();
    let server = Server::start();
    let (refused, mute) = (closed.port(), mute.local_addr().unwrap().port());
    for (url, kind, says) in [
        (format!("redis://:s3cret@127.0.0.1:{mute}/"), ErrorKind::Unavailable, "connected, but no answer within"),
        (format!("redis://:s3cret@127.0.0.1:{refused}/"), ErrorKind::Unavailable, "connection refused"),
        ("redis://:s3cret@no-such-host.invalid/".to_owned(), ErrorKind::Unavailable, "the name is not resolved"),
        ("unix:///no/such/socket?pass=s3cret".to_owned(), ErrorKind::Unavailable, "there is no such socket"),
        (format!("{}99", server.url()), ErrorKind::InvalidInput, "DB index"),
        ("redis://:s3cret@0.0.0.0/".to_owned(), ErrorKind::InvalidInput, ""),
        ("http://:s3cret@127.0.0.1/".to_owned(), ErrorKind::InvalidInput, "not a URL of the form"),
        (
            "rediss://:s3cret@127.0.0.1/#insecure".to_owned(),
            ErrorKind::InvalidInput,
            "certificates are always verified",
        ),
    ] {
        // Without a network, a resolver may take long to fail.
        let timeout = if says.contains("resolved") { SHORT * 25 } else { SHORT };
        let error = rt.try_connect(&url, timeout).await.unwrap_err();
        assert_eq!((error.kind(), error.operation()), (kind, "connect"), "{url} {error}");
        assert!(error.to_string().contains(says), "{url} {error}");
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
    }
    rt.eventually("nothing is left", || ours(&server).is_empty()).await;
}

pub(crate) async fn servers_that_do_not_fit(rt: Runtime) {
    let old =
        "%3\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n6.0.9\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n";
    let sentinel = "%2\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n$4\r\nmode\r\n$8\r\nsentinel\r\n";
    let unknown = "-ERR unknown command `HELLO`, with args beginning with: `3` `AUTH` `default` `s3cret` \r\n";
    let renamed = "-ERR unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'default' 's3cret' \r\n";
    for hello in [old, sentinel, unknown, renamed, "-NOPROTO unsupported protocol version\r\n"] {
        let url = format!("redis://:s3cret@127.0.0.1:{}/", fake(hello));
        let error = rt.try_connect(&url, SHORT * 10).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{hello} {error}");
        let says = if hello == sentinel { "redis-sentinel://" } else { "bowline needs Redis or Valkey 6.2 or newer" };
        assert!(error.to_string().contains(says), "{hello} {error}");
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
    }
    let url = format!("redis://127.0.0.1:{}/", fake("+this is no map\r\n"));
    rt.connect(&url).await;
    for (answer, says) in [
        ("HTTP/1.1 400\r\n\r\n", "this is a web server (HTTP), not Redis"),
        ("<!DOCTYPE HTML>\r\n", "this is a web server (HTTP), not Redis"),
        ("SSH-2.0-OpenSSH_9.2\r\n", "does not speak the Redis protocol"),
        ("\x15\x03\x01\x00\x02\x02\x46", "speaks TLS on this port; use rediss://"),
    ] {
        let error = rt.try_connect(&format!("redis://127.0.0.1:{}/", fake(answer)), SHORT * 10).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{answer} {error}");
        assert!(error.to_string().contains(says), "{answer} {error}");
    }
}

pub(crate) async fn warnings(rt: Runtime) {
    let server = Server::start_with(&["--maxmemory-policy", "allkeys-lru"]);
    let warnings = rt.try_connect(&server.url(), SHORT * 10).await.unwrap().warnings();
    assert_eq!(warnings, [Warning::Eviction { policy: "allkeys-lru".to_owned() }]);
    admin(&server, &["ACL", "SETUSER", "alice", "on", ">s3cret", "~*", "&*", "+@all", "-info"]);
    let url = server.url().replace("://", "://alice:s3cret@");
    assert_eq!(rt.try_connect(&url, SHORT * 10).await.unwrap().warnings(), []);
    admin(&server, &["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    let (lease, fits) = (Duration::from_secs(30), Duration::from_secs(15));
    assert_eq!(rt.try_connect(&server.url(), fits).await.unwrap().warnings(), []);
    let command_timeout = fits + Duration::from_millis(1);
    let warnings = rt.try_connect(&server.url(), command_timeout).await.unwrap().warnings();
    assert_eq!(warnings, [Warning::SlowTimeout { command_timeout, lease }]);
    assert!(warnings[0].to_string().contains("30s"), "{}", warnings[0]);
}

pub(crate) async fn dropping_a_connection_attempt_closes_its_socket(rt: Runtime) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("redis://127.0.0.1:{}/", listener.local_addr().unwrap().port());
    let attempt = rt.try_connect(&url, Duration::from_secs(600)).boxed();
    let (sender, received) = futures::channel::oneshot::channel();
    let (closed_sender, closed) = futures::channel::oneshot::channel();
    thread::spawn(move || {
        use std::io::Read;
        let (mut stream, _) = listener.accept().unwrap();
        let mut buffer = [0; 1024];
        let _ = sender.send(stream.read(&mut buffer).unwrap());
        let _ = closed_sender.send(matches!(stream.read(&mut buffer), Ok(0) | Err(_)));
    });
    let Either::Left((_, attempt)) = select(received, attempt).await else { panic!("connected without a server") };
    drop(attempt);
    assert!(closed.await.unwrap());
}
