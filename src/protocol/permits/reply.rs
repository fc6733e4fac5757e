//! The replies that only the scripts of semaphores and read-write locks give.

use std::time::Duration;

use crate::protocol::fields::Fields;
use crate::protocol::reply::{ServerMillis, Timed};
use crate::protocol::ticket::Ticket;
use crate::protocol::token::Token;

/// The answer to a request for all permits that are free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drained {
    Granted { units: u32, now: ServerMillis },
    Busy { call_again: bool, now: ServerMillis },
    Stale { now: ServerMillis },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PermitsRevoked {
    pub(crate) holds: u64,
    /// By which storage can reject the writer that was among the holds.
    pub(crate) token: Option<Token>,
    pub(crate) call_again: bool,
    pub(crate) now: ServerMillis,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PermitsInspected {
    pub(crate) used: u32,
    /// The limit in force.
    pub(crate) limit: u32,
    pub(crate) waiters: u64,
    pub(crate) now: ServerMillis,
    pub(crate) holds: Vec<PermitHold>,
    /// The first tickets of the queue, without those that no script wrote.
    pub(crate) queue: Vec<Ticket>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PermitHold {
    pub(crate) attempt_id: String,
    pub(crate) units: u32,
    /// 0 for the permits of a semaphore, which have no fencing token.
    pub(crate) token: Token,
    pub(crate) left: Duration,
}

pub(in crate::protocol) fn drained(fields: &mut Fields<'_>) -> Option<Drained> {
    Some(match fields.word()? {
        "GRANTED" => Drained::Granted { units: fields.units()?, now: fields.number()? },
        "BUSY" => Drained::Busy { call_again: fields.flag()?, now: fields.number()? },
        "STALE" => Drained::Stale { now: fields.number()? },
        _ => return None,
    })
}

/// Whether the script must be called again to finish.
pub(in crate::protocol) fn limited(fields: &mut Fields<'_>) -> Option<Timed<bool>> {
    let call_again = match fields.word()? {
        "LIMIT" => Some(fields.flag()?),
        "STALE" => None,
        _ => return None,
    };
    Some((call_again, fields.number()?))
}

pub(in crate::protocol) fn permits_revoked(fields: &mut Fields<'_>) -> Option<PermitsRevoked> {
    let holds = fields.number()?;
    let token = Some(fields.token()?).filter(|token| *token != Token::NONE);
    Some(PermitsRevoked { holds, token, call_again: fields.flag()?, now: fields.number()? })
}

pub(in crate::protocol) fn permits_inspected(fields: &mut Fields<'_>) -> Option<PermitsInspected> {
    let now = fields.number()?;
    let (used, limit) = (fields.units()?, fields.units()?);
    let (waiters, held) = (fields.number()?, fields.number()?);
    let mut holds = Vec::new();
    for _ in 0..held {
        holds.push(PermitHold {
            attempt_id: fields.word()?.to_owned(),
            units: fields.units()?,
            token: fields.token()?,
            left: fields.ttl()??,
        });
    }
    Some(PermitsInspected { used, limit, waiters, now, holds, queue: fields.tickets()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::Reply;
    use crate::protocol::change::changed;
    use crate::protocol::fields::{UnexpectedReply, decode};
    use crate::protocol::script::Script;

    fn read<T>(read: fn(&mut Fields<'_>) -> Option<T>, reply: &Reply) -> Result<T, UnexpectedReply> {
        decode(Script::all().next().unwrap(), reply, 0, read)
    }

    fn list(words: &[&str]) -> Reply {
        let item = |word: &&str| word.parse().map_or_else(|_| Reply::Bytes((*word).into()), Reply::Integer);
        Reply::Array(words.iter().map(item).collect())
    }

    #[test]
    fn holds_are_read_to_the_end() {
        let token = Reply::Bytes(b"17".to_vec());
        let Reply::Array(mut words) = list(&["99", "3", "5", "2", "1", "a:1", "3"]) else { unreachable!() };
        words.extend([token, Reply::Integer(250)]);
        let ticket = "00000000-0000-0000-0000-000000000007:12/1500/2/5";
        let queue = vec![Ticket::parse(ticket).unwrap()];
        let inspected = |more: &[&str]| {
            let more = more.iter().map(|word| Reply::Bytes((*word).into()));
            read(permits_inspected, &Reply::Array(words.iter().cloned().chain(more).collect()))
        };
        let waiting = inspected(&[ticket, "of somebody else"]).unwrap();
        let inspected = inspected(&[]).unwrap();
        let hold =
            PermitHold { attempt_id: "a:1".into(), units: 3, token: Token::new(17), left: Duration::from_millis(250) };
        let expected =
            PermitsInspected { used: 3, limit: 5, waiters: 2, now: 99, holds: vec![hold], queue: Vec::new() };
        assert_eq!(inspected, expected);
        assert_eq!(waiting, PermitsInspected { queue, ..expected });
        words.pop();
        assert!(read(permits_inspected, &Reply::Array(words)).is_err());
        assert!(read(permits_inspected, &list(&["99", "-1", "5", "2", "0"])).is_err());
        assert!(read(permits_inspected, &list(&["99", "4294967296", "5", "2", "0"])).is_err());
    }

    #[test]
    fn malformed() {
        for words in
            [&[][..], &["x"], &["CHANGED"], &["BUSY"], &["LIMIT", "2", "5"], &["STALE", "x"], &["BUSY", "5", "5"]]
        {
            assert!(read(changed, &list(words)).is_err(), "{words:?}");
            assert!(read(limited, &list(words)).is_err(), "{words:?}");
            assert!(read(drained, &list(words)).is_err(), "{words:?}");
            assert!(read(permits_inspected, &list(words)).is_err(), "{words:?}");
        }
    }
}
