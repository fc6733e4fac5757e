use super::*;

#[test]
fn quoted_arguments_are_left_out() {
    let line = "ERR unknown command 'evalsha', with args beginning with: 'secret' 'ticket'";
    let shown = [
        refused(line),
        unanswered(&Error::new(ErrorKind::Unknown, line)),
        not_subscribed(&Error::new(ErrorKind::Unknown, line)),
    ]
    .map(|error| error.to_string());
    for shown in shown {
        assert!(shown.contains("unknown command 'evalsha'") && !shown.contains("secret"), "{shown}");
    }
}

/// A call that was sent may have been executed, whatever fred says.
#[test]
fn only_what_was_not_sent_is_unreachable() {
    for text in NOT_QUEUED {
        let error = unanswered(&Error::new(ErrorKind::Unknown, text));
        assert_eq!(error, ConnectionError::Unreachable(text.to_owned()));
    }
    let full = Error::new(ErrorKind::Backpressure, "Max in-flight commands reached.");
    assert!(matches!(unanswered(&full), ConnectionError::Unreachable(_)));
    for (kind, text) in [
        (ErrorKind::IO, "Connection closed."),
        (ErrorKind::Timeout, "Request timed out."),
        (ErrorKind::Canceled, "Canceled."),
        // fred ends all calls of a connection with the error of one.
        (ErrorKind::Auth, "NOAUTH Authentication required."),
    ] {
        assert_eq!(unanswered(&Error::new(kind, text)), ConnectionError::Unknown(text.to_owned()));
    }
}

#[test]
fn a_refused_subscription_has_the_code_of_the_server() {
    let denied = not_subscribed(&Error::new(ErrorKind::Unknown, "NOPERM No permissions to access a channel"));
    assert!(matches!(denied, ConnectionError::Refused { code, .. } if code == "NOPERM"));
    let lost = not_subscribed(&Error::new(ErrorKind::IO, "Connection closed."));
    assert_eq!(lost, ConnectionError::Unreachable("Connection closed.".to_owned()));
}

#[test]
fn types_of_resp3_become_those_of_resp2() {
    let frames = [
        (Resp3Frame::Boolean { data: true, attributes: None }, Reply::Integer(1)),
        (Resp3Frame::Double { data: 1.5, attributes: None }, Reply::Bytes(b"1.5".to_vec())),
        (Resp3Frame::Array { data: vec![Resp3Frame::Null], attributes: None }, Reply::Array(vec![Reply::Nil])),
    ];
    for (frame, expected) in frames {
        assert_eq!(reply(frame), Ok(expected));
    }
}
