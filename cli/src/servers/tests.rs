use super::*;

const MS: Duration = Duration::from_millis(1);

/// The answer to `TIME` of a server whose clock shows this many milliseconds since 1970.
fn told(millis: i64, sent: Instant, took: Duration) -> Asked {
    let part = |number: i64| Reply::Bytes(number.to_string().into_bytes());
    let answer = Ok(Reply::Array(vec![part(millis / 1000), part(millis % 1000 * 1000)]));
    Asked { answer, sent, took }
}

#[test]
fn each_server_has_its_own_round_trips_and_its_own_moments() {
    // The clocks of this machine are read when all servers have answered.
    let began = Instant::now();
    let clocks = Clocks { steady: began + 1000 * MS, calendar: UNIX_EPOCH + 1_000_000 * MS };
    // Both clocks are right, and are read half a round trip after the question.
    let (mut near, mut far) = (Server::default(), Server::default());
    near.take(&["TIME"], &told(999_001, began, 2 * MS), clocks);
    far.take(&["TIME"], &told(999_102, began + 2 * MS, 200 * MS), clocks);
    assert_eq!((near.latency, near.clock), (Some(2 * MS), Some(0)));
    assert_eq!((far.latency, far.clock), (Some(200 * MS), Some(0)));
    // The fastest answer counts, whether it comes before or after the others.
    far.take(&["TIME"], &told(999_302, began + 202 * MS, 300 * MS), clocks);
    assert_eq!((far.latency, far.clock), (Some(200 * MS), Some(0)));
    far.take(&["TIME"], &told(999_552, began + 502 * MS, 100 * MS), clocks);
    assert_eq!((far.latency, far.clock), (Some(100 * MS), Some(0)));
    // Thirty seconds ahead.
    let mut ahead = Server::default();
    ahead.take(&["TIME"], &told(1_029_001, began, 2 * MS), clocks);
    assert_eq!(ahead.clock, Some(30_000));
}

#[test]
fn a_missing_right_is_no_fault_of_the_server() {
    let clocks = Clocks { steady: Instant::now(), calendar: UNIX_EPOCH + 1000 * MS };
    let fault_of = |words: &[&str], error: ConnectionError| {
        let mut server = Server::default();
        server.take(words, &Asked { answer: Err(error), sent: clocks.steady, took: MS }, clocks);
        server.fault
    };
    let fault = |error: ConnectionError| fault_of(&["INFO"], error);
    let refusal = |code: &str, message: &str| {
        let (code, message) = (code.to_owned(), message.to_owned());
        ConnectionError::Refused { code, message }
    };
    let refused = |code: &str, message: &str| fault(refusal(code, message));
    // Services have words of their own.
    for words in [&["INFO"][..], &["ACL", "WHOAMI"], &["CONFIG", "GET", "save"]] {
        assert_eq!(fault_of(words, refusal("ERR", "command is not allowed")), None, "{words:?}");
        assert!(fault_of(words, refusal("MASTERDOWN", "Link with MASTER is down")).is_some(), "{words:?}");
    }
    // Who may not ask for the time may not run the scripts either.
    assert!(fault_of(&["TIME"], refusal("NOPERM", "no permissions")).is_some());
    assert!(fault_of(&["TIME"], refusal("ERR", "unknown command 'TIME'")).is_some());
    assert_eq!(refused("NOPERM", "this user has no permissions to run the 'info' command"), None);
    assert_eq!(refused("ERR", "unknown command 'CONFIG'"), None);
    assert_eq!(refused("ERR", "Unknown subcommand or wrong number of arguments for 'get'"), None);
    assert_eq!(refused("LOADING", "Redis is loading").as_deref(), Some("LOADING Redis is loading"));
    assert!(refused("NOAUTH", "Authentication required.").is_some());
    assert!(fault(ConnectionError::Unreachable("no answer within 3s".to_owned())).is_some());
    assert!(fault(ConnectionError::Unknown("cut".to_owned())).is_some());
}
