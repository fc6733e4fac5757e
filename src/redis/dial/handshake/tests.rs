use futures::channel::oneshot;
use futures::future::{join, pending};

use super::*;

/// As one that reads an answer and the end of the stream at once.
#[test]
fn the_last_answer_of_a_connection_counts() {
    let (answer, answered) = oneshot::channel();
    let mut driver = async { answer.send(7).unwrap() }.boxed();
    let done = driven(&mut driver, answered).now_or_never().expect("it is done");
    assert_eq!(done.unwrap(), Ok(7));
    for _ in 0..2 {
        let more = driven(&mut driver, pending::<()>()).now_or_never().expect("the connection has ended");
        assert!(matches!(more, Err(Failure::Io(_))));
    }
    assert!(join(&mut driver, async {}).now_or_never().is_some());
}

/// The server may quote the command that it does not like.
#[test]
fn a_failed_login_is_not_quoted() {
    let login = Login::new("alice", "s3cret");
    let said = |text: &str| refused(Some(&login), ConnectionError::refused(text));
    let failure = said("OTHER no `s3cret`");
    assert!(matches!(&failure, Failure::Refused(ConnectionError::Refused { code, .. }) if code == "OTHER"));
    assert!(failure.to_string().ends_with("no `***`"), "{failure}");
    for (text, means) in [
        ("NOPROTO unsupported protocol version", "does not speak RESP3"),
        ("ERR unknown command 'HELLO'", "does not know HELLO"),
    ] {
        let failure = said(text);
        assert!(matches!(&failure, Failure::Unsupported(reason) if reason.contains(means)), "{text}: {failure}");
    }
}
