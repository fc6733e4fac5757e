//! The contract of `bowline::Connection`, also while sockets are cut and answers are lost.

use bowline::testing::{Clause, Relay, check_connection};

use super::*;

/// Also the wait for what does not come.
const TIMEOUT: Duration = Duration::from_secs(3);

fn check(version: RespVersion) {
    on_tokio(move |executor| {
        let version = version.clone();
        async move {
            let server = Server::start();
            let relay = Relay::start(("127.0.0.1", server.port())).unwrap();
            let connect = || async {
                let config = FredConfig { version: version.clone(), ..centralized(relay.address().port()) };
                Ok::<_, String>(connection_within(TIMEOUT, &executor, config).await)
            };
            let checked = check_connection(executor.clone(), connect).disturb(&relay).command_timeout(TIMEOUT);
            let report = checked.await.unwrap();
            let not_checked: Vec<Clause> = report.not_checked().map(|(clause, _)| clause).collect();
            assert_eq!(not_checked, [Clause::WithoutRuntime]);
            assert_eq!(report.kept().count(), 27);
        }
    });
}

#[test]
fn a_client_that_speaks_resp2_keeps_the_contract() {
    check(RespVersion::RESP2);
}

#[test]
fn a_client_that_speaks_resp3_keeps_the_contract() {
    check(RespVersion::RESP3);
}
