//! Clients that cannot be used, and servers that refuse.

use bowline::{Connection, ConnectionError, ErrorKind};

use super::*;

#[test]
fn clients_that_would_break_the_contract_are_refused() {
    on_tokio(|executor| async move {
        let cluster = unconnected(fred_config(ServerConfig::new_clustered(vec![("127.0.0.1", 1)])));
        let ends = fred::clients::Client::new(centralized(1), None, None, None);
        for (client, word) in [(cluster, "cluster"), (ends, "ReconnectPolicy")] {
            let error = from_client(executor.clone(), client, &config()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.to_string().contains(word), "{error}");
        }
    });
}

#[test]
fn the_runtime_of_fred_must_be_there() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let executor = Arc::new(Tokio::new(runtime.handle().clone()));
    let error = from_client(executor, unconnected(centralized(1)), &config()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
}

/// fred does not wait for the answer to a `SUBSCRIBE`.
#[test]
fn a_refused_subscription_is_an_error() {
    on_tokio(|executor| async move {
        let server = Server::start();
        admin(&server, &["ACL", "SETUSER", "poor", "on", ">p", "~*", "resetchannels", "+@all"]);
        let login = |config| FredConfig { username: Some("poor".into()), password: Some("p".into()), ..config };
        for version in [RespVersion::RESP2, RespVersion::RESP3] {
            let config = FredConfig { version, ..login(centralized(server.port())) };
            let connection = connection(&executor, config).await;
            let refused = connection.subscribe("bowline:inbox:test").await.map(drop).unwrap_err();
            assert!(matches!(&refused, ConnectionError::Refused { code, .. } if code == "NOPERM"), "{refused:?}");
        }
    });
}

/// Whether the subscription is on the server of the calls must be known.
#[test]
fn a_subscription_that_cannot_be_proven_is_an_error() {
    on_tokio(|executor| async move {
        let server = Server::start();
        admin(&server, &["ACL", "SETUSER", "poor", "on", ">p", "~*", "&*", "+@all", "-pubsub"]);
        let login =
            FredConfig { username: Some("poor".into()), password: Some("p".into()), ..centralized(server.port()) };
        let connection = connection(&executor, login).await;
        let refused = connection.subscribe("bowline:inbox:test").await.map(drop).unwrap_err();
        assert!(matches!(&refused, ConnectionError::Refused { code, .. } if code == "NOPERM"), "{refused:?}");
    });
}

/// The user of docs/acl.md has enough rights, although fred asks for its id.
#[test]
fn the_documented_user_may_do_all() {
    on_tokio(|executor| async move {
        let server = Server::start();
        let login = FredConfig {
            username: Some("bowline".into()),
            password: Some("secret".into()),
            ..centralized(server.port())
        };
        let client = client(&executor, login).await;
        client.lock("orders").lock().await.unwrap().release().await.unwrap();
        client.close().await;
    });
}

#[test]
fn a_server_that_cannot_be_reached() {
    on_tokio(|executor| async move {
        let server = Server::start();
        let limit = Duration::from_millis(300);
        let connection = connection_within(limit, &executor, centralized(server.port())).await;
        server.finish();
        let error = connection.subscribe("bowline:inbox:test").await.map(drop).unwrap_err();
        assert!(matches!(error, ConnectionError::Unreachable(_)), "{error:?}");
    });
}
