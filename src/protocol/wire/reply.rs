//! Replies in a form that is easy to compare.

use crate::connection::Reply;

/// The reply to an acquisition or a release as a list, also if it came in its short form, a number or two numbers in a
/// text.
pub fn in_full(reply: Reply) -> Reply {
    let word = |word: &str| Reply::Bytes(word.as_bytes().to_vec());
    let list = match reply {
        Reply::Integer(0) => [word("NOT_HELD"), Reply::Integer(0), Reply::Integer(0)],
        Reply::Integer(1) => [word("RELEASED"), Reply::Integer(0), Reply::Integer(0)],
        Reply::Integer(micros) => [word("GRANTED"), word(&micros.to_string()), Reply::Integer(micros / 1000)],
        Reply::Bytes(text) => match std::str::from_utf8(&text).ok().and_then(|text| text.split_once(' ')) {
            Some((token, micros)) => {
                let now = micros.parse().unwrap_or(0) / 1000;
                [word("GRANTED"), word(token), Reply::Integer(now)]
            }
            None => return Reply::Bytes(text),
        },
        other => return other,
    };
    Reply::Array(list.into())
}
