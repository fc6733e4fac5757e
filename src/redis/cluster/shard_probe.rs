//! Finds out whether a cluster has shard channels that the user may use.

use ::redis::{Pipeline, PushKind, Value};

use super::super::convert;
use super::super::failure::Failure;
use crate::error::ErrorKind;
use crate::protocol::key::{inbox, inbox_prefix};

/// Sends the commands that a client will need: a count, a message and a subscription. The answer to the first one
/// decides. A server without shard channels does not know the command, whatever version it states. A user without the
/// right to it was set up for older servers.
///
/// No client uses the channel. If another node serves its slot, the redirection shows that the user has the right,
/// because servers check rights first.
pub(super) fn ask(pipeline: &mut Pipeline, prefix: &str) {
    let channel = inbox(&inbox_prefix(prefix), Some(0), uuid::Uuid::nil());
    pipeline.cmd("PUBSUB").arg("SHARDNUMSUB");
    pipeline.cmd("SPUBLISH").arg(&channel).arg("");
    pipeline.cmd("SSUBSCRIBE").arg(&channel);
    pipeline.cmd("SUNSUBSCRIBE").arg(&channel);
}

/// Reads the answers. The right to only some of these commands is an error.
pub(super) fn is_offered(mut answers: impl Iterator<Item = Value>) -> Result<bool, Failure> {
    let counted = convert::reply(answers.next().unwrap_or(Value::Nil));
    if counted.is_err() {
        return Ok(false);
    }
    for answer in answers {
        if let Value::Push { kind: PushKind::SSubscribe | PushKind::SUnsubscribe, .. } = answer {
            continue;
        }
        if let Err(refusal) = convert::reply(answer) {
            match refusal.kind() {
                ErrorKind::Denied => return Err(Failure::Refused(refusal)),
                // A managed service may have removed the command.
                ErrorKind::Unsupported => return Ok(false),
                // Another node serves the slot.
                _ => {}
            }
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use ::redis::{Value, parse_redis_value};

    use super::*;

    fn offered(lines: [&str; 4]) -> Result<bool, Failure> {
        is_offered(lines.map(|line| parse_redis_value(line.as_bytes()).unwrap()).into_iter())
    }

    const SUBSCRIBED: &str = ">3\r\n$10\r\nssubscribe\r\n$1\r\nc\r\n:1\r\n";
    const UNSUBSCRIBED: &str = ">3\r\n$12\r\nsunsubscribe\r\n$1\r\nc\r\n:0\r\n";
    const MOVED: &str = "-MOVED 0 127.0.0.1:7000\r\n";
    const DENIED: &str = "-NOPERM this user has no permissions to run the 'spublish' command\r\n";
    const UNKNOWN: &str = "-ERR unknown command 'SPUBLISH', with args beginning with: \r\n";

    #[test]
    fn a_node_offers_shard_channels_whether_it_serves_the_slot_or_not() {
        assert!(offered(["*0\r\n", ":0\r\n", SUBSCRIBED, UNSUBSCRIBED]).unwrap());
        assert!(offered(["*0\r\n", MOVED, MOVED, MOVED]).unwrap());
    }

    #[test]
    fn without_the_count_nothing_else_is_asked_for() {
        for counted in ["-ERR Unknown subcommand or wrong number of arguments for 'SHARDNUMSUB'.\r\n", DENIED] {
            assert!(!offered([counted, DENIED, UNKNOWN, UNKNOWN]).unwrap());
        }
    }

    #[test]
    fn a_part_of_the_rights_is_an_error_and_a_part_of_the_commands_is_none() {
        assert!(matches!(offered(["*0\r\n", DENIED, MOVED, MOVED]), Err(Failure::Refused(_))));
        assert!(matches!(offered(["*0\r\n", MOVED, MOVED, DENIED]), Err(Failure::Refused(_))));
        assert!(!offered(["*0\r\n", UNKNOWN, MOVED, MOVED]).unwrap());
        let counted = Value::Array(Vec::new());
        assert!(is_offered([counted].into_iter()).unwrap());
    }
}
